"""Log lines with the time of each before it, as kubelets send them and supervisors write them.

`2026-11-15T05:11:08.123456789Z epoch 3`: the time at which the line was taken, a space, and what was printed.
"""

from __future__ import annotations

from datetime import timedelta

from trainplane.api.moments import BEGINNING
from trainplane.client.types.jobs import LogLine
from trainplane.kube.containerlogs import nanoseconds, text_of


def read_line(step: str, line: bytes) -> LogLine:
    """Return a stamped line as a step's; bytes that are no UTF-8 become a mark each."""
    moment = nanoseconds(line)
    text = text_of(line).decode(errors="replace").removesuffix("\r")
    return LogLine(step, text, None if moment is None else BEGINNING + timedelta(microseconds=moment // 1000))
