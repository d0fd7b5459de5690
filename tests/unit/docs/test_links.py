"""Links of the pages lead somewhere on a Git host as well: to a file of the checkout, and there to a heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Return the names by which a Git host links to a page's headings; the second of a name has a number."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text()), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {name if number == 0 else f"{name}-{number}" for name, most in found.items() for number in range(most + 1)}


def test_a_heading_is_linked_to_by_its_words(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# What the operator's faults cost\n```\n# no heading\n```\n## `spec.mlPolicy`\n## Same\n## Same\n")
    assert anchors(page) == {"what-the-operators-faults-cost", "specmlpolicy", "same", "same-1"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if "://" in link or link.startswith("mailto:"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []
