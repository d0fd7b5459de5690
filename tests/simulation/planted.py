"""Faults to put into the operator and its runtime, one at a time, that a simulation must find.

Each is a patch of one function or method, from outside, for the time of some histories; what it does is what somebody
might have written. Those of `docs/architecture/under-fire.md` name their finding.

    PLANTED     all of them: `planted_runtime`, of leadership, mirrors and queues; `planted_operator`, of the rest
    FINDING     the history that found each when it was looked for last, which is asked first
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.simulation.planted_operator import OPERATOR
from tests.simulation.planted_runtime import RUNTIME

PLANTED: Final = (*OPERATOR, *RUNTIME)

FOUND: Final = Path(__file__).with_name("found.json")
FINDING: Final[dict[str, int]] = json.loads(FOUND.read_text())
"""The seed of a history that finds a fault, by the fault's name; `python -m tests.simulation.planted_search` looks."""
