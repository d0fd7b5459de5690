"""What `watch` and `top` show on a terminal, for pictures: `python -m tests.cli.looks.screens watch-8`, until killed.

The views and the screen are the program's own; only what they show is made up (`tests/unit/cli/live/facts`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tests.unit.cli.live.facts import NOW, a_fleet, a_training
from trainplane.cli.live.fleet import fleet_view
from trainplane.cli.live.job import job_view
from trainplane.cli.live.screen import Screen

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from trainplane.cli.live.cells import Glyphs

SIZES: Final = ((80, 24), (120, 40))
SCREENS: Final = {"watch-2": "mnist", "watch-8": "mnist", "watch-256": "mnist", "top": "team-1"}
"""What there is, and what is on it once it is drawn."""


def view(name: str, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """Return the lines of a screen."""
    if name == "top":
        return fleet_view(a_fleet(), NOW, width, height, glyphs)
    return job_view(a_training(int(name.partition("-")[2])), NOW, width, height, glyphs)


def main(name: str) -> None:
    """Show a screen until somebody ends it."""

    def drawn(_: datetime, width: int, height: int, glyphs: Glyphs) -> list[Text]:
        return view(name, width, height, glyphs)

    screen = Screen()
    with screen.open():
        screen.show(drawn)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
