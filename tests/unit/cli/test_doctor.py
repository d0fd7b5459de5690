from __future__ import annotations

import io

from trainplane.cli.doctor import show
from trainplane.cli.output import Output
from trainplane.client.doctor.report import Finding, Report


def shown(*findings: Finding) -> str:
    out = io.StringIO()
    show(Report(findings, reached=True), Output(out, width=100, colours=False))
    return out.getvalue()


def test_an_area_is_named_once_and_a_remedy_stands_below_its_finding() -> None:
    text = shown(
        Finding("rights", "ok", "you may"),
        Finding("rights", "wrong", "you may not", "ask an admin"),
        Finding("trial", "unknown", "no idea", "try again"),
    )
    assert text.splitlines() == [
        "✓ rights  you may",
        "✗         you may not",
        "          → ask an admin",
        "? trial   no idea",
        "          → try again",
        "1 thing is wrong; 1 could not be seen.",
    ]


def test_where_nothing_is_wrong_that_is_said() -> None:
    assert shown(Finding("trial", "warning", "soon", "look")).splitlines()[-1] == "Nothing is wrong."


def test_what_a_cluster_writes_does_not_steer_the_terminal() -> None:
    text = shown(Finding("trial", "wrong", "refused: \x1b[2J\x1b]0;owned\x07", "see \x1b[31m"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert r"\x1b[2J" in text
