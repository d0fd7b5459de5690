"""Scripts of TrainJobs that MultiKueue dispatches from a hub to two workers: steps that engines and models play alike.

As in `tests.simulation.scripts`; the operators of all clusters are part of the script, and write what it says.

    create, recreate, delete, suspend, resume              what a user does at the hub
    count, finish                                          what a worker's operator writes of its copy
    say                                                    what the hub's operator writes of a TrainJob
    deactivate, activate                                   what an administrator does to the hub's Workload
    offer, drain, fill                                     to a cluster's queue: quota, `stopPolicy: HoldAndDrain`, none
    drop_job, drop_workload                                what somebody deletes on a cluster who should not
    cut, mend                                              MultiKueue does not reach a worker, and does again
    lose                                                   so much time passes that a worker that is cut off is lost

At first the hub has quota for all, the worker `east` for four pods and `west` for none: where two could admit, who is
first is chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.simulation.scripts import Step

OFFERED: Final = {"hub": 100, "east": 4, "west": 0}
"""Pods that each cluster has quota for at first."""

_RUNS: Final[list[Step]] = [["create", "a", 2], ["count", "a", "east", 1]]
_COMPLETES: Final[list[Step]] = [["finish", "a", "east", "Complete"]]

FLEETS: Final[dict[str, list[Step]]] = {
    "is dispatched and completes": [*_RUNS, *_COMPLETES],
    "is dispatched and fails": [*_RUNS, ["finish", "a", "east", "Failed"]],
    "goes to the second worker": [
        ["offer", "east", 0],
        ["offer", "west", 4],
        ["create", "a", 2],
        ["count", "a", "west", 1],
        ["finish", "a", "west", "Complete"],
    ],
    "waits until a worker has quota": [["offer", "east", 0], ["create", "a", 2], ["offer", "west", 4]],
    "waits until the hub has quota": [["offer", "hub", 0], ["create", "a", 2], ["offer", "hub", 4]],
    "one waits for another": [
        ["create", "a", 3],
        ["create", "b", 3],
        ["count", "a", "east", 1],
        ["finish", "a", "east", "Complete"],
        ["count", "b", "east", 1],
        ["finish", "b", "east", "Complete"],
    ],
    "what the hub says of it": [
        ["create", "a", 2],
        ["say", "a", "Suspended"],
        ["count", "a", "east", 1],
        ["say", "a", "Suspended"],
        *_COMPLETES,
    ],
    "is held back by its user": [*_RUNS, ["suspend", "a"], ["count", "a", "east", 0]],
    "is resumed by its user without quota": [["offer", "east", 0], ["create", "a", 2], ["resume", "a"]],
    "is deactivated while it waits": [
        ["offer", "east", 0],
        ["create", "a", 2],
        ["deactivate", "a"],
        ["offer", "east", 4],
        ["activate", "a"],
    ],
    "is deactivated without quota": [
        ["offer", "hub", 0],
        ["create", "a", 2],
        ["deactivate", "a"],
        ["activate", "a"],
        ["offer", "hub", 4],
    ],
    "is deactivated before a pod is counted": [["create", "a", 2], ["deactivate", "a"], ["activate", "a"]],
    "is deactivated while it runs": [
        *_RUNS,
        ["deactivate", "a"],
        ["count", "a", "east", 0],
        ["activate", "a"],
        ["count", "a", "east", 1],
        *_COMPLETES,
    ],
    "is deactivated, activated and deleted": [*_RUNS, ["deactivate", "a"], ["activate", "a"], ["delete", "a"]],
    "is deleted while it waits": [["offer", "east", 0], ["create", "a", 2], ["delete", "a"]],
    "is deleted while it runs": [*_RUNS, ["delete", "a"]],
    "is deleted when it is over": [*_RUNS, *_COMPLETES, ["delete", "a"]],
    "the hub drains": [
        *_RUNS,
        ["drain", "hub"],
        ["count", "a", "east", 0],
        ["fill", "hub"],
        ["count", "a", "east", 1],
        *_COMPLETES,
    ],
    "the hub drains before a pod is counted": [["create", "a", 2], ["drain", "hub"], ["fill", "hub"]],
    "the hub drains and it ends meanwhile": [*_RUNS, ["drain", "hub"], *_COMPLETES, ["fill", "hub"]],
    "a worker drains": [*_RUNS, ["drain", "east"], ["fill", "east"], ["count", "a", "east", 0]],
    "a worker drains and the other takes over": [
        *_RUNS,
        ["offer", "west", 4],
        ["drain", "east"],
        ["count", "a", "east", 0],
        ["count", "a", "west", 1],
        ["finish", "a", "west", "Complete"],
    ],
    "a worker's Workload is deleted": [*_RUNS, ["drop_workload", "a", "east"], ["count", "a", "east", 0]],
    "the hub's Workload is deleted": [*_RUNS, ["drop_workload", "a", "hub"], ["count", "a", "east", 0]],
    "a copy is deleted": [*_RUNS, ["drop_job", "a", "east"], ["count", "a", "east", 0]],
    "is made again while it runs": [*_RUNS, ["recreate", "a", 1], ["count", "a", "east", 1], *_COMPLETES],
    "is made again when it is over": [*_RUNS, *_COMPLETES, ["recreate", "a", 1], ["count", "a", "east", 1]],
}

CUT_OFF: Final[dict[str, list[Step]]] = {
    "a worker is cut off and back": [*_RUNS, ["cut", "east"], ["mend", "east"], *_COMPLETES],
    "ends while its worker is cut off": [*_RUNS, ["cut", "east"], *_COMPLETES, ["mend", "east"]],
    "is deleted while its worker is cut off": [*_RUNS, ["cut", "east"], ["delete", "a"], ["mend", "east"]],
    "is created while a worker is cut off": [
        ["cut", "east"],
        ["create", "a", 2],
        ["offer", "west", 4],
        ["count", "a", "west", 1],
        ["mend", "east"],
    ],
    "a worker is lost before a pod is counted": [
        ["create", "a", 2],
        ["offer", "west", 4],
        ["cut", "east"],
        ["lose"],
        ["count", "a", "west", 1],
        ["mend", "east"],
        ["finish", "a", "west", "Complete"],
    ],
    "a worker is lost while it runs": [
        *_RUNS,
        ["offer", "west", 4],
        ["cut", "east"],
        ["lose"],
        ["mend", "east"],
    ],
}
"""Those in which MultiKueue does not reach a worker. That concerns everybody, so they are played one by one."""
