"""Secrets in the open: a TrainJob can be read by all who may list TrainJobs, and lands in logs, backups and archives.

What is searched is what leaves: every text of the finished document, and every byte of the code as it is packed in it
(`search`, by the table of `forms`). What is found is refused, unless the user says that it is none (`NotSecret`).
Messages name the place and what to do, and never the value.
"""

from __future__ import annotations

import bisect
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from trainplane.client.code import payload
from trainplane.client.errors import CodeError, PlainSecretError
from trainplane.client.submission.forms import is_placeholder
from trainplane.client.submission.search import UNPACKED, TooMuchError, search

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from trainplane.api.tree import Tree
    from trainplane.client.submission.search import Found

_READ: Final = "which all who may list TrainJobs would read"
_KEEP: Final = "put it into a Secret (kubectl create secret generic my-secret --from-literal=token=…)"
_REFER: Final = (
    f'{_KEEP}, write env={{"TOKEN": SecretRef("my-secret", "token")}} and read os.environ["TOKEN"] in your code'
)
_UNLESS: Final = "if it is no secret, add options=[NotSecret(…)] with the value"
_LONG_USER: Final = 16
"""Letters from which on the user of an address is no person."""
_WEB: Final = frozenset({"http", "https", "git+http", "git+https"})
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+")
_DEFINITION: Final = re.compile(rb"^\s*(?:async )?(?:def|class) (\w+)", re.MULTILINE)


def refuse_plain(job: Tree, allowed: Collection[str] = ()) -> None:
    """Refuse a TrainJob in which a secret can be read.

    Raises:
        PlainSecretError: the message names the place and shows how to refer to a Secret.
    """
    for env in _environments(job):
        _refuse_variables(env, allowed)
    files = payload.unpack(job)
    for path, content in files.items():
        _refuse_file(path, content, allowed)
    advice = f"{_KEEP} and refer to it; {_UNLESS}"
    for field in ("metadata", "spec"):
        for where, key, text in _texts(job.get(field), field, step=".{}"):
            if not (files and where.startswith("spec.trainer.args[")):
                _refuse_text(where, f"{key}={text}".encode(errors="replace"), allowed, advice)


def refuse_plain_values(value: Any, where: str, allowed: Collection[str] = ()) -> None:
    """Refuse arguments that hold a secret, by their own name: in the code they would be somewhere in it.

    Raises:
        PlainSecretError: the message names the argument.
    """
    for place, key, text in _texts(value, where):
        _refuse_text(place, f"{key}={text}".encode(errors="replace"), allowed, f"{_REFER}; {_UNLESS}")


def refuse_logins(packages: Iterable[str], urls: Iterable[str]) -> None:
    """Refuse packages and indexes whose address logs in.

    Raises:
        PlainSecretError: the message names the place and what pip reads instead.
    """
    for place, url in enumerate(urls):
        if _logs_in(url):
            raise PlainSecretError(
                f"pip_index_urls[{place}] has a password or a token in it, {_READ}: put the whole address into a "
                f'Secret and write env={{"PIP_{"EXTRA_" if place else ""}INDEX_URL": SecretRef("my-secret", "url")}} '
                f"instead"
            )
    for place, package in enumerate(packages):
        if any(map(_logs_in, _ADDRESS.findall(package))):
            raise PlainSecretError(
                f"packages_to_install[{place}] has a password or a token in its address, {_READ}: write the line into "
                f"a requirements.txt of the workspace with ${{TOKEN}} in its place, which pip replaces, and give "
                f'packages_to_install=["-r requirements.txt"] and env={{"TOKEN": SecretRef("my-secret", "token")}}'
            )


def _logs_in(url: str) -> bool:
    parts = urlsplit(url)
    user, password = parts.username or "", parts.password or ""
    said = password or (user if len(user) >= _LONG_USER and parts.scheme in _WEB else "")
    return bool(said) and not is_placeholder(said.encode(errors="replace"))


def _refuse_variables(env: list[Tree], allowed: Collection[str]) -> None:
    """Look at all variables of a container as one text: of some secrets, one variable says what the other is."""
    names = [str(entry.get("name")) for entry in env if entry.get("value")]
    lines = [f"{entry.get('name')}={entry['value']}\n".encode(errors="replace") for entry in env if entry.get("value")]
    found = _first(b"".join(lines), "env", allowed)
    if found is None:
        return
    name = names[0]
    if not found.packed:
        name = names[bisect.bisect_right(list(accumulate(map(len, lines))), found.start)]
    raise PlainSecretError(
        f"the variable {name} holds {found.what}, {_READ}: {_KEEP} and write "
        f'env={{"{name}": SecretRef("my-secret", "token")}}; {_UNLESS}'
    )


def _refuse_text(where: str, text: bytes, allowed: Collection[str], advice: str) -> None:
    if found := _first(text, where, allowed):
        raise PlainSecretError(f"{where} holds {found.what}, {_READ}: {advice}")


def _refuse_file(path: str, content: bytes, allowed: Collection[str]) -> None:
    called = _called(path)
    _refuse_text(f"the name of {called}", path.encode(errors="replace"), allowed, f"rename it; {_UNLESS}")
    if found := _first(content, called, allowed, python=path.endswith(".py")):
        left = "; a file that the job does not need stays behind if .trainplaneignore names it"
        advice = f"{_REFER}{left if path.startswith('workspace/') else ''}; {_UNLESS}"
        raise PlainSecretError(f"{_place(path, found)} holds {found.what}, {_READ}: {advice}")


def _first(data: bytes, where: str, allowed: Collection[str], *, python: bool = False) -> Found | None:
    """Return the first secret that the user did not call none."""
    harmless = [text.encode(errors="replace") for text in allowed]
    try:
        for found in search(data, python=python):
            if not any(found.value in text for text in harmless):
                return found
    except TooMuchError:
        raise CodeError(
            f"{where} holds packed data of more than {UNPACKED // 1024 // 1024} MiB, which cannot be searched for "
            f"secrets: leave it behind with .trainplaneignore, and fetch data with a dataset initializer"
        ) from None
    return None


def _called(path: str) -> str:
    """Return what people know a packed file by."""
    folder, _, name = path.partition("/")
    return {
        "workspace": f"{name} of the workspace",
        "code": f"your module {name}",
        "main": "your notebook" if name == "trainplane_notebook.py" else f"your script {name}",
    }.get(folder, path)


def _place(path: str, found: Found) -> str:
    """Return where in a file something was found, as nearly as can be."""
    called, inside = _called(path), ""
    if found.packed:
        return f"{called}, packed or put together from parts,"
    if found.name:
        inside = f" ({found.name})"
    elif path.endswith(".py") and (above := _DEFINITION.findall(found.text, 0, found.start)):
        inside = f" (in {above[-1].decode()})"
    line = "" if called == "your notebook" else f", line {found.line}"
    return f"{called}{line}{inside}"


def _texts(tree: Any, where: str, key: object = "", *, step: str = "[{!r}]") -> Iterator[tuple[str, object, str]]:
    """Yield all texts of a tree with their place and their key; `step` is how a place goes on behind a key."""
    if isinstance(tree, str):
        yield where, key, tree
    elif isinstance(tree, bytes):
        yield where, key, tree.decode(errors="replace")
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from _texts(name, f"a key of {where}") if isinstance(name, str | bytes) else ()
            yield from _texts(value, where + step.format(name), name, step=step)
    elif isinstance(tree, list | tuple | set | frozenset):
        for place, value in enumerate(tree):
            yield from _texts(value, f"{where}[{place}]", key, step=step)


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
