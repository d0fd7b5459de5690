"""The walks through the code name functions that are there."""

from __future__ import annotations

import ast
import re

import pytest

from lab.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "architecture" / "walks.md"
STEP = re.compile(r"`([\w/]+\.py)`(?:\s+`([A-Za-z_.]+)`)?")
STEPS = sorted(set(STEP.findall(PAGE.read_text())))


def _names(path: str) -> set[str]:
    """Return the classes, functions and methods of a module."""
    found = set()
    for node in ast.parse((REPOSITORY / "src" / "trainplane" / path).read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


@pytest.mark.parametrize(("path", "name"), STEPS)
def test_a_step_is_there(path: str, name: str) -> None:
    assert (REPOSITORY / "src" / "trainplane" / path).is_file()
    assert not name or name in _names(path)


def test_there_are_three_walks() -> None:
    assert len(re.findall(r"^## ", PAGE.read_text(), re.MULTILINE)) == 3
    assert len(STEPS) > 40
