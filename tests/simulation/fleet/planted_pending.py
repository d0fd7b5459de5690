"""Faults to put into how the hub server tells why a job waits, and what would let it start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tests.simulation.fleet import workload as wl
from tests.simulation.planting import Planted, around, returns
from trainplane.hub.pending import advice, assessment, explain, quota, state


def _forgets_evictions(original: Any, facts: Any) -> Any:
    """Tell what a job waits for that has quota, whatever is under way to take it back."""
    return original(replace(facts, workload=wl.told(facts.workload, wl.EVICTED, "", "", "", value=False)))


def _each_for_all(original: Any, case: Any, short: Any) -> Any:
    """Tell of each flavor as if there were no other."""
    return original(case, replace(short, spared=False))


def _room_in_the_dark(original: Any, cluster: str, worker: Any) -> Any:
    """Take a worker that cannot be asked for one that has room."""
    found = original(cluster, worker)
    return replace(found, fits=True) if isinstance(worker, str) else found


PENDING: Final = (
    Planted(
        "what is being stopped is about to start",
        explain,
        "causes_after_quota",
        around(state.causes_after_quota, _forgets_evictions),
    ),
    Planted(
        "a flavor that is too small stands for all",
        explain,
        "_short",
        around(explain._short, _each_for_all),
        theme="crowded",
    ),
    Planted("advice counts queues that do not admit", advice, "_admits", returns(True), theme="crowded"),
    Planted("another queue is advised by the hub alone", advice, "_reaches_room", returns(True), theme="crowded"),
    Planted("what others use is free", quota, "reserved_of", returns({}), theme="crowded"),
    Planted("whoever is there stands in line", assessment, "waits", returns(True)),
    Planted("a worker that is cut off has room", explain, "_ask", around(explain._ask, _room_in_the_dark)),
    Planted("a queue that is drained admits", state, "_RUNNING", (*state._RUNNING, "HoldAndDrain")),
)
