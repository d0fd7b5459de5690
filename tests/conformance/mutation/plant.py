"""Plants a fault into a process that runs: the code of functions is exchanged, theirs who hold them too.

    Garden().plant(fault)      the functions that the fault changes run its code, wherever they are referred to
    Garden().clear()           they run their own again

A restart for each fault would take longer than finding it does. So a module's source is compiled with and without the
fault, and each function whose code differs gets the other code: `from module import function` elsewhere, bound methods
and closures included, since all of them refer to the function and not to its code. What was run once, at import (values
of a module, defaults of parameters, bodies of classes), could not be changed so: a fault in it is refused.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.mutation.fault import Fault

PACKAGE = "trainplane"


class PlantError(Exception):
    """A fault does not fit the source that it is meant for."""


class Garden:
    """The functions of this process, and which of them run a fault's code."""

    def __init__(self) -> None:
        self._planted: list[tuple[FunctionType, CodeType]] = []

    def plant(self, fault: Fault) -> int:
        """Plant one fault, in place of any other; return how many functions run it.

        Raises:
            PlantError: it does not fit; nothing is planted then.
        """
        self.clear()
        name = f"{PACKAGE}.{fault.module}"
        path = Path(str(importlib.import_module(name).__file__))
        changed = dict(changes(fault, path.read_text(), str(path)))
        gc.unfreeze()  # an operator that has begun keeps its functions from the collector's sight
        held = [function for function in _living(FunctionType) if function.__code__ in changed]
        here = [function for function in held if function.__module__ == name]
        if not here:
            raise PlantError(f"{fault}: no function of {name} that it changes is in use")
        for function in here:
            self._planted.append((function, function.__code__))
            function.__code__ = changed[function.__code__]
        _forget()
        return len(here)

    def clear(self) -> None:
        """Let every function run its own code."""
        while self._planted:
            function, code = self._planted.pop()
            function.__code__ = code
        _forget()


def changes(fault: Fault, source: str, path: str = "<source>") -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the code that a fault changes, and what it becomes.

    Raises:
        PlantError: the text is not there once, takes other lines than what stands there instead, is no Python then, or
            changes what is not the body of a function.
    """
    if source.count(fault.text) != 1:
        raise PlantError(f"{fault}: its text stands {source.count(fault.text)} times in {fault.module}, not once")
    if fault.text.count("\n") != fault.instead.count("\n"):
        raise PlantError(f"{fault}: what stands there instead must take as many lines as the text")
    try:
        faulty = _compiled(source.replace(fault.text, fault.instead), path)
    except SyntaxError as error:
        raise PlantError(f"{fault}: {error}") from error
    found = list(_differing(_compiled(source, path), faulty, fault))
    if all(_own(code) == _own(other) for code, other in found):
        raise PlantError(f"{fault}: it changes nothing")
    yield from found


@functools.lru_cache(4)
def _compiled(source: str, path: str) -> CodeType:
    return compile(source, path, "exec", dont_inherit=True)


def _differing(code: CodeType, other: CodeType, fault: Fault) -> Iterator[tuple[CodeType, CodeType]]:
    if code == other:
        return
    if code.co_flags & inspect.CO_OPTIMIZED:
        yield code, other
    elif _own(code) != _own(other):
        raise PlantError(f"{fault}: it changes what {code.co_name} runs at import, where it is too late to plant")
    for one, another in zip(_within(code), _within(other), strict=False):
        if one.co_name == another.co_name:
            yield from _differing(one, another, fault)


def _own(code: CodeType) -> tuple[Any, ...]:
    """Return what code does itself, without what it only defines."""
    values = [value for value in code.co_consts if not isinstance(value, CodeType)]
    return code.co_code, values, code.co_names, code.co_varnames


def _within(code: CodeType) -> list[CodeType]:
    return [value for value in code.co_consts if isinstance(value, CodeType)]


def _living(kind: type[Any]) -> list[Any]:
    return [one for one in gc.get_objects() if type(one) is kind]


def _forget() -> None:
    """Forget what functions of ours have returned: it was another code's word."""
    for cached in _living(functools._lru_cache_wrapper):  # the type has no public name
        if str(cached.__module__).startswith(PACKAGE):
            cached.cache_clear()
