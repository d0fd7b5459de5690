"""A function with all that is the user's own and that it needs, as files.

By source, not by bytecode: the Python of the image need not be the Python of the notebook.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from trainplane.client.code import layout, literals, modules, sources
from trainplane.client.code.source_collector import Collector
from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainplane.client.code.modules import Module

_ENTRY = "trainplane_entry.py"
_NOTEBOOK = "trainplane_notebook.py"
_MAIN = "__main__"


@dataclass(frozen=True)
class Closure:
    """A program that calls a function."""

    function: str
    """For people: `package.module:function`."""
    entry: str
    """The file to run."""
    text: str
    """Its content."""
    modules: Mapping[str, Module] = field(default_factory=dict)
    """The user's own modules that it imports."""


def close(func: Callable[..., Any], func_args: Mapping[str, Any] | None = None) -> Closure:
    """Return the program that calls a function with these arguments.

    Raises:
        CodeError: something that belongs to it cannot be shipped. The message names it and says what to do.
    """
    func, arguments = _peel(func, dict(func_args or {}))
    _check_call(func, arguments)
    written = _write_arguments(func, arguments)
    namespace, name = _locate(func)
    home = str(namespace.get("__name__", _MAIN))
    if name and home != _MAIN and home in sys.modules:
        text = f"from {home} import {name.partition('.')[0]}\n"
        return Closure(f"{home}:{name}", _ENTRY, text + _call(func, name, written), modules.gather([home]))
    return _close_main(func, name, namespace, written)


def _close_main(func: Any, name: str | None, namespace: Mapping[str, Any], written: str) -> Closure:
    """Return the program for a function that no module has: of a script, a notebook, or inside another function."""
    plain = inspect.unwrap(func)
    file = plain.__code__.co_filename
    own = str(namespace.get("__file__") or "")
    script = sources.read(own if name and own and not sources.is_cell(file) else file)
    if script is None:
        raise CodeError(
            f"the source of {plain.__qualname__} is not known here: define it in a file or in a notebook cell"
        )
    home = [script] if script.is_file else sources.read_cells()
    collector = Collector(namespace, home)
    if name:
        collector.need(name.partition(".")[0], namespace[name.partition(".")[0]])
    else:
        name = plain.__name__
        collector.define(name, plain)
    text = layout.put_together(collector.pieces) + _call(func, name, written)
    gathered = modules.gather(collector.modules)
    entry = Path(script.file).name if script.is_file else _NOTEBOOK
    if entry.removesuffix(".py") in gathered:
        entry = _ENTRY
    return Closure(f"{_MAIN}:{name}", entry, text, gathered)


def _peel(func: Any, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the function in a `functools.partial`, with its keywords."""
    while isinstance(func, functools.partial):
        if func.args:
            raise CodeError("func is a functools.partial with positional arguments: give them by name, or in func_args")
        func, arguments = func.func, {**func.keywords, **arguments}
    plain = inspect.unwrap(func) if callable(func) else func
    if not isinstance(plain, FunctionType):
        raise CodeError(f"func must be a function that is written in Python with `def`, and is {func!r}")
    if plain.__name__ == "<lambda>":
        raise CodeError("func is a lambda, which has no name to be called by: write it with `def`")
    return func, arguments


def _check_call(func: Any, arguments: Mapping[str, Any]) -> None:
    """Find out now, and not on N nodes, that an argument is missing or unknown."""
    try:
        inspect.signature(func).bind(**arguments)
    except TypeError as error:
        raise CodeError(f"func_args do not fit {func.__qualname__}{inspect.signature(func)}: {error}") from None


def _write_arguments(func: Any, arguments: Mapping[str, Any]) -> str:
    try:
        return literals.write(dict(arguments))
    except literals.NotPlainError as error:
        raise CodeError(
            f"func_args{error.where} of {func.__qualname__} is of type {type(error.value).__name__}: only numbers, "
            f"texts, bytes, None, lists, tuples, sets and dicts can be sent. Pass what it is made of, and make it in "
            f"the function"
        ) from None


def _locate(func: Any) -> tuple[Mapping[str, Any], str | None]:
    """Return the namespace that has a function, and its name there; no name if it is defined inside another."""
    plain = inspect.unwrap(func)
    main = getattr(sys.modules.get(_MAIN), "__dict__", {})
    near: list[Mapping[str, Any]] = [plain.__globals__, getattr(func, "__globals__", {}), main]
    for namespace in near:
        if name := _name_in(namespace, func):
            return namespace, name
    for module in list(sys.modules.values()):
        namespace = getattr(module, "__dict__", {})
        file = namespace.get("__file__")
        if file and (name := _name_in(namespace, func)) and modules.is_own(Path(file)):
            return namespace, name
    return plain.__globals__, None


def _name_in(namespace: Mapping[str, Any], func: Any) -> str | None:
    """Return the name under which a namespace has a function; a method's has dots in it."""
    root, _, rest = func.__qualname__.partition(".")
    if root in namespace:
        try:
            found = operator.attrgetter(rest)(namespace[root]) if rest else namespace[root]
        except AttributeError:
            found = None
        if found is func:
            return str(func.__qualname__)
    return next((name for name, value in namespace.items() if value is func and name.isidentifier()), None)


def _call(func: Any, name: str, written: str) -> str:
    """Return the lines that call it, in processes that were started to do so and not in their helpers' imports."""
    call = f"{name}(**{written})" if written != "{}" else f"{name}()"
    if inspect.iscoroutinefunction(func):
        call = f'__import__("asyncio").run({call})'
    return f'\n\nif __name__ == "__main__":\n    {call}\n'
