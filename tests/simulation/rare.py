"""Disasters, as histories have them: each with people and trainings for whom it comes at a bad moment.

`disasters` does them. `plain` draws a training that runs at once, but for what it is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.action import JOBS, Action

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import TypeAlias

    Plain: TypeAlias = Callable[..., dict[str, Any]]

RARE = 0.2
"""The share of histories with a disaster, which is their theme, among those without a coincidence."""


def _restore(random: Random, replicas: tuple[str, ...], plain: Plain) -> list[Action]:
    """Etcd is restored from a backup: made before a training, while it ran, or after its end."""
    at, name = random.uniform(90, 400), random.choice(JOBS)
    how = {
        "seconds": random.choice((3.0, 20.0, 60.0)),
        "back": random.choice((15.0, 60.0, 180.0)),
        "bumped": random.random() < 0.3,
    }
    began = max(1.0, at - random.uniform(0, how["back"] + 60))
    job = plain(random, seconds=random.choice((20, 60, 150)), queue=random.random() < 0.4)
    how["repeats"] = random.random() < 0.5
    return [Action(round(began, 3), "recreate", name, job), Action(round(at, 3), "restore", "all", how)]


def _freeze(random: Random, replicas: tuple[str, ...], plain: Plain) -> list[Action]:
    """Processes are stopped, perhaps all, and go on, while there is something to do; perhaps others lead by then."""
    at, name = random.uniform(20, 250), random.choice(JOBS)
    job = plain(random, seconds=random.choice((20, 60)))
    actions = []
    for turn in range(random.randint(1, 3)):
        how = {"seconds": random.choice((5.0, 30.0, 70.0, 120.0))}
        whom = random.choice((*replicas, *replicas, "all"))
        actions.append(Action(round(at + 40 * turn + random.uniform(0, 5), 3), "freeze", whom, how))
    times = [at + random.uniform(0, 130) for _ in range(4)]
    wishes = [random.choice(("recreate", "suspend", "resume")) for _ in times]
    begun = Action(round(at - 2, 3), "recreate", name, job)
    return [begun, *actions, *(Action(round(one, 3), wish, name, job) for one, wish in zip(times, wishes, strict=True))]


def _full(random: Random, replicas: tuple[str, ...], plain: Plain) -> list[Action]:
    """Etcd has no space left while a training is made, or changed, or ends."""
    at, name = random.uniform(20, 250), random.choice(JOBS)
    job = plain(random, seconds=random.choice((20, 60)), queue=random.random() < 0.4)
    began = round(at - random.choice((-2.0, 0.5, 18.0, 60.0)), 3)
    how = {"seconds": random.choice((5.0, 20.0, 50.0, 100.0))}
    wish = random.choice(("suspend", "delete", "recreate", "label", "evict"))
    then = Action(round(at + random.uniform(-2, 10), 3), wish, name, job)
    return [Action(began, "recreate", name, job), Action(round(at, 3), "full", "all", how), then]


def _jump(random: Random, replicas: tuple[str, ...], plain: Plain) -> list[Action]:
    """Clocks jump while a training that may not run long runs, and perhaps somebody else leads by then."""
    at, name = random.uniform(20, 250), random.choice(JOBS)
    jumps = random.choice(((-10, 10), (-3600, -600, -30, 30, 600, 3600)))  # little, and a deadline is held to it
    job = plain(random, seconds=150, deadline=random.choice((30, 90, 90)))
    actions = [Action(round(at, 3), "recreate", name, job)]
    for whom in replicas:
        by = random.choice(jumps)
        actions.append(Action(round(at + random.uniform(-15, 60), 3), "jump", whom, {"by": by}))
    if random.random() < 0.4:
        actions.append(Action(round(at + 10, 3), "suspend", name, {}))
        actions.append(Action(round(at + random.uniform(20, 60), 3), "resume", name, {}))
    return actions


def _distrust(random: Random, replicas: tuple[str, ...], plain: Plain) -> list[Action]:
    """Webhooks show a certificate that nobody trusts yet while people write."""
    at, name = random.uniform(20, 250), random.choice(JOBS)
    job = plain(random, seconds=20, queue=random.random() < 0.4)
    how = {"seconds": random.choice((5.0, 30.0, 60.0))}
    return [
        Action(round(at, 3), "distrust", random.choice((*replicas, "all")), how),
        Action(round(at + random.uniform(-5, 5), 3), "recreate", name, job),
        Action(round(at + random.uniform(5, 60), 3), random.choice(("suspend", "label", "evict")), name, {}),
    ]


DISASTERS: dict[str, Callable[[Random, tuple[str, ...], Plain], list[Action]]] = {
    "restore": _restore,
    "freeze": _freeze,
    "full": _full,
    "jump": _jump,
    "distrust": _distrust,
}
