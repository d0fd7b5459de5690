"""docs/executed.txt: every command and YAML of the pages has its line, and every line is true."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from docs import executed
from docs.executed import ALIKE, JUDGED, NOT_RUN, ROOT, RUNS, Entry, entries, pages, problems
from tests.fenced import Fence, fences
from tests.seeds.documents.promises import runs_in_full_only

TRIED = [one for one in entries() if one.verdict != NOT_RUN]


def test_no_block_is_left_out_and_none_stands_there_twice() -> None:
    assert list(problems(entries())) == []


def test_a_block_without_a_line_is_told() -> None:
    first, *others = entries()
    assert any(first.page in one and "0 times" in one for one in problems(others))
    assert any("2 times" in one for one in problems([first, *entries()]))
    gone = replace(first, blocks="yaml 99")
    assert any("no such block" in one for one in problems([gone, *entries()]))
    assert any("'perhaps'" in one for one in problems([replace(first, verdict="perhaps"), *others]))


def test_blocks_are_named_by_language_and_number() -> None:
    entry = Entry("page", "sh 1-2,4", RUNS, "")
    assert [number for number in range(1, 6) if entry.covers(Fence("sh", number, ""))] == [1, 2, 4]
    assert not entry.covers(Fence("yaml", 1, ""))
    assert Entry("page", "sh", RUNS, "").covers(Fence("sh", 9, ""))


@pytest.mark.parametrize("entry", TRIED, ids=lambda one: f"{one.page} {one.blocks}")
def test_the_test_is_there(entry: Entry) -> None:
    assert runs_in_full_only(entry.proof) in {True, False}


@pytest.mark.parametrize(
    "entry", [one for one in TRIED if one.verdict != ALIKE], ids=lambda one: f"{one.page} {one.blocks}"
)
def test_who_reads_a_block_knows_its_page(entry: Entry) -> None:
    """By its name, in the test's module or in one beside it, or since it goes through all pages."""
    path = Path(entry.page)
    word = path.parent.name if path.stem == "README" and path.parent.name else path.stem
    module = ROOT / entry.proof.partition("::")[0]
    texts = [one.read_text() for one in module.parent.glob("*.py")]
    assert any(re.search(rf"\b{re.escape(word)}\b", text) for text in texts) or re.search(
        r"\b(PAGES|pages\(\)|write_page)", module.read_text()
    )


def test_a_judgement_is_quick_and_a_reason_is_said() -> None:
    assert [one for one in TRIED if one.verdict == JUDGED and not one.proof.startswith("tests/unit/")] == []
    assert [one for one in entries() if one.verdict == NOT_RUN and len(one.proof.split()) < 4] == []


def test_what_is_typed_is_marked_as_such() -> None:
    """A block without a language would not be looked for in the table."""
    typed = re.compile(r"(?:\$ |(?:kubectl|helm|make|pip|python3?|trainplane|export) )")
    found = [
        (page.name, block.text.splitlines()[0])
        for page in pages()
        for block in fences(page)
        if block.language in {"", "text"} and typed.match(block.text)
    ]
    assert found == []


def test_the_page_is_as_the_table_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert executed.main(["--check"]) == 0, capsys.readouterr().err
