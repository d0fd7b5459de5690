"""Histories: what people do and what breaks, and when. A function of a seed, and plain data, so that one can be cut."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.action import JOBS, Action
from tests.simulation.people import MOST_RESTARTS, PLAIN
from tests.simulation.rare import DISASTERS, RARE
from tests.simulation.stops import STOPPED, STOPS, with_stops

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JOBS", "Action", "History", "draw"]

REPLICAS = ("r0", "r1", "r2")
FAULTS_END = 420.0
"""Virtual seconds after which nothing breaks any more."""


class History(NamedTuple):
    """A seed, for all that is drawn while it runs, and what happens."""

    seed: int
    replicas: int
    actions: tuple[Action, ...]
    theme: str = ""
    """The coincidence in it, if any."""

    @property
    def calm(self) -> float:
        """When the last that is done, or broken, is over."""
        return max((one.at + one.how.get("seconds", 0.0) for one in self.actions), default=0.0)

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes that are installed: those of every cluster, and those that its TrainJobs name."""
        named = {one.how.get("runtime", "") for one in self.actions}
        return (*PLAIN, *(name for name in MOST_RESTARTS if name in named))

    @property
    def clocks_apart(self) -> float:
        """How many seconds the clocks of replicas and API server are apart, at most and at any two moments."""
        skews, least, most = dict.fromkeys(REPLICAS, 0.0), 0.0, 0.0
        for one in self.actions:
            for name in skews if one.whom == "all" else {one.whom} & skews.keys():
                if one.kind in {"skew", "jump"}:
                    skews[name] = one.how["skew"] if one.kind == "skew" else skews[name] + one.how["by"]
                least, most = min(least, skews[name]), max(most, skews[name])
        return most - least

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**self._asdict(), "actions": [list(one) for one in self.actions]}

    @classmethod
    def read(cls, plain: dict[str, Any]) -> History:
        """Return what `plain` wrote."""
        return cls(**{**plain, "actions": tuple(Action(*one) for one in plain["actions"])})


COINCIDENCES = 0.3
"""The share of histories with a coincidence that chance alone would seldom bring: each was a finding once."""

PEOPLE = ("suspend", "resume", "delete", "recreate", "reapply", "label", "edit_runtime", "evict", "mistake")
MISTAKES = ("nobody trains", "no trainer", "a patch while it runs", "no such runtime")
FAULTS = (
    "refused",
    "broken",
    "lost",
    "unanswered",
    "hung",
    "slow",
    "stale",
    "cut",
    "silent",
    "cut_streams",
    "end_streams",
    "lag",
    "kill",
    "stop",
    "compact",
    "reviews_down",
    "skew",
    "slow_collector",
    "slow_engines",
    "api_restart",
    "lease_cut",
)


DELAYS = frozenset((*FAULTS, *DISASTERS)) - {
    "jump",
    "kill",
    "stop",
    "silent",
    "compact",
    "skew",
    "cut_streams",
    "end_streams",
    "slow_collector",
    "slow_engines",
    "lease_cut",
}
"""Faults that hold up a request, or the news that a decision rests on, of a replica that works."""


def draw(seed: int) -> History:
    """Return the history of a seed."""
    random = Random(f"history {seed}")
    actions = [
        Action(round(random.uniform(0, 120), 3), "create", name, _job(random))
        for name in JOBS[: random.randint(1, len(JOBS))]
    ]
    for _ in range(random.randint(0, 7)):
        kind = random.choice(PEOPLE)
        whom = random.choice(("torch", "brief", "again") if kind == "edit_runtime" else JOBS)
        how = _job(random) if kind == "recreate" else _how(random, kind)
        actions.append(Action(round(random.uniform(5, FAULTS_END), 3), kind, whom, how))
    actions += [_fault(random) for _ in range(random.choice((0, 1, 2, 3, 4, 6)))]
    replicas = random.choice((1, 1, 2, 2, 3))
    theme = random.choice(tuple(THEMES)) if random.random() < COINCIDENCES else ""
    if theme:
        replicas = max(2, replicas)
        if random.random() < 0.6:
            actions = [one for one in actions if one.kind not in FAULTS]
        if theme == LOST_SNAPSHOT:  # one that nobody knows any more stays away
            actions = [one for one in actions if one.kind != "edit_runtime"]
        actions += THEMES[theme](random, REPLICAS[:replicas])
    rare = Random(f"disaster {seed}")
    if not theme and rare.random() < RARE:
        theme = rare.choice(tuple(DISASTERS))
        if rare.random() < 0.6:
            actions = [one for one in actions if one.kind not in FAULTS]
        actions += DISASTERS[theme](rare, REPLICAS[:replicas], _plain)
    stops = Random(f"stops {seed}")
    if stops.random() < STOPPED:
        if not theme and stops.random() < 0.6:
            actions = [one for one in actions if one.kind not in FAULTS]
        actions = with_stops(stops, actions)
        theme = theme or STOPS
    return History(seed, replicas, tuple(sorted(actions, key=lambda one: one.at)), theme)


def _how(random: Random, kind: str) -> dict[str, Any]:
    if kind == "label":
        return {"note": random.randint(0, 99)}
    if kind == "mistake":
        return {"mistake": random.choice(MISTAKES)}
    return {"moves": random.random() < 0.5} if kind == "evict" else {}


def _job(random: Random) -> dict[str, Any]:
    runtime = random.choice(("torch", "brief", "again"))
    codes = random.choice(([0], [0], [0], [1, 0], [1, 1, 1, 1]))
    return {
        "runtime": runtime,
        "nodes": random.randint(1, 3),
        "queue": random.random() < 0.4,
        "suspend": random.random() < 0.15,
        "deadline": random.choice((0, 0, 0, 0, 30, 90)),
        "seconds": random.choice((1, 5, 20, 60, 150)),
        "codes": codes,
        "dispatched": random.random() < 0.05,
    }


def _plain(random: Random, **told: Any) -> dict[str, Any]:
    """Return a job that runs at once and as long as it likes, but for what is told."""
    return {**_job(random), "suspend": False, "queue": False, "deadline": 0, "dispatched": False} | told


def _old_mirror(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A follower's watches fall silent, somebody changes their mind, and the follower becomes the leader."""
    behind, at, name = random.choice(replicas), random.uniform(20, 120), random.choice(JOBS)
    wishes = random.choice((("suspend", "resume"), ("resume", "suspend"), ("delete",), ("recreate",), ("evict",)))
    job = _plain(random, seconds=240, queue=wishes == ("evict",))
    first, *second = wishes
    actions = [Action(round(max(0.0, at - 40), 3), "recreate", name, job)]
    if second:
        actions.append(Action(round(at - 8, 3), first, name, {}))
    how = job if wishes[-1] == "recreate" else _how(random, wishes[-1])
    actions.append(Action(round(at + 4, 3), "silent", behind, {"seconds": 280.0, "share": 0.1}))
    actions.append(Action(round(at + random.uniform(6, 30), 3), wishes[-1], name, how))
    killed = at + random.choice((-8.5, 1.0, random.uniform(30, 60)))
    others = [other for other in replicas if other != behind]
    return actions + [Action(round(killed, 3), "kill", other, {"seconds": 150.0, "share": 0.1}) for other in others]


def _away_at_the_end(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """Nobody looks while a training ends, and for a while after."""
    at, name = random.uniform(5, 200), random.choice(JOBS)
    job = _plain(random, runtime=random.choice(("brief", "again")), seconds=20)
    away = random.choice(("kill", "stop", "cut"))
    return [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at + random.uniform(10, 24), 3), away, "all", {"seconds": 120.0, "share": 0.1}),
    ]


def _moved_unseen(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A queue takes a training's place and gives it another, while nobody of ours sees it, or only the end of it.

    It gives the place to others when no pod is counted: so most come while JobSet is slow to count, and all that
    happened is then seen at once.
    """
    at, name = random.uniform(5, 150), random.choice(JOBS)
    job = _plain(random, seconds=random.choice((240, 900, 900)), queue=True, codes=[0])
    created = Action(round(at, 3), "recreate", name, job)
    if random.random() < 0.6:
        silent = at + random.uniform(2.5, 5)
        moves = {"moves": random.random() < 0.8}
        return [
            created,
            Action(round(at - 1, 3), "slow_engines", "all", {"seconds": 40.0, "share": 0.6}),
            Action(round(silent, 3), "silent", "all", {"seconds": 10.0, "share": 0.6}),
            Action(round(silent + random.uniform(0.5, 3), 3), "evict", name, moves),
            Action(round(silent + 10.5, 3), "cut_streams", "all", {"seconds": 1.0, "share": 0.6}),
        ]
    away = random.choice(("silent", "lag", "slow", "cut_streams"))
    how = {"seconds": 60.0, "share": 0.6, "lag": 20.0}
    evictions = [
        Action(round(at + 30 + 25 * turn, 3), "evict", name, _how(random, "evict"))
        for turn in range(random.randint(1, 4))
    ]
    return [created, Action(round(at + random.uniform(20, 40), 3), away, "all", how), *evictions]


def _lost_lease(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A leader can write everything but its Lease, while there is something to do."""
    at, name = random.uniform(15, 150), random.choice(JOBS)
    job = _plain(random, seconds=20)
    actions = [
        Action(round(at, 3), "lease_cut", one, {"seconds": 100.0, "share": 1.0})
        for one in replicas[: random.randint(1, len(replicas))]
    ]
    times = [at + random.uniform(40, 130) for _ in range(4)]
    return actions + [Action(round(one, 3), "recreate", name, job) for one in times]


def _forgotten(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """Watches break, something is deleted, and the server forgets what happened before they are resumed."""
    at, name = random.uniform(15, 150), random.choice(JOBS)
    job = _plain(random, seconds=150, suspend=random.random() < 0.5)
    away = {"seconds": 20.0, "share": 1.0}
    return [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at + 20, 3), "cut", random.choice((*replicas, "all")), away),
        Action(round(at + 23, 3), random.choice(("delete", "recreate")), name, job),
        Action(round(at + 30, 3), "compact", "all", {"seconds": 0.0, "share": 1.0}),
    ]


def _reapplied(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A file is applied again while its training waits in the queue."""
    at, (first, second) = random.uniform(5, 150), random.sample(JOBS, 2)
    job = _plain(random, nodes=3, seconds=60, queue=True)
    return [
        Action(round(at, 3), "recreate", first, job),
        Action(round(at + 6, 3), "recreate", second, job),
        Action(round(at + random.uniform(10, 40), 3), "reapply", second, {}),
    ]


def _storm(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """Most requests go wrong in one way while a training is made, changed and ends."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    job = _plain(random, seconds=20)
    fault = random.choice(("broken", "lost", "unanswered", "slow", "refused"))
    return [
        Action(round(at, 3), fault, "all", {"seconds": 60.0, "share": 0.6}),
        Action(round(at + 1, 3), "recreate", name, job),
        Action(round(at + random.uniform(2, 20), 3), "suspend", name, {}),
        Action(round(at + random.uniform(21, 30), 3), "resume", name, {}),
    ]


def _recreated(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A training is deleted and made again, and the garbage collector takes its time."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    job = _plain(random, seconds=60)
    return [
        Action(round(at, 3), "slow_collector", "all", {"seconds": 60.0, "share": 1.0}),
        Action(round(at + 1, 3), "recreate", name, job),
        Action(round(at + 15, 3), "recreate", name, {**job, "nodes": random.randint(1, 3)}),
    ]


def _lost_snapshot(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """Somebody deletes the snapshot of a training that runs or waits, at times while nobody of ours looks."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    job = {**_job(random), "seconds": 150, "suspend": random.random() < 0.5, "queue": False, "deadline": 0}
    actions = [Action(round(at, 3), "recreate", name, job), Action(round(at + 45, 3), "delete_snapshot", name, {})]
    if random.random() < 0.5:
        actions.append(Action(round(at + 40, 3), "kill", "all", {"seconds": 10.0, "share": 1.0}))
    return actions


LOST_SNAPSHOT = "lost snapshot"


def _edited_while_held(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """An administrator edits a runtime while a training is held back, which then begins, or goes on."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    job = _plain(random, seconds=60, suspend=random.random() < 0.5)
    actions = [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at + 12, 3), "suspend", name, {}),
        Action(round(at + 22, 3), "edit_runtime", job["runtime"], {}),
        Action(round(at + 62, 3), "resume", name, {}),
    ]
    if random.random() < 0.6:
        actions.append(Action(round(at + 26, 3), "kill", "all", {"seconds": 4.0, "share": 0.1}))
    if random.random() < 0.6:
        actions.append(Action(round(at + 40, 3), "delete_jobset", name, {}))
    return actions


def _too_long(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A training wants to run longer than it may; perhaps it is held back in between, or has a queue."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    allowed = random.choice((30, 90))
    job = _plain(random, seconds=150, deadline=allowed, queue=random.random() < 0.4)
    actions = [Action(round(at, 3), "recreate", name, job)]
    if random.random() < 0.6:
        actions.append(Action(round(at + random.uniform(5, 25), 3), "suspend", name, {}))
        actions.append(Action(round(at + random.uniform(30, 120), 3), "resume", name, {}))
    return actions


def _one_after_another(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A training of a queue waits for another one, which may end well, or not, or go."""
    at, (first, second) = random.uniform(5, 100), random.sample(JOBS, 2)
    earlier = _plain(random, seconds=random.choice((20, 60)), queue=random.random() < 0.5)
    later = _plain(random, seconds=20, queue=True, after=first)
    actions = [
        Action(round(at, 3), "recreate", first, earlier),
        Action(round(at + random.uniform(-4, 10), 3), "recreate", second, later),
    ]
    if random.random() < 0.3:
        actions.append(
            Action(round(at + random.uniform(5, 60), 3), random.choice(("delete", "recreate")), first, earlier)
        )
    return actions


def _dispatched(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """A training is another cluster's to run, and its name was one of ours before."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    return [
        Action(round(at, 3), "recreate", name, _plain(random, seconds=60)),
        Action(round(at + 30, 3), "recreate", name, _plain(random, seconds=20, queue=True, dispatched=True)),
    ]


def _unanswered_end(random: Random, replicas: tuple[str, ...]) -> list[Action]:
    """Answers are lost while a training ends."""
    at, name = random.uniform(5, 150), random.choice(JOBS)
    job = _plain(random, seconds=20)
    lost = {"seconds": 20.0, "share": 0.4}
    return [
        Action(round(at, 3), "recreate", name, job),
        Action(round(at + 16, 3), "unanswered", "all", lost),
    ]


THEMES: dict[str, Callable[[Random, tuple[str, ...]], list[Action]]] = {
    "old mirror": _old_mirror,
    "away at the end": _away_at_the_end,
    "moved unseen": _moved_unseen,
    "lost lease": _lost_lease,
    "forgotten": _forgotten,
    "reapplied": _reapplied,
    "storm": _storm,
    "recreated": _recreated,
    "edited while held": _edited_while_held,
    "too long": _too_long,
    "one after another": _one_after_another,
    "dispatched": _dispatched,
    "unanswered end": _unanswered_end,
    LOST_SNAPSHOT: _lost_snapshot,
}


def _fault(random: Random) -> Action:
    kind = random.choice(FAULTS)
    begins = random.uniform(0, FAULTS_END - 5)
    lasts = min(FAULTS_END - begins, random.choice((3.0, 20.0, 60.0, 200.0)))
    how: dict[str, Any] = {"seconds": round(lasts, 3), "share": random.choice((0.1, 0.3, 0.6))}
    if kind == "skew":
        how["skew"] = random.choice((-600, -30, 30, 600))
    if kind == "lag":
        how["lag"] = random.choice((0.5, 3.0, 20.0))
    return Action(round(begins, 3), kind, random.choice((*REPLICAS, "all")), how)
