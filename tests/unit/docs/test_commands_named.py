"""Commands that pages tell people to type exist: targets of the Makefile, modules to run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("tests/**/*.md")]
)
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_CODE = re.compile(r"`([^`\n]+)`|^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code(page: Path) -> list[str]:
    """Return the lines of a page that are set as code, without comments."""
    found = [inline or block for inline, block in _CODE.findall(page.read_text())]
    return [line.partition(" #")[0] for text in found for line in text.splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_knows_the_targets(page: Path) -> None:
    named = {
        word
        for line in code(page)
        for call in re.findall(r"(?:^|[;&] *)(?:[A-Z]+=\S+ )*make ([^&|;>]+)", line)
        for word in call.split()
        if re.fullmatch(r"[a-z][a-z0-9-]+", word)
    }
    assert named <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_has_the_modules(page: Path) -> None:
    named = {
        name
        for line in code(page)
        for name in re.findall(r"python3? -m ((?:trainplane|lab|release|benchmarks|tests|docs)[\w.]*)", line)
    }
    assert [name for name in sorted(named) if importlib.util.find_spec(name) is None] == []


def test_there_is_something_to_check() -> None:
    assert any("make check test" in line for page in PAGES for line in code(page))
