"""A program made of the parts of `__main__` that a function needs.

A script or a notebook cannot be shipped whole: it would submit the job again in every process of the job. So the
function's source is taken, and that of the functions, classes, imports and constants that it uses, and so on. Values
are asked for what they are now; source says how they came about.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import sys
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from trainplane.client.code import literals, modules, sources
from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainplane.client.code.sources import Source

_OF_A_MODULE = frozenset({"__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__package__", "__loader__"})
_REMADE = {
    "_thread": {"lock", "RLock"},
    "builtins": {"object", "range"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "functools": {"partial"},
    "logging": {"Logger"},
    "numpy": {"dtype"},
    "operator": {"attrgetter", "itemgetter", "methodcaller"},
    "pathlib": {"Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath", "WindowsPath"},
    "re": {"Pattern"},
    "torch": {"device", "dtype"},
    "types": {"GenericAlias", "SimpleNamespace", "UnionType"},
    "typing": {"NewType", "ParamSpec", "TypeVar", "_GenericAlias", "_UnionGenericAlias"},
    "uuid": {"UUID"},
    "zoneinfo": {"ZoneInfo"},
}
"""Values of these types are made again by the line that made them: that gives the same thing anywhere."""
_QUIET = ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign | ast.Pass | sources.Definition


@dataclass(frozen=True)
class Piece:
    """Some lines of the program."""

    text: str
    source: Source | None = None
    """Where they stood; None for lines that stood nowhere."""
    line: int = 0
    """The first one's number there."""
    indented: bool = False
    """Whether they stood inside something."""
    follows: bool = False
    """Whether they need pieces before them, although they stood nowhere."""

    @property
    def headline(self) -> str:
        """The first line, for messages."""
        return self.text.strip().partition("\n")[0]


class Collector:
    """Collects the pieces of a program, each after those that it needs."""

    def __init__(self, namespace: Mapping[str, Any], home: Sequence[Source]) -> None:
        self.pieces: list[Piece] = []
        self.modules: set[str] = set()
        """What the pieces import."""
        self._namespace = namespace
        self._home = home
        self._done: dict[str, Any] = {}
        for source in home:
            for statement in source.tree.body:
                if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                    self._keep(source, statement)

    @property
    def _package(self) -> str:
        return str(self._namespace.get("__package__") or "")

    @property
    def _name(self) -> str:
        return str(self._namespace.get("__name__", "__main__"))

    @property
    def _is_main(self) -> bool:
        return self._name == "__main__" or self._name not in sys.modules

    def need(self, name: str, value: Any) -> None:
        """Collect what makes a global variable."""
        if name in self._done:
            if self._done[name] is not value and (_literal(value) or "") != _literal(self._done[name]):
                raise CodeError(f"two different things are called {name} where your function looks: rename one of them")
            return
        self._done[name] = value
        if not (self._by_source(name, value) or self._by_value(name, value)):
            raise CodeError(_cannot_ship(name, value))

    def define(self, name: str, function: FunctionType) -> None:
        """Collect a function that is defined inside another, with the variables that it has from there."""
        self._done[name] = function
        if not self._nested(name, function):
            raise CodeError(_no_source(name))

    def _by_source(self, name: str, value: Any) -> bool:
        """Collect the statement that made it, where doing that again is sure to give the same."""
        if not self._is_main or self._namespace.get(name) is not value:
            return False
        found = [(source, statement) for source in self._home for statement in source.binding(name)]
        if not found:
            return False
        source, last = self._defining(found, value)
        if isinstance(last, ast.Import | ast.ImportFrom):
            for place, statement in found:
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    self._keep(place, statement)
            return True
        if not isinstance(last, sources.Definition) and (text := _literal(value)) is not None:
            first_source, first = found[0]
            self.pieces.append(Piece(f"{name} = {text}", first_source, first.lineno))
        elif _is_remade(last, value):
            self._keep(source, last)
        else:
            return False
        return True

    @staticmethod
    def _defining(found: list[tuple[Source, ast.stmt]], value: Any) -> tuple[Source, ast.stmt]:
        """Return the statement that counts: the last one, but for a function the one that it has its code from."""
        code = getattr(inspect.unwrap(value), "__code__", None) if isinstance(value, FunctionType) else None
        for source, statement in reversed(found):
            if code and source.file == code.co_filename and sources.begin(statement) == code.co_firstlineno:
                return source, statement
        return found[-1]

    def _by_value(self, name: str, value: Any) -> bool:
        """Collect a line that makes it from nothing: an import or a literal; or a definition from elsewhere."""
        if (text := _literal(value)) is not None:
            line = f"{name} = {text}"
        elif isinstance(value, ModuleType):
            line = f"import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
            self.modules.add(value.__name__)
        elif owner := _owner(value):
            line = f"from {owner} import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
            self.modules.add(owner)
        elif not self._is_main and self._namespace.get(name) is value:
            line = f"from {self._name} import {name}"
            self.modules.add(self._name)
        else:
            return isinstance(value, FunctionType | type) and self._nested(name, value)
        self.pieces.append(Piece(line))
        return True

    def _nested(self, name: str, value: FunctionType | type) -> bool:
        source, node = _find_definition(value)
        if source is None or node is None:
            return False
        self._keep(source, node, _cells(value) if isinstance(value, FunctionType) else {})
        if node.name != name:
            self.pieces.append(Piece(f"{name} = {node.name}", follows=True))
        return True

    def _keep(self, source: Source, node: ast.stmt, cells: Mapping[str, Any] | None = None) -> None:
        piece = self._piece(source, node)
        self.modules.update(modules.imports(ast.Module([node], []), f"{self._package}.x", is_package=False))
        around = {**self._namespace, **(cells or {})}
        for name in _uses(piece):
            if name in _OF_A_MODULE:
                continue
            if name in around:
                if around[name] is not getattr(builtins, name, self):
                    self.need(name, around[name])
            elif piece.indented and not hasattr(builtins, name):
                raise CodeError(
                    f"`{piece.headline}` is defined inside another function and uses {name}, which is not known here: "
                    f"move it to the top level of a module or notebook cell"
                )
        if piece not in self.pieces:
            self.pieces.append(piece)

    def _piece(self, source: Source, node: ast.stmt) -> Piece:
        if isinstance(node, ast.ImportFrom) and node.level:
            whole = ast.ImportFrom(modules.absolute(node, self._package), node.names, 0)
            return Piece(ast.unparse(whole), source, node.lineno)
        if isinstance(node, sources.Definition):
            first = sources.begin(node)
            text = source.cut(first, node.end_lineno or first)
            return Piece(text, source, first, indented=node.col_offset > 0)
        return Piece(ast.get_source_segment(source.text, node) or "", source, node.lineno)


def _uses(piece: Piece) -> list[str]:
    text = f"if True:\n{piece.text}" if piece.indented else piece.text
    try:
        return sources.uses(text)
    except SyntaxError as error:
        raise CodeError(
            f"`{piece.headline}` cannot stand alone ({error.msg}): move it to the top level of a module or notebook "
            f"cell"
        ) from error


def _literal(value: Any) -> str | None:
    try:
        return literals.write(value)
    except literals.NotPlainError:
        return None


def _is_remade(statement: ast.stmt, value: Any) -> bool:
    """Return whether a statement makes the same value wherever it runs."""
    if isinstance(statement, sources.Definition) or _is_quiet(statement):
        return True
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    kind = type(value)
    if isinstance(value, FunctionType | type):
        return True
    return kind.__qualname__ in _REMADE.get(kind.__module__.partition(".")[0], ())


def _is_quiet(statement: ast.stmt) -> bool:
    """Return whether an `if` or `try` does nothing but define things, and not only where a script is run."""
    if not isinstance(statement, ast.If | ast.Try):
        return False
    test = statement.test if isinstance(statement, ast.If) else None
    if test and any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test)):
        return False
    return all(isinstance(node, _QUIET) for node in _leaves(statement))


def _leaves(statement: ast.If | ast.Try) -> Iterator[ast.stmt]:
    handled = [entry for handler in getattr(statement, "handlers", []) for entry in handler.body]
    for child in [*statement.body, *statement.orelse, *getattr(statement, "finalbody", []), *handled]:
        if isinstance(child, ast.If | ast.Try):
            yield from _leaves(child)
        else:
            yield child


def _owner(value: Any) -> str | None:
    """Return the module from which a function or class can be imported by its own name."""
    owner, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not owner or not name or owner in {"__main__", "__mp_main__"}:
        return None
    return owner if getattr(sys.modules.get(owner), name, None) is value else None


def _find_definition(value: FunctionType | type) -> tuple[Source | None, sources.Definition | None]:
    """Return where a function or class is defined, at whatever depth."""
    if isinstance(value, type):
        codes = [entry.__code__ for entry in vars(value).values() if isinstance(entry, FunctionType)]
        for code in codes:
            source = sources.read(code.co_filename)
            for node in ast.walk(source.tree) if source else ():
                if isinstance(node, ast.ClassDef) and node.name == value.__name__:
                    return source, node
        return None, None
    code = inspect.unwrap(value).__code__
    source = sources.read(code.co_filename)
    return source, source.definition(code.co_firstlineno) if source else None


def _cells(function: FunctionType) -> dict[str, Any]:
    """Return the variables that a function has from around it, as far as they have a value yet."""
    plain = inspect.unwrap(function)
    found = {}
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _cannot_ship(name: str, value: Any) -> str:
    if isinstance(value, FunctionType | type):
        return _no_source(name)
    kind = type(value)
    known = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return (
        f"your function uses the variable {name}, a {known} that lives in this process and cannot be sent: make it "
        f"inside the function, or pass what it is made of in func_args"
    )


def _no_source(name: str) -> str:
    return f"the source of {name} is not known here: define it with `def` or `class` in a file or a notebook cell"
