"""The lines of a failed step that say what was wrong: those before its launcher speaks about it.

torchrun and mpirun print a report of their own after a process has failed, some dozens of lines, in which the error
itself does not stand.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.client.display.facts import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

SEARCHED_LINES: Final = 120
"""Lines among which the telling ones are looked for: a launcher's report and an error before it."""

_REPORT: Final = re.compile(
    r"torch[./]distributed[./]elastic[./]multiprocessing[./]api.*failed \(exitcode"
    r"|(mpirun|prterun|mpiexec) (detected that|noticed that)"
    r"|Primary job +terminated normally, but"
    r"|BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
)
_NOISE: Final = re.compile(r"torch[./]distributed[./]elastic.*(closing signal|Received \d+ death signal)|^[-=]{20,}$")


def find_telling(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the last lines, at most so many, before a launcher's report; the very last where there is none.

    Colours are taken out: the lines go into messages.
    """
    lines = [printable(line) for line in lines]
    report = max((place for place, line in enumerate(lines) if _REPORT.search(line)), default=len(lines))
    before = [line for line in lines[:report] if not _NOISE.search(line)]
    return tuple((before or lines)[-most:])
