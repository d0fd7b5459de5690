"""The page of what experiments broke has a row for each finding, and names tests that are there and marked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AUDITS = {"runtime": 11, "semantics": 11, "hub-and-sdk": 15}
"""How many findings each of the three readings had."""
FINDINGS = [(audit, number) for audit, last in AUDITS.items() for number in range(1, last + 1)]


def _paths(text: str) -> list[str]:
    return re.findall(r"(?<!ignore )tests/[\w/.]+", text)


def rows() -> dict[tuple[str, int], list[str]]:
    """Return the cells of each finding's row."""
    found: dict[tuple[str, int], list[str]] = {}
    for line in (ROOT / "docs/architecture/under-fire.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        name = re.fullmatch(r"([a-z-]+) (\d+)", cells[0])
        if name:
            finding = name[1], int(name[2])
            assert finding not in found, f"{cells[0]} has two rows"
            found[finding] = cells[1:]
    return found


def test_every_finding_has_its_row() -> None:
    assert list(rows()) == FINDINGS


@pytest.mark.parametrize(("audit", "number"), FINDINGS)
def test_what_holds_it_is_there_and_marked(audit: str, number: int) -> None:
    wrong, unseen, holds = rows()[audit, number]
    assert wrong
    assert unseen
    tests = re.findall(r"`([\w/]+\.py)::(test_\w+)`", holds)
    assert holds == ", ".join(f"`{file}::{test}`" for file, test in tests)
    assert any("live/" not in file and not file.startswith(("fleet/", "integration/")) for file, _ in tests)
    for file, test in tests:
        text = (ROOT / "tests" / file).read_text()
        assert re.search(rf"def {test}\(", text), f"{file} has no {test}"
        assert re.search(rf'"{audit}",\s+{number},', text), f"{file} has no mark of {audit} {number}"


def recipe(target: str) -> str:
    """Return the commands of a target of the Makefile."""
    _, _, rest = (ROOT / "Makefile").read_text().partition(f"\n{target}:")
    return rest.partition("\n\n")[0]


def test_make_test_counts_findings() -> None:
    assert "-p tests.findings" in recipe("test")
    assert "--ignore tests/under_fire/live tests/unit tests/under_fire" in recipe("test")


def test_what_is_marked_is_run() -> None:
    run = tuple(path for target in ("test", "fleet", "integration") for path in _paths(recipe(target)))
    assert "tests/under_fire/live" in run
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__) and re.search(r"mark\.finding\(", path.read_text())
    }
    assert {path for path in marked if not path.startswith(run)} == set()
