"""Looks for planted faults and keeps what found each: `python -m tests.simulation.planted_search [NAME...]`."""

from __future__ import annotations

import sys

from tests.simulation.fleet.history import draw as draw_fleet
from tests.simulation.fleet.machine import run as run_fleet
from tests.simulation.fleet.planted import FLEET
from tests.simulation.fleet.planted import FOUND as FOUND_IN_FLEET
from tests.simulation.history import draw
from tests.simulation.machine import run
from tests.simulation.planted import FOUND, PLANTED
from tests.simulation.searching import Search

ONE_CLUSTER = Search(PLANTED, FOUND, draw, run)
A_FLEET = Search(FLEET, FOUND_IN_FLEET, draw_fleet, run_fleet)

if __name__ == "__main__":
    for search in (ONE_CLUSTER, A_FLEET):
        search.keep(sys.argv[1:])
