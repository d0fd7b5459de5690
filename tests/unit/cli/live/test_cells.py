"""Text in cells: whatever it holds, it takes the room it was given and steers nothing."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tests.unit.cli.live.facts import HOSTILE
from trainplane.cli.live.cells import ASCII, UNICODE, cell, column, line, plain, spaced, wrapped


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("width", [0, 1, 2, 7, 40])
def test_a_cell_is_never_wider_than_it_may_be_and_a_column_is_as_wide_as_it_must(text: str, width: int) -> None:
    assert cell_len(cell(text, width)) <= width
    assert cell_len(column(text, width)) == width
    assert all(one.isprintable() or one in "\u2068\u2069" for one in cell(text, width))
    assert all(cell_len(row) <= width for row in wrapped(text, max(width, 2), 3) if width >= 2)


def test_what_fits_is_not_touched_and_what_is_cut_is_marked() -> None:
    assert cell("loss", 4) == "loss"
    assert cell("accuracy", 5) == "accu…"
    assert cell("accuracy", 5, ASCII.more) == "accu~"


def test_control_characters_are_written_out() -> None:
    assert plain("a\x1b[31mb\x07") == "a\\x1b[31mb\\x07"
    assert plain("\u202eevil") == "\\u202eevil"


def test_letters_from_right_to_left_are_kept_from_turning_their_neighbours() -> None:
    turning = "שלום"
    assert cell(turning, 10) == f"\u2068{turning}\u2069"
    assert cell("plain", 10) == "plain"


def test_a_pile_of_marks_is_cut_and_a_letter_keeps_its_own() -> None:
    assert plain("a" + "\u0301" * 50 + "b") == "a\u0301\u0301b"
    assert plain("e\u0301") == "e\u0301"


def test_text_is_wrapped_between_words_and_what_does_not_fit_is_marked() -> None:
    assert wrapped("one two three four", 9, 3) == ["one two", "three", "four"]
    assert wrapped("one two three four five", 9, 2) == ["one two", "three fo…"]
    assert wrapped("", 9, 2) == []
    assert wrapped("text", 9, 0) == []


def test_parts_are_set_apart_only_where_there_is_room() -> None:
    part, last = [line("a"), line("b")], [line("z")]
    assert [str(one) for one in spaced([part, [], part], last, 8)] == ["a", "b", "", "a", "b", "", "", "z"]
    assert [str(one) for one in spaced([part, part], last, 5)] == ["a", "b", "a", "b", "z"]


def test_signs_differ_by_their_shape() -> None:
    for glyphs in (UNICODE, ASCII):
        states = [glyphs.running, glyphs.again, glyphs.pending, glyphs.absent, glyphs.done, glyphs.failed]
        assert len({*states, glyphs.unknown}) == 7
        assert all(cell_len(sign) == 1 for sign in (*states, *glyphs.levels, glyphs.full, glyphs.empty))
    assert all(getattr(ASCII, name).isascii() for name in ASCII.__dataclass_fields__)
