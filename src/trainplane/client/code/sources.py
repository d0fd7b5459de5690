"""The source that a `__main__` was made of: one script, or the cells of a notebook."""

from __future__ import annotations

import ast
import linecache
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CELL = re.compile(r"<ipython-input|<python-input|[\\/]ipykernel_\d+[\\/]|<stdin>|<cell")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Source:
    """A text that was run."""

    file: str
    """The name that it has in tracebacks."""
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The text, parsed."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines, without their ends."""
        return self.text.splitlines()

    @property
    def is_file(self) -> bool:
        """Whether people know it by its file's name."""
        return not is_cell(self.file) and Path(self.file).is_file()

    def binding(self, name: str) -> Iterator[ast.stmt]:
        """Yield the statements at the top level that bind a name."""
        return (statement for statement in self.tree.body if name in bound(statement))

    def definition(self, first_line: int) -> Definition | None:
        """Return the function or class, at any depth, that begins on a line."""
        for node in ast.walk(self.tree):
            if isinstance(node, Definition) and first_line in {node.lineno, begin(node)}:
                return node
        return None

    def cut(self, first: int, last: int) -> str:
        """Return some of the lines."""
        return "\n".join(self.lines[first - 1 : last])


def is_cell(file: str) -> bool:
    """Return whether a name of a traceback means a notebook's cell or a line at a prompt."""
    return bool(_CELL.search(file))


def read_cells() -> list[Source]:
    """Return the cells that were run here, in the order in which they ran first."""
    return [source for name in list(linecache.cache) if is_cell(name) and (source := read(name))]


def read(file: str) -> Source | None:
    """Return the text behind a name of a traceback, if there is one that is Python."""
    source = Source(file, "".join(linecache.getlines(file)))
    try:
        return source if source.tree.body else None
    except SyntaxError:
        return None


def begin(node: ast.stmt) -> int:
    """Return the line on which a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min(node.lineno, *(decorator.lineno for decorator in decorators)) if decorators else node.lineno


def bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds in its own scope."""
    names: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Definition):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return names


def uses(text: str) -> list[str]:
    """Return the names that a text takes from around it, in the order of the alphabet.

    Raises:
        SyntaxError: the text cannot stand alone.
    """
    import symtable  # noqa: PLC0415 needed for functions without a module only

    names: set[str] = set()
    top = symtable.symtable(text, "<piece>", "exec")
    own = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    names |= {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    waiting = list(top.get_children())
    while waiting:
        table = waiting.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        waiting += table.get_children()
    return sorted(names - own)
