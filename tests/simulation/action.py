"""What a history is made of: something that happens at a moment, as plain data."""

from __future__ import annotations

from typing import Any, NamedTuple

JOBS = ("a", "b", "c")
"""The names of TrainJobs."""


class Action(NamedTuple):
    """Something that happens at a moment: `kind` to `whom`."""

    at: float
    kind: str
    whom: str
    how: dict[str, Any]
