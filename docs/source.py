"""What the source says of a name: the string below a field or a constant."""  # noqa: INP001 beside the pages, no package

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def words_below(thing: type | ModuleType) -> dict[str, str]:
    """Return each annotated name of a class or a module, in order, with the string below it; empty if there is none."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    body = tree.body[0].body if isinstance(thing, type) and isinstance(tree.body[0], ast.ClassDef) else tree.body
    return {
        statement.target.id: flat(_string(after))
        for statement, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def flat(text: str) -> str:
    """Return a text as one line for each paragraph."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def _string(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""
