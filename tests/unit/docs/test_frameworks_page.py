"""docs/frameworks: the table names every shipped runtime and every page, each once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/frameworks/README.md").read_text()
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("\n\nThe label")[0].splitlines()
    if line.startswith("| ")
][1:]


def test_each_shipped_runtime_once() -> None:
    named = Counter(name for row in TABLE for name in re.findall(r"runtimes/([\w.-]+\.yaml)", row[2]))
    assert named == Counter(path.name for path in (ROOT / "runtimes").glob("*.yaml"))


def test_each_way_to_choose_once() -> None:
    ways = [row[1] for row in TABLE]
    assert len(ways) == len(set(ways))


def test_each_page() -> None:
    pages = {path.name for path in (ROOT / "docs/frameworks").glob("*.md")} - {"README.md"}
    assert pages == {page for row in TABLE for page in re.findall(r"\(([\w-]+\.md)", row[3])}
