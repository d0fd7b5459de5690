"""A screen of `watch` or `top` that stays, to be photographed: `python -m tests.cli.looks.screens watch 256`.

Drawn by the same code as the commands, of facts that do not change, at a time that stands still.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from tests.unit.cli.live.facts import NOW, a_fleet, a_training
from trainplane.cli.live.fleet import fleet_view
from trainplane.cli.live.job import job_view
from trainplane.cli.live.screen import Screen
from trainplane.cli.top import NOTE as LEAVE
from trainplane.cli.watch import NOTE
from trainplane.explain.explanation import Explanation

if TYPE_CHECKING:
    from trainplane.cli.live.screen import View

FAULT = Explanation(
    "Running",
    "mnist is restarting after node-1 ran out of memory: its container was ended by the kernel with 31.8 GiB in use",
    cause="OutOfMemory",
    remedy="ask for more memory in resourcesPerNode, or make batches smaller",
)


def view(what: str, size: int) -> View:
    """Return a screen: of a training with so many nodes, or of a fleet with so many queues."""
    if what == "watch":
        seen = a_training(size, explanation=FAULT)
        return lambda _, width, height, glyphs: job_view(seen, NOW, width, height, glyphs, note=NOTE)
    fleet = a_fleet(size)
    return lambda _, width, height, glyphs: fleet_view(
        fleet, NOW, width, height, glyphs, title="context hub", note=LEAVE
    )


def main(what: str = "watch", size: str = "8") -> None:
    """Show it until the terminal is closed."""
    screen = Screen()
    with screen.open():
        while True:
            screen.show(view(what, int(size)))
            threading.Event().wait(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
