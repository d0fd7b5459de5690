"""Histories of a fleet: what people do at the hub, what workers do, and what breaks. A function of a seed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.fleet.offers import TAINTED
from tests.simulation.history import Action, History
from tests.simulation.kueue import FLAVORS

if TYPE_CHECKING:
    from collections.abc import Callable

HUB = "hub"
WORKERS = ("east", "west")
CLUSTERS = (HUB, *WORKERS)
JOBS = ("a", "b", "c", "d")
FAULTS_END = 420.0
"""Virtual seconds after which nothing breaks any more, but for a worker that is lost."""

COINCIDENCES = 0.4
OFTEN = ("crowded",) * 3
"""The coincidences that come more often than others."""

PEOPLE = ("suspend", "resume", "delete", "recreate", "label", "evict", "drain")
OF_OPERATORS = ("operator_cut", "operator_silent", "operator_lag", "operator_kill", "reviews_down")
"""What breaks of the operator of one cluster."""
OF_WORKERS = ("worker_cut", "worker_flaps", "worker_restart", "slow_collector", "slow_engines")
"""What breaks of a worker, or between it and all of the hub."""
OF_VIEW = ("view_cut", "view_silent", "view_lag", "view_hung", "view_lost", "view_slow", "view_restart", "rotate")
"""What breaks of the hub server, or between it and a cluster."""
FAULTS = (*OF_OPERATORS, *OF_WORKERS, *OF_VIEW)
DELAYS = frozenset({"operator_cut", "operator_lag", "reviews_down", "worker_restart", "dark"})
"""Faults that hold up a request, or the news that a decision rests on, of an operator that works."""


def draw(seed: int) -> History:
    """Return the history of a seed; its replicas are those of each cluster's operator."""
    random = Random(f"fleet {seed}")
    actions = [
        Action(round(random.uniform(0, 120), 3), "create", name, _job(random))
        for name in JOBS[: random.randint(1, len(JOBS))]
    ]
    actions += [_deed(random) for _ in range(random.randint(0, 5))]
    actions += [_fault(random) for _ in range(random.choice((0, 1, 2, 3, 4)))]
    theme = random.choice((*THEMES, *OFTEN)) if random.random() < COINCIDENCES else ""
    if theme:
        if random.random() < 0.6:
            actions = [one for one in actions if one.kind not in FAULTS]
        actions += THEMES[theme](random)
    replicas = random.choice((1, 1, 1, 2))
    actions += [_offer(random) for _ in range(random.randint(0, 4))]
    return History(seed, replicas, tuple(sorted(actions, key=lambda one: one.at)), theme)


def _job(random: Random, **told: Any) -> dict[str, Any]:
    return {
        "runtime": random.choice(("torch", "brief", "again")),
        "nodes": random.randint(1, 3),
        "suspend": False,
        "deadline": random.choice((0, 0, 0, 0, 90)),
        "seconds": random.choice((5, 20, 60, 150)),
        "codes": random.choice(([0], [0], [0], [1, 0], [1, 1, 1, 1])),
        "dispatched": random.random() < 0.85,
    } | told


def _deed(random: Random) -> Action:
    kind, whom = random.choice(PEOPLE), random.choice(JOBS)
    how: dict[str, Any] = {"worker": random.choice(WORKERS), "moves": random.random() < 0.5}
    if kind == "recreate":
        how = _job(random)
    if kind == "label":
        how = {"note": random.randint(0, 99)}
    if kind == "drain":
        whom, how = random.choice(WORKERS), {"seconds": random.choice((20.0, 60.0, 200.0))}
    return Action(round(random.uniform(5, 300), 3), kind, whom, how)


def _offer(random: Random) -> Action:
    """What an administrator does to the queues of a cluster; a hub's that is drained takes all back from workers."""
    at, kind = round(random.uniform(0, 250), 3), random.choice(("offer", "offer", "split", "drain"))
    if kind == "split":
        return Action(at, kind, random.choice(WORKERS), {"quota": list(random.choice(((1, 3), (3, 1), (4, 0))))})
    if kind == "drain":
        return Action(at, kind, HUB, {"seconds": random.choice((5.0, 30.0))})
    how = {
        "pods": random.randint(0, 4),
        "policy": random.choice(("None", "None", "Hold", "HoldAndDrain")),
        "flavor": random.choice((*FLAVORS, TAINTED)),
    }
    return Action(at, kind, random.choice(CLUSTERS), how)


def _fault(random: Random) -> Action:
    kind = random.choice(FAULTS)
    begins = random.uniform(0, FAULTS_END - 5)
    lasts = min(FAULTS_END - begins, random.choice((3.0, 20.0, 60.0, 200.0)))
    how: dict[str, Any] = {"seconds": round(lasts, 3)}
    if kind.endswith("_lag"):
        how["lag"] = random.choice((0.5, 3.0, 20.0))
    if kind in {"view_hung", "view_lost", "view_slow"}:
        how["share"] = random.choice((0.1, 0.5, 1.0))
    whom = random.choice(WORKERS if kind in {*OF_WORKERS, "rotate"} else CLUSTERS)
    return Action(round(begins, 3), kind, whom, how)


# -- coincidences


def _moved_unseen(random: Random) -> list[Action]:
    """A worker goes dark as its operator lets a JobSet run, and its queue gives the training another place."""
    at, name = random.uniform(5, 100), random.choice(JOBS)
    job = _job(random, dispatched=True, seconds=900, codes=[0], deadline=0)
    how = {"name": name, "seconds": round(random.uniform(8, 20), 3)}
    darkness = [Action(round(at + 0.1, 3), "dark", worker, how) for worker in WORKERS]
    return [Action(round(at, 3), "recreate", name, job), *darkness]


def _lost_worker(random: Random) -> list[Action]:
    """A worker is away for longer than Kueue waits, with a training or before it began there."""
    at, name, worker = random.uniform(5, 100), random.choice(JOBS), random.choice(WORKERS)
    job = _job(random, dispatched=True, seconds=random.choice((60, 150)), deadline=0)
    return [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at + random.uniform(0.5, 20), 3), "worker_cut", worker, {"seconds": 1100.0}),
    ]


def _away_at_the_end(random: Random) -> list[Action]:
    """The hub server looks away while a training ends that failed."""
    at, name = random.uniform(5, 200), random.choice(JOBS)
    job = _job(random, dispatched=True, seconds=60, codes=random.choice(([0], [1, 1, 1, 1])), deadline=0)
    kind = random.choice(("view_restart", "view_cut", "view_silent"))
    return [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at + random.uniform(30, 70), 3), kind, random.choice(WORKERS), {"seconds": 40.0}),
    ]


def _late_news_of_the_hub(random: Random) -> list[Action]:
    """The hub server hears of pods on workers before it hears of Workloads on the hub."""
    at, name = random.uniform(5, 200), random.choice(JOBS)
    job = _job(random, dispatched=True, seconds=150, codes=[0], deadline=0)
    return [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at, 3), "view_lag", HUB, {"seconds": 60.0, "lag": 20.0}),
    ]


def _rotated(random: Random) -> list[Action]:
    """A worker's token is replaced while a training runs there."""
    at, name = random.uniform(5, 200), random.choice(JOBS)
    job = _job(random, dispatched=True, seconds=150, codes=[0], deadline=0)
    return [
        Action(round(at, 3), "recreate", name, job),
        *(Action(round(at + 40, 3), "rotate", worker, {"seconds": 0.0}) for worker in WORKERS),
    ]


def _cut_while_it_runs(random: Random) -> list[Action]:
    """A worker is cut off while a training runs there, and comes back while it does."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    job = _job(random, dispatched=True, seconds=150, codes=[0], deadline=0)
    kind = random.choice(("worker_cut", "view_cut", "view_hung"))
    cuts = [Action(round(at + 40, 3), kind, worker, {"seconds": 60.0, "share": 1.0}) for worker in WORKERS]
    return [Action(round(at, 3), "recreate", name, job), *cuts]


def _began_anew(random: Random) -> list[Action]:
    """The hub server starts while a training runs."""
    at, name = random.uniform(5, 200), random.choice(JOBS)
    job = _job(random, dispatched=True, seconds=150, codes=[0], deadline=0)
    return [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at + random.uniform(15, 60), 3), "view_restart", HUB, {"seconds": random.choice((1.0, 20.0))}),
    ]


def _drained(random: Random) -> list[Action]:
    """A worker gives up what it runs, and the other takes it."""
    at, name = random.uniform(5, 200), random.choice(JOBS)
    job = _job(random, dispatched=True, seconds=150, codes=[0], deadline=0)
    away = [
        Action(round(at + 40 + 60 * turn, 3), "drain", worker, {"seconds": 50.0}) for turn, worker in enumerate(WORKERS)
    ]
    return [Action(round(at, 3), "recreate", name, job), *away]


def _crowded(random: Random) -> list[Action]:
    """More is asked for than workers have, or than the hub gives, while one worker may take nobody."""
    at = random.uniform(5, 60)
    jobs = [
        _job(random, dispatched=True, nodes=random.choice((1, 2, 3, 3)), seconds=random.choice((60, 150)), deadline=0)
        for _ in JOBS
    ]
    quota = list(random.choice(((8, 0), (12, 0), (3, 5), (12, 2))))
    return [
        Action(round(at, 3), "split", HUB, {"quota": quota}),
        *(Action(round(at + random.uniform(0, 20), 3), "recreate", *one) for one in zip(JOBS, jobs, strict=True)),
        *(Action(round(at, 3), "drain", worker, {"seconds": 60.0}) for worker in WORKERS if random.random() < 0.3),
        *(_offer(random)._replace(at=round(at + random.uniform(0, 60), 3)) for _ in range(3)),
    ]


THEMES: dict[str, Callable[[Random], list[Action]]] = {
    "moved unseen": _moved_unseen,
    "lost worker": _lost_worker,
    "away at the end": _away_at_the_end,
    "late news of the hub": _late_news_of_the_hub,
    "rotated": _rotated,
    "cut while it runs": _cut_while_it_runs,
    "began anew": _began_anew,
    "drained": _drained,
    "crowded": _crowded,
}
