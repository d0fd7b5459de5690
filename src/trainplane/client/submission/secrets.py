"""Tokens in the open: a TrainJob can be read by all who may list TrainJobs, and lands in logs, backups and archives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trainplane.client.errors import PlainSecretError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.tree import Tree

_SHAPES = {
    "a token of the Hugging Face hub": re.compile(r"hf_[A-Za-z0-9]{20,}"),
    "a token of GitHub": re.compile(r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}"),
    "a token of GitLab": re.compile(r"glpat-[A-Za-z0-9_-]{20,}"),
    "a key of an AI service": re.compile(r"sk-[A-Za-z0-9_-]{20,}"),
    "a token of Slack": re.compile(r"xox[abprs]-[A-Za-z0-9-]{10,}"),
    "a token of a package index": re.compile(r"pypi-[A-Za-z0-9_-]{40,}"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*", re.DOTALL),
}
_AMAZON_ID = re.compile(r"(AKIA|ASIA)[A-Z0-9]{16}")
_AMAZON_SECRET = re.compile(r"[A-Za-z0-9/+]{40}")


def refuse_plain(job: Tree) -> None:
    """Refuse a TrainJob that has a token in a variable.

    Raises:
        PlainSecretError: the message names the variable and shows how to refer to a Secret.
    """
    for env in _environments(job):
        values = {str(entry.get("name")): str(entry["value"]) for entry in env if entry.get("value")}
        for name, value in values.items():
            if what := _shape(value, others=values.values()):
                raise PlainSecretError(
                    f"the variable {name} holds {what}, which all who may list TrainJobs would read: put it into a "
                    f"Secret (kubectl create secret generic my-secret --from-literal=token=…) and write "
                    f'env={{"{name}": SecretRef("my-secret", "token")}}'
                )


def refuse_plain_values(value: Any, where: str) -> None:
    """Refuse arguments that hold a token.

    Raises:
        PlainSecretError: the message names the argument.
    """
    if isinstance(value, str) and (what := _shape(value)):
        raise PlainSecretError(
            f"{where} holds {what}, which all who may list TrainJobs would read: put it into a Secret (kubectl create "
            f"secret generic my-secret --from-literal=token=…), write "
            f'env={{"TOKEN": SecretRef("my-secret", "token")}} and read os.environ["TOKEN"] in your code'
        )
    if isinstance(value, dict):
        for key, entry in value.items():
            refuse_plain_values(entry, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple):
        for place, entry in enumerate(value):
            refuse_plain_values(entry, f"{where}[{place}]")


def refuse_passwords(urls: Iterable[str], where: str) -> None:
    """Refuse addresses with a password in them.

    Raises:
        PlainSecretError: the message names the place and the variable that pip reads instead.
    """
    for place, url in enumerate(urls):
        if urlsplit(url).password:
            raise PlainSecretError(
                f"{where}[{place}] has a password in it, which all who may list TrainJobs would read: put the whole "
                f"address into a Secret and write "
                f'env={{"PIP_{"EXTRA_" if place else ""}INDEX_URL": SecretRef("my-secret", "url")}} instead'
            )


def _shape(value: str, others: Iterable[str] = ()) -> str | None:
    text = value.strip()
    if _AMAZON_SECRET.fullmatch(text) and any(_AMAZON_ID.fullmatch(other.strip()) for other in others):
        return "the secret that belongs to an AWS key"
    return next((what for what, shape in _SHAPES.items() if shape.fullmatch(text)), None)


def _environments(tree: Any) -> Iterator[list[Tree]]:
    """Yield all lists of variables in a document."""
    if isinstance(tree, list):
        for entry in tree:
            yield from _environments(entry)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key == "env" and isinstance(value, list):
                yield [entry for entry in value if isinstance(entry, dict)]
            else:
                yield from _environments(value)
