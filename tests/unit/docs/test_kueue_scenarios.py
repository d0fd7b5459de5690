"""docs/kueue-scenarios.md says `pass` only of scenarios that a test of the module it names carries."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "kueue-scenarios.md"
_ROW = re.compile(r"^\| ([^|]+) \| (.+) \|$", re.MULTILINE)
LAST = 59


def carried() -> dict[str, set[str]]:
    """Return the modules that carry a mark for each scenario."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests" / "fleet").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                if called.strip("_") == "scenario" and node.args and isinstance(node.args[0], ast.Constant):
                    for name in numbers(str(node.args[0].value)):
                        found.setdefault(name, set()).add(path.stem)
    return found


def numbers(text: str) -> Iterator[str]:
    """Return the scenarios that a cell names: `1`, `22, 23`, `18–21`, `I-rest`."""  # noqa: RUF002 as in the page
    for part in text.split(", "):
        ends = re.fullmatch(r"(\d+)[–-](\d+)", part)  # noqa: RUF001 as in the page
        yield from map(str, range(int(ends[1]), int(ends[2]) + 1)) if ends else (part,)


def rows() -> Iterator[tuple[str, str, set[str]]]:
    """Return each scenario of the page with its verdict and the modules that it names."""
    for first, others in _ROW.findall(PAGE.read_text()):
        cells = others.split(" | ")
        for name in numbers(first):
            if re.fullmatch(r"\d+|[A-Z](-[a-z-]+)?", name) and name != "I":
                yield name, " | ".join(cells[1:-1]), set(re.findall(r"`(test_\w+)`", cells[-1]))


def test_each_scenario_is_on_the_page() -> None:
    assert {str(number) for number in range(1, LAST + 1)} <= {name for name, _, _ in rows()}


def test_each_scenario_passes_by_a_test() -> None:
    carried_by = {name for name, verdict, modules in rows() if verdict.startswith("pass") and modules}
    assert {str(number) for number in range(1, LAST + 1)} - carried_by == set()


def test_what_passes_is_carried_by_a_test_of_the_module() -> None:
    marks = carried()
    wrong = [
        (name, modules)
        for name, verdict, modules in rows()
        if (verdict.startswith("pass") or name.startswith("I-")) and not (modules and modules <= marks.get(name, set()))
    ]
    assert wrong == []


def test_the_modules_exist() -> None:
    there = {path.stem for path in (ROOT / "tests" / "fleet").rglob("test_*.py")}
    assert {module for _, _, modules in rows() for module in modules} <= there
