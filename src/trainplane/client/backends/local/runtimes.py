"""Runtimes without a cluster: from files, folders or addresses that the user names, then those that we ship."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import trainplane
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.errors import InvalidError, NotFoundError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.tree import Tree

KINDS: Final = frozenset({names.CLUSTER_TRAINING_RUNTIME, names.TRAINING_RUNTIME})
_SECONDS: Final = 30
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def shipped() -> Path:
    """Return the folder with the runtimes that we ship: in the package, else in the checkout."""
    package = Path(trainplane.__file__).parent
    inside = package / "runtimes"
    return inside if inside.is_dir() else package.parent.parent / "runtimes"


def load_all(sources: Iterable[str]) -> dict[str, Tree]:
    """Return all runtimes by name; of two with the same name, the first.

    Raises:
        InvalidError: a source is none, or cannot be read as YAML.
        UnreachableError: an address does not answer.
    """
    found: dict[str, Tree] = {}
    for source in (*sources, str(shipped())):
        for document in _documents(source):
            if document.get("kind") in KINDS:
                found.setdefault(trees.get(document, "metadata", "name") or "", document)
    return found


def load(name: str, sources: Iterable[str]) -> Tree:
    """Return a runtime.

    Raises:
        NotFoundError: there is none of that name; the message lists those that there are.
    """
    found = load_all(sources)
    if name not in found:
        raise NotFoundError(f"there is no runtime {name!r} for local jobs; there are {', '.join(sorted(found))}")
    return found[name]


def _documents(source: str) -> Iterator[Tree]:
    for text, place in _texts(source):
        yield from _parse(text, place)


def _parse(text: str, place: str) -> Iterator[Tree]:
    import yaml  # noqa: PLC0415 slow to import

    try:
        documents = list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise InvalidError(f"runtime_source {place}: not YAML: {error}") from error
    for document in documents:
        if isinstance(document, dict):
            yield from document["items"] if document.get("kind") == "List" else (document,)


def _texts(source: str) -> Iterator[tuple[str, str]]:
    parts = urlsplit(source)
    if parts.scheme in {"http", "https"}:
        yield _fetch(source), source
        return
    if parts.scheme not in {"", "file"}:
        raise InvalidError(
            f"runtime_source {source!r}: write a path, file:// with one, or https:// with the address of a YAML file"
        )
    path = Path(unquote(parts.path) if parts.scheme else source).expanduser()
    if path.is_dir():
        for entry in sorted(path.iterdir()):
            if entry.suffix in _SUFFIXES:
                yield entry.read_text(), str(entry)
    elif path.is_file():
        yield path.read_text(), str(path)
    else:
        raise InvalidError(f"runtime_source {source!r}: there is no such file or folder")


def _fetch(address: str) -> str:
    from urllib.error import URLError  # noqa: PLC0415 rare
    from urllib.request import urlopen  # noqa: PLC0415 as above

    try:
        with urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 only http and https come here
            text: str = answer.read().decode()
    except (URLError, TimeoutError, UnicodeDecodeError) as error:
        raise UnreachableError(f"runtime_source {address}: {error}") from error
    return text
