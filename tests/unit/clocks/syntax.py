"""The parts of Python's syntax tree that the rules for clocks and cluster reads share."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

type_of_function = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
_OTHERS = frozenset({*type_of_function, ast.Lambda})
_LEAVES = frozenset({ast.Name, ast.Constant, ast.Pass, ast.alias})
_MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)


@dataclass(frozen=True)
class Finding:
    """One place in a file that breaks a rule."""

    rule: str
    path: str
    function: str
    """Qualified name inside the file: `Class.method`, `function`, or `<module>`."""
    line: int
    problem: str
    """What is wrong, and what to do instead."""

    @property
    def key(self) -> str:
        """Return what the list of exceptions calls this place."""
        return f"{self.rule} {self.path}::{self.function}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}"


def name_of(call: ast.Call) -> str:
    """Return the last part of the name that is called: `wait_for` of `asyncio.wait_for(x)`."""
    return last_name(call.func)


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name; an empty string for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_wait(name: str) -> bool:
    """Return whether a function of this name returns only after what it waits for has happened."""
    bare = name.lstrip("_")
    return bare in {"wait", "until", "eventually"} or bare.startswith(("wait_", "until_"))


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.Module | Function]]:
    """Yield the module and each function with its qualified name; `own` returns the nodes of one of them."""
    yield "<module>", tree
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, type_of_function):
                yield prefix + child.name, child
            if isinstance(child, (ast.ClassDef, *type_of_function)):
                waiting.append((child, f"{prefix}{child.name}."))
            elif isinstance(child, ast.stmt | ast.excepthandler):
                waiting.append((child, prefix))


def own(node: ast.AST) -> list[ast.AST]:
    """Return the nodes below one in the order of the source, without the bodies of other functions and lambdas."""
    found: list[ast.AST] = []
    waiting = _children(node)
    while waiting:
        child = waiting.pop()
        kind = type(child)
        if kind in _OTHERS:
            continue
        found.append(child)
        if kind not in _LEAVES:
            waiting += _children(child)
    return found


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below one, the last one first, without those that no rule asks for (`Load`, `Add`)."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += (one for one in value if isinstance(one, ast.AST))
        elif isinstance(value, ast.AST) and not isinstance(value, _MARKS):
            found.append(value)
    return found[::-1]
