"""docs/claims.md: each sentence stands where it says, and each test that shows one exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_ROW = re.compile(r"^\| (\S+\.md) \| (.+) \| `([^`]+)::(\w+)` \|$", re.MULTILINE)
ROWS = _ROW.findall((ROOT / "docs" / "claims.md").read_text())


def test_every_row_is_read() -> None:
    lines = (ROOT / "docs" / "claims.md").read_text().splitlines()
    assert len(ROWS) == sum(line.startswith("| ") for line in lines) - 1 > 25


@pytest.mark.parametrize(("page", "sentence", "module", "name"), ROWS)
def test_the_sentence_stands_there_and_a_test_shows_it(page: str, sentence: str, module: str, name: str) -> None:
    assert sentence in " ".join((ROOT / page).read_text().split())
    tree = ast.parse((ROOT / module).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}
