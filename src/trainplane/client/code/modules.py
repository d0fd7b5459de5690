"""Which modules are the user's own, where their files are, and what they import.

Nothing is imported to find out: files are read, not run.
"""

from __future__ import annotations

import ast
import functools
import sys
import sysconfig
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_NOT_SHIPPED = frozenset({"__main__", "__mp_main__", "trainplane"})


@dataclass(frozen=True)
class Module:
    """A module of the user's own."""

    name: str
    file: Path
    is_package: bool

    @property
    def place(self) -> str:
        """Its file below an entry of sys.path."""
        stem = self.name.replace(".", "/")
        return f"{stem}/__init__.py" if self.is_package else f"{stem}.py"

    @property
    def root(self) -> Path | None:
        """The entry of sys.path below which it lies; None if it was loaded in some other way."""
        root = self.file
        for part in reversed(Path(self.place).parts):
            if root.name != part:
                return None
            root = root.parent
        return root


def find(name: str) -> Module | None:
    """Return a module if it is the user's own; None for those of Python, of installed packages, and for none at all."""
    if name.partition(".")[0] in _NOT_SHIPPED:
        return None
    loaded = sys.modules.get(name)
    origin = getattr(loaded, "__file__", None) if loaded else _origin(name)
    if not origin or not origin.endswith(".py") or not is_own(Path(origin)):
        return None
    file = Path(origin).resolve()
    return Module(name, file, file.name == "__init__.py")


def is_own(file: Path) -> bool:
    """Return whether a file is the user's: neither Python's own nor an installed package's."""
    file = file.resolve()
    if _INSTALLED.intersection(file.parts):
        return False
    return not any(file.is_relative_to(folder) for folder in _python_folders())


def gather(names: Iterable[str]) -> dict[str, Module]:
    """Return the user's own modules among these, those that they import, and so on, by name."""
    found: dict[str, Module] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        for part in _with_parents(name):
            module = None if part in found else find(part)
            if module:
                found[part] = module
                waiting += imports(_read(module.file), module.name, is_package=module.is_package)
    return dict(sorted(found.items()))


def imports(source: bytes | str | ast.AST, name: str, *, is_package: bool) -> Iterator[str]:
    """Yield what a module imports, wherever in it: `from a import b` gives `a` and `a.b`, which may be a module."""
    tree = source if isinstance(source, ast.AST) else _parse(source, name)
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, package)
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def absolute(node: ast.ImportFrom, package: str) -> str:
    """Return the module that a `from` means, seen from a package."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - (node.level - 1)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _origin(name: str) -> str | None:
    """Return the file of a module that is not loaded; looks along the path as an import would, and runs nothing."""
    path = None
    origin = None
    for part in _with_parents(name):
        spec = PathFinder.find_spec(part, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        origin = spec.origin
        if path is None and part != name:
            return None
    return origin


def _with_parents(name: str) -> Iterator[str]:
    """Yield `a`, `a.b`, `a.b.c` for `a.b.c`."""
    parts = name.split(".")
    return (".".join(parts[: count + 1]) for count in range(len(parts)))


@functools.cache
def _python_folders() -> tuple[Path, ...]:
    return tuple(Path(sysconfig.get_path(kind)).resolve() for kind in ("stdlib", "platstdlib"))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CodeError(f"{file} belongs to your code and cannot be read: {error.strerror}") from error


def _parse(source: bytes | str, name: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise CodeError(f"module {name} belongs to your code and is no valid Python: {error}") from error
