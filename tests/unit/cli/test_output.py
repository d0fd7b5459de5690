from __future__ import annotations

import io
import json

import pytest

from trainplane.cli.output import Output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        Output(stream).line("fine", colour="green", bold=True, after="  all")
    assert terminal.getvalue() == "\033[1;32mfine\033[0m  all\n"
    assert file.getvalue() == "fine  all\n"


def test_who_wants_no_colours_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    Output(terminal).item("✗", "red", "", "text", indent=0)
    assert "\033" not in terminal.getvalue()


def test_long_texts_are_wrapped_under_themselves() -> None:
    stream = io.StringIO()
    Output(stream, width=60).item("✗", "red", "area  ", "word " * 20, indent=2)
    lines = stream.getvalue().splitlines()
    assert len(lines) > 1
    assert lines[0].startswith("  ✗ area  word")
    assert all(line.startswith(" " * 10 + "word") for line in lines[1:])
    assert max(map(len, lines)) <= 60


def test_words_are_never_broken_and_nothing_is_an_empty_line() -> None:
    stream = io.StringIO()
    output = Output(stream, width=60)
    output.item("→", "cyan", "", f"--worker {'x' * 70}", indent=30)
    output.item("→", "cyan", "", "", indent=0)
    assert "x" * 70 in stream.getvalue()
    assert stream.getvalue().endswith("→ \n")


def test_a_difference_is_coloured_by_line_and_never_wrapped() -> None:
    stream = io.StringIO()
    Output(stream, width=60, colours=True).diff(f"@@ a @@\n b\n-c\n+{'d' * 80}", indent=2)
    head, same, gone, new = stream.getvalue().splitlines()
    assert head == "  \033[36m@@ a @@\033[0m"
    assert same == "   b"
    assert gone == "  \033[31m-c\033[0m"
    assert new == f"  \033[32m+{'d' * 80}\033[0m"


@pytest.mark.parametrize(("columns", "width"), [("20", 60), ("80", 80), ("400", 120)])
def test_the_width_is_the_terminals_within_reason(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    Output(stream).item("", "", "", "ab " * 200, indent=0)
    assert width - 3 <= max(map(len, stream.getvalue().splitlines())) <= width


def test_data_is_json() -> None:
    stream = io.StringIO()
    Output(stream).json({"a": [1]})
    assert json.loads(stream.getvalue()) == {"a": [1]}


def test_nobody_elses_text_steers_the_terminal() -> None:
    stream = io.StringIO()
    output = Output(stream, width=80, colours=True)
    forged = "a\033[2J\x9b31mb\x08\u202ec"
    output.line(forged, colour="red", after=forged)
    output.item("x", "red", forged, forged, indent=2)
    output.diff(f"+{forged}", indent=2)
    shown = stream.getvalue()
    for painted in ("\033[31m", "\033[32m", "\033[0m"):
        shown = shown.replace(painted, "")
    assert "\\x1b[2J\\x9b31mb\\x08\\u202ec" in shown
    assert all(one.isprintable() or one == "\n" for one in shown)
