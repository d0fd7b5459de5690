"""Modules that docstrings and pages name are there: a name that went with a rename leads readers nowhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = REPOSITORY / "src" / "trainplane"
TESTS = REPOSITORY / "tests"
PAGES = sorted((REPOSITORY / "docs" / "architecture").glob("*.md"))
DOTTED = re.compile(r"(?<![\w.-])trainplane((?:\.[a-z_][a-z0-9_]*)+)")
TABLE_ROW = re.compile(r"^\| ((?:`[\w/]+`(?:, )?)+) \|", re.MULTILINE)
NO_MODULES = {"plugins", "dev", "yaml", "kubeflow", "__file__"}
"""What follows `trainplane.` in an entry point, a domain or a file's name, or is in every module."""


def _leads_somewhere(parts: list[str]) -> bool:
    """Return whether some beginning of a dotted name is a module, and what is beyond it is at most two names of it."""
    for depth in range(len(parts), 0, -1):
        place = SOURCE.joinpath(*parts[:depth])
        if place.is_dir() or place.with_suffix(".py").is_file():
            beyond = parts[depth:]
            if not beyond:
                return True
            text = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
            return re.search(rf"\b{beyond[0]}\b", text) is not None
    return re.search(rf"\b{parts[0]}\b", (SOURCE / "__init__.py").read_text()) is not None


@pytest.mark.parametrize("path", [*sorted(SOURCE.rglob("*.py")), *PAGES], ids=lambda path: path.stem)
def test_a_dotted_name_is_a_module_or_in_one(path: Path) -> None:
    named = {match[1][1:] for match in DOTTED.finditer(path.read_text())}
    lost = [name for name in named if name.split(".")[0] not in NO_MODULES and not _leads_somewhere(name.split("."))]
    assert lost == []


def test_the_modules_that_pages_list_are_there() -> None:
    listed = 0
    missing = []
    for page in PAGES:
        homes = (SOURCE / page.stem, TESTS / page.stem)
        rooms = [*homes, *(folder for home in homes for folder in home.rglob("*") if folder.is_dir())]
        for row in TABLE_ROW.finditer(page.read_text()):
            for name in re.findall(r"`([\w/]+)`", row[1]):
                if not name.islower() or "test_" in name or name.startswith(("tests/", "benchmarks/")):
                    continue
                listed += 1
                if not any((room / name).is_dir() or (room / f"{name}.py").is_file() for room in rooms):
                    missing.append(f"{page.name}: {name}")
    assert missing == []
    assert listed > 50
