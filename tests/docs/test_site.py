"""The site of `make docs`, as it was built: links lead somewhere, it needs nobody else, and readers find things."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import trainplane
from docs.site import links
from docs.site.build import SITE, newest_first, write_common

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suite import SuiteReport

FOLDER = SITE / trainplane.__version__
TITLES = ("Tutorials", "How-to guides", "Reference", "Explanation")


@pytest.fixture(scope="module")
def landing() -> str:
    return (FOLDER / "docs/index.html").read_text()


def test_every_link_leads_somewhere(report: SuiteReport) -> None:
    pages = list(FOLDER.rglob("*.html"))
    report.figure("pages", len(pages))
    report.figure("links", sum(len(links.read(page).links) for page in pages))
    assert len(pages) > 70
    assert list(links.lost(FOLDER)) == []


def test_links_elsewhere_are_listed_and_safe(report: SuiteReport) -> None:
    found = links.external(FOLDER)
    for link in found:
        report.row(external=link)
    report.figure("external_links", len(found))
    assert [link for link in found if not link.startswith(("https://", "mailto:"))] == []


def test_nothing_is_fetched_from_elsewhere() -> None:
    assert links.fetched(FOLDER) == []


def test_the_landing_page_has_both_ways_in_and_the_four_parts(landing: str) -> None:
    assert {"sdk.html", "install.html", "tutorials.html", "how-to.html", "references/README.html"} <= set(
        links.read(FOLDER / "docs/index.html").links
    )
    shown = [re.sub(r"\s+", " ", title) for title in re.findall(r'<li class="toctree-l1.*?<a[^>]*>(.*?)</a>', landing)]
    assert tuple(shown) == TITLES


def test_the_first_address_leads_to_the_newest_version() -> None:
    first, *_ = re.findall(r"url=([^\"]+)", (SITE / "index.html").read_text())
    assert (SITE / first).is_file()
    (below,) = re.findall(r"url=([^\"]+)", (FOLDER / "index.html").read_text())
    assert (FOLDER / below).is_file()


def test_pages_say_their_version_and_offer_the_others(landing: str) -> None:
    assert f"<option>{trainplane.__version__}</option>" in landing
    told = json.loads((SITE / "versions.js").read_text().removeprefix("window.TRAINPLANE_VERSIONS = ").rstrip(";\n"))
    assert "docs/index.html" in told[trainplane.__version__]


def test_search_finds_a_field_a_class_of_trouble_and_a_setting() -> None:
    index = (FOLDER / "searchindex.js").read_text()
    for word in ("resourcespernod", "collectivetimeout", "groupkindconcurr"):
        assert word in index, f"{word} is not in the search index"


def test_it_is_light_or_dark(landing: str) -> None:
    assert 'class="theme-toggle' in landing
    assert "prefers-color-scheme" in landing


class TestVersions:
    def test_a_release_comes_before_its_candidates(self) -> None:
        mixed = ["0.2.0.dev0", "0.10.0", "0.2.0", "0.2.0rc1", "0.9.1"]
        assert newest_first(mixed)[:3] == ["0.10.0", "0.9.1", "0.2.0"]

    def test_versions_lie_beside_each_other(self, tmp_path: Path) -> None:
        for version in ("0.1.0", "0.2.0"):
            (tmp_path / version / "docs").mkdir(parents=True)
            (tmp_path / version / "docs/index.html").write_text("")
        (tmp_path / "0.2.0/docs/new.html").write_text("")
        (tmp_path / "unfinished").mkdir()
        assert write_common(tmp_path) == ["0.2.0", "0.1.0"]
        assert "url=0.2.0/docs/index.html" in (tmp_path / "index.html").read_text()
        assert "docs/new.html" in (tmp_path / "versions.js").read_text()


class TestLinks:
    def test_a_link_to_nothing_is_seen(self, tmp_path: Path) -> None:
        (tmp_path / "other.html").write_text('<h1 id="here"></h1>')
        page = tmp_path / "page.html"
        good = '<a href="other.html#here"></a><a href="#self" id="self"></a><a href="https://example.org"></a>'
        page.write_text(f'{good}<a href="other.html#gone"></a><a href="missing.html"></a><img src="none.png">')
        assert list(links.lost(tmp_path)) == [
            "page.html: other.html#gone",
            "page.html: missing.html",
            "page.html: none.png",
        ]
        assert links.external(tmp_path) == ["https://example.org"]
        assert links.fetched(tmp_path) == []
