"""docs/site/pages.py: the site's order is the sections' links, and links to folders lead to something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs.executed import ROOT, pages
from docs.site.pages import BELOW, FIRST, SECTIONS, contents, with_folders

if TYPE_CHECKING:
    from pathlib import Path


def text(page: str) -> str:
    return (ROOT / f"{page}.md").read_text()


def test_the_first_page_has_the_sections() -> None:
    assert tuple(contents(FIRST, text(FIRST))) == SECTIONS


def test_a_section_has_the_pages_that_it_links_to_each_once() -> None:
    words = "[A](a.md) [b](../x/b.md#part) [`c`](../x/c.md) [a](a.md) [up](index.md) [web](https://example.org/d.md)"
    assert contents("docs/how-to", words) == {"docs/a": "A", "x/c": "c"}


def test_no_page_is_forgotten() -> None:
    listed = {one for section in (*SECTIONS, *BELOW) for one in contents(section, text(section))}
    known = {str(page.relative_to(ROOT).with_suffix("")) for page in pages()}
    assert known - listed - {FIRST, "README", *SECTIONS} == set()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[shown](../with)", "[shown](../with/README.md)"),
        ("[shown](../with/)", "[shown](../with/README.md)"),
        ("[shown](../without)", "shown"),
        ("[shown](../without/file.yaml)", "[shown](../without/file.yaml)"),
        ("[shown](other.md)", "[shown](other.md)"),
        ("[shown](https://example.org/with)", "[shown](https://example.org/with)"),
    ],
)
def test_a_folder_is_its_readme_or_text(tmp_path: Path, written: str, read: str) -> None:
    for folder in ("docs", "with", "without"):
        (tmp_path / folder).mkdir()
    (tmp_path / "with/README.md").touch()
    assert with_folders("docs/page", written, tmp_path) == read
