"""Stops, as histories have them: pods that talk to each other and react to SIGTERM, and what stops them.

A share of all histories gets them, from a source of chance of its own: what else happens in a history stays. In these,
every TrainJob says how its pods behave, most use a runtime with the shipped policy, and some of their pods are deleted,
drained, or lost, or the TrainJob is suspended and resumed several times in a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.action import Action

if TYPE_CHECKING:
    from random import Random

STOPS = "stops"
"""The theme of a history with stops that has no other."""

STOPPED = 0.3
"""The share of histories with stops."""

SHIPPED = 0.75
"""The share of their runtimes that have the shipped policy instead."""

MOST_SECONDS = 20
"""The longest attempt of a TrainJob that never succeeds: it is restarted up to ten times."""

TERMS = ("saves", "saves", "signal", "error", "ignores", "mixed")
PEERS = ("error", "error", "abort", "")
FAULTS = ("program", "program", "python", "device", "device", "silent")
KINDS = ("delete_pod", "drain", "lose_node", "flap", "evict", "hold")
EVICTIONS = ("EvictionByEvictionAPI", "EvictionByEvictionAPI", "PreemptionByScheduler")


def with_stops(random: Random, actions: list[Action]) -> list[Action]:
    """Return what happens in a history with stops in it."""
    instead = {name: other for name, other in _INSTEAD.items() if random.random() < SHIPPED}
    changed = [_with_pods(random, one, instead) for one in actions]
    jobs = [one for one in changed if "runtime" in one.how]
    for _ in range(random.randint(1, 5) if jobs else 0):
        job = random.choice(jobs)
        at = job.at + random.uniform(0.5, min(job.how["seconds"], 150) + 15.0)
        changed += _stop(random, job, at)
    return changed


_INSTEAD = {"torch": "shipped", "brief": "strict", "again": "shipped"}


def _with_pods(random: Random, action: Action, instead: dict[str, str]) -> Action:
    """Return an action with another runtime, if one is used instead, and with the behavior of its pods."""
    if action.kind == "edit_runtime":
        return action._replace(whom=instead.get(action.whom, action.whom))
    if "runtime" not in action.how:
        return action
    how: dict[str, Any] = {**action.how, "runtime": instead.get(action.how["runtime"], action.how["runtime"])}
    how["pods"] = {
        "term": random.choice(TERMS),
        "peers": random.choice(PEERS),
        "grace": random.choice((30, 30, 10, 2)),
        "start": random.choice((0.2, 3.0, 10.0)),
        "faults": [random.choice(FAULTS) for _ in range(random.choice((1, 1, 2, 3)))],
    }
    if random.random() < 0.3:
        how["codes"] = random.choice(([1, 0], [1, 1, 1, 0]))
    if random.random() < 0.5:
        how["seconds"] = max(how["seconds"], 20)
    if 0 not in how["codes"]:
        how["seconds"] = min(how["seconds"], MOST_SECONDS)
    return action._replace(how=how)


def _stop(random: Random, job: Action, at: float) -> list[Action]:
    """Return what stops pods of a TrainJob, once or several times."""
    kind = random.choice(KINDS)
    if kind == "flap":
        return _flap(random, job.whom, at)
    if kind == "evict":
        return [Action(round(at, 3), "evict", job.whom, {"moves": random.random() < 0.3})]
    if kind == "hold":  # the TrainJob is suspended while its pods end, by themselves or because one was stopped
        ends = job.at + job.how["seconds"] + job.how["pods"]["start"] * random.random() + random.uniform(0.0, 4.0)
        stop = random.choice(("delete_pod", "drain"))
        stopped = _of_pods(random, job.whom, stop, at) if random.random() < 0.5 else []
        held = (stopped[-1].at if stopped else ends) + random.choice((0.2, 1.0, 5.0)) * random.random()
        resumed = Action(round(held + random.choice((1.0, 5.0, 30.0)) * random.random(), 3), "resume", job.whom, {})
        return [*stopped, Action(round(held, 3), "suspend", job.whom, {}), resumed]
    stops = []
    for turn in range(1 + random.choice((0, 0, 0, 1, 3))):
        stops += _of_pods(random, job.whom, kind, at + turn * 25.0 * random.random())
    return stops


def _of_pods(random: Random, whom: str, kind: str, at: float) -> list[Action]:
    how: dict[str, Any] = {}
    if random.random() < 0.8:
        how["index"] = random.randint(0, 2)
    if kind == "drain":
        how["reason"] = random.choice(EVICTIONS)
    return [Action(round(at, 3), kind, whom, how)]


def _flap(random: Random, whom: str, at: float) -> list[Action]:
    """Return a TrainJob that is suspended and resumed in quick succession, and resumed at last."""
    times = [at]
    for _ in range(random.randint(1, 6)):
        times.append(times[-1] + random.choice((0.3, 1.0, 3.0, 10.0)) * random.uniform(0.5, 1.5))
    wishes = ("suspend", "resume")
    flaps = [Action(round(one, 3), wishes[turn % 2], whom, {}) for turn, one in enumerate(times)]
    return [*flaps, Action(round(times[-1] + random.uniform(0.5, 20.0), 3), "resume", whom, {})]
