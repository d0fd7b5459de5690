"""Every page and screen can be read: contrast by WCAG AA, nothing cut, nothing on top of anything else.

And a check that finds nothing anywhere is no check: faults are planted, and found.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from tests.cli.looks.browser import PHONE, SCREENS, Finding, Screen, browsing
from tests.cli.looks.pictures import Picture, page_pictures, terminal_pictures
from tests.cli.looks.scenes import failed
from tests.cli.looks.screens import SIZES
from tests.cli.looks.terminal import terminal_page
from tests.size import sized
from trainplane.page.shell import report as written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.suite import SuiteReport

PLANTED: Final = {
    "well": ("", "<p>black on white, in the middle of nowhere</p>"),
    "faint text": ("contrast", "<p style='color:#999'>grey on white</p>"),
    "faint by opacity": ("contrast", "<div style='opacity:.4'><p>half there</p></div>"),
    "faint on its own ground": ("contrast", "<p style='background:#0b57b5;color:#222'>dark on blue</p>"),
    "faint label": ("contrast", "<style>p::before{content:'label';color:#bbb}</style><p>text</p>"),
    "cut by its box": (
        "cut",
        "<p style='width:5em;overflow:hidden;white-space:nowrap'>much longer than its box is</p>",
    ),
    "cut with dots": (
        "cut",
        "<p style='width:5em;overflow:hidden;white-space:nowrap;text-overflow:ellipsis'>longer than its box</p>",
    ),
    "cut below": ("cut", "<p style='height:1em;width:5em;overflow:hidden'>several lines of which one shows</p>"),
    "scrolls by mouse alone": ("cut", "<p style='height:1em;width:5em;overflow:auto'>several lines, one shows</p>"),
    "wider than the phone": ("cut", "<p style='white-space:nowrap'>" + "very " * 40 + "long</p>"),
    "beyond the edge": ("cut", "<body style='overflow:hidden'><p style='position:absolute;left:380px'>outside</p>"),
    "text on text": ("overlap", "<p>one line of text</p><p style='margin-top:-2.1em'>another on it</p>"),
    "under a box": (
        "covered",
        "<p>hidden</p><div style='position:absolute;inset:0;background:#fff'></div>",
    ),
}
TERMINAL_FAULT: Final = "\x1b[30;40mblack on black\x1b[0m well\n"


def _findings(pictures: Sequence[Picture]) -> dict[str, list[Finding]]:
    async def look() -> dict[str, list[Finding]]:
        found = {}
        async with browsing() as browser:
            for one in pictures:
                await browser.open(one.file.as_uri(), one.screen)
                found[one.name] = await browser.findings(one.screen)
        return found

    return asyncio.run(look())


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Finding]]:
    """Return what cannot be read of each picture, by its name: one Chromium looks at all of them."""
    folder: Path = tmp_path_factory.mktemp("looks")
    pictures = [*page_pictures(folder), *terminal_pictures(folder, sized(SIZES[:1], full=SIZES))]
    mailed = folder / "report.html"
    mailed.write_text(written(failed()))
    pictures += [Picture(f"report-{screen.label}", mailed, screen) for screen in SCREENS]
    for number, (name, (_, body)) in enumerate(PLANTED.items()):
        file = folder / f"planted-{number}.html"
        file.write_text(f"<!doctype html><meta charset=utf-8>{body}")
        pictures.append(Picture(name, file, Screen(*PHONE)))
    file = folder / "terminal.html"
    file.write_text(terminal_page(TERMINAL_FAULT, 40, dark=False))
    pictures.append(Picture("black on black", file, Screen("40x2", 400, 60)))
    return _findings(pictures)


def test_all_that_people_look_at_can_be_read(found: dict[str, list[Finding]], report: SuiteReport) -> None:
    looked = {name: findings for name, findings in found.items() if name not in {*PLANTED, "black on black"}}
    assert {name: findings for name, findings in looked.items() if findings} == {}
    sizes = {f"job-{nodes}-nodes-{screen.label}" for nodes in (2, 8, 256) for screen in SCREENS}
    assert sizes <= looked.keys()
    assert {f"watch-{nodes}-80x24-{tone}" for nodes in (2, 8, 256) for tone in ("light", "dark")} <= looked.keys()
    report.figure("pictures_read", len(looked))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(found: dict[str, list[Finding]], name: str) -> None:
    kind = PLANTED[name][0]
    kinds = {one.kind for one in found[name]}
    assert kind in kinds if kind else not kinds


def test_a_fault_of_a_terminal_is_found(found: dict[str, list[Finding]]) -> None:
    assert [(one.kind, one.text) for one in found["black on black"]] == [("contrast", "black on black")]
