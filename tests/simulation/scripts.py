"""Scripts of steps that engines and models play alike: one list for JobSet, Job and garbage collector, one for Kueue.

A step is a verb and what it is about. Whoever plays a script does a step, lets everything come to rest, and notes how
it stands (`abstract`). The kubelet is part of the script: pods begin, end and leave when it says so.

    create, suspend, resume, place, image, ttl, delete     what somebody does to the JobSet
    run, succeed, fail, leave                              what the kubelet does to pods: all, or some
    back_off                                               as fail, and the Job has made another pod
    drop_job, drop_pod                                     what somebody deletes who should not

    create, count, finish, delete, suspend, resume         what somebody, or our operator, does to a TrainJob of a queue
    deactivate, activate, open, offer                      what an administrator does to Workloads, gates and quota
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Step: TypeAlias = list[Any]

ONE: Final = {"jobs": [{"name": "node", "pods": 2}]}
AGAIN: Final = {**ONE, "restarts": 2}
TWO: Final = {"jobs": [{"name": "first", "pods": 1}, {"name": "node", "pods": 2}]}
TWINS: Final = {"jobs": [{"name": "node", "pods": 1, "replicas": 2}]}
HELD: Final = {**ONE, "suspend": True}
PATIENT: Final = {"jobs": [{"name": "node", "pods": 1, "backoff": 1}]}


def _index(index: int, job: str = "node-0") -> dict[str, Any]:
    return {"job": job, "index": index}


_FAILURE: Final[list[Step]] = [["run"], ["fail", _index(0)], ["leave"]]

JOBSETS: Final[dict[str, list[Step]]] = {
    "completes": [["create", ONE], ["run"], ["succeed"]],
    "completes one by one": [["create", ONE], ["run"], ["succeed", _index(0)], ["succeed", _index(1)]],
    "fails": [["create", ONE], ["run"], ["fail", _index(0)], ["leave"]],
    "fails before all run": [["create", ONE], ["run", _index(0)], ["fail", _index(0)], ["leave"]],
    "one done, one failed": [["create", ONE], ["run"], ["succeed", _index(0)], ["fail", _index(1)]],
    "fails with retries in the Job": [["create", PATIENT], ["run"], ["back_off"], ["run"], ["fail"]],
    "is retried in the Job and completes": [["create", PATIENT], ["run"], ["back_off"], ["run"], ["succeed"]],
    "restarts and completes": [["create", AGAIN], ["run"], ["fail", _index(0)], ["leave"], ["run"], ["succeed"]],
    "restarts until it may no more": [
        ["create", AGAIN],
        *_FAILURE,
        *_FAILURE,
        *_FAILURE,
    ],
    "restarts and is suspended": [
        ["create", AGAIN],
        ["run"],
        ["fail", _index(1)],
        ["leave"],
        ["run"],
        ["suspend"],
        ["leave"],
        ["resume"],
        ["run"],
        ["succeed"],
    ],
    "is suspended while it restarts": [
        ["create", AGAIN],
        ["run"],
        ["fail", _index(0)],
        ["suspend"],
        ["leave"],
        ["resume"],
        ["run"],
        ["succeed"],
    ],
    "begins suspended": [["create", HELD], ["resume"], ["run"], ["succeed"]],
    "begins suspended and is placed": [["create", HELD], ["place", "spot"], ["resume"], ["run"], ["succeed"]],
    "is suspended and resumed": [["create", ONE], ["run"], ["suspend"], ["leave"], ["resume"], ["run"], ["succeed"]],
    "is suspended before its pods run": [["create", ONE], ["suspend"], ["leave"], ["resume"], ["run"], ["succeed"]],
    "is resumed before its pods left": [
        ["create", ONE],
        ["run"],
        ["suspend"],
        ["resume"],
        ["leave"],
        ["run"],
        ["succeed"],
    ],
    "is moved": [
        ["create", {**HELD}],
        ["place", "spot"],
        ["resume"],
        ["run"],
        ["suspend"],
        ["leave"],
        ["place", "reserved"],
        ["resume"],
        ["run"],
        ["succeed"],
    ],
    "is moved before its pods left": [
        ["create", {**HELD}],
        ["place", "spot"],
        ["resume"],
        ["run"],
        ["suspend"],
        ["place", "reserved"],
        ["resume"],
        ["leave"],
        ["run"],
    ],
    "may not be placed while it runs": [["create", ONE], ["run"], ["place", "spot"]],
    "may not have another image": [["create", HELD], ["image", "other:1"], ["resume"]],
    "is suspended when one is done": [
        ["create", ONE],
        ["run"],
        ["succeed", _index(0)],
        ["suspend"],
        ["leave"],
        ["resume"],
        ["run"],
        ["succeed"],
    ],
    "goes by its time": [["create", {**ONE, "ttl": 1}], ["run"], ["succeed"], ["leave"]],
    "goes by its time when it failed": [["create", {**ONE, "ttl": 1}], ["run"], ["fail", _index(0)], ["leave"]],
    "is given its time when it is over": [["create", ONE], ["run"], ["succeed"], ["ttl", 1], ["leave"]],
    "stays until its time": [["create", {**ONE, "ttl": 3600}], ["run"], ["succeed"]],
    "is suspended when it is over": [["create", ONE], ["run"], ["succeed"], ["suspend"], ["resume"]],
    "is deleted while it runs": [["create", ONE], ["run"], ["delete"], ["leave"]],
    "is deleted while it is suspended": [["create", HELD], ["delete"]],
    "is deleted when it is over": [["create", ONE], ["run"], ["succeed"], ["delete"]],
    "is deleted while it stops": [["create", ONE], ["run"], ["suspend"], ["delete"], ["leave"]],
    "loses a pod": [["create", ONE], ["run"], ["drop_pod", _index(0)], ["leave"]],
    "loses a pod and may restart": [
        ["create", AGAIN],
        ["run"],
        ["drop_pod", _index(0)],
        ["leave"],
        ["run"],
        ["succeed"],
    ],
    "loses a Job": [["create", ONE], ["run"], ["drop_job", "node-0"], ["leave"], ["run"], ["succeed"]],
    "two jobs complete": [["create", TWO], ["run"], ["succeed", {"job": "first-0"}], ["succeed", {"job": "node-0"}]],
    "one of two jobs fails": [["create", TWO], ["run"], ["fail", {"job": "first-0"}], ["leave"]],
    "twins, and one fails and all restart": [
        ["create", {**TWINS, "restarts": 1}],
        ["run"],
        ["fail", {"job": "node-1"}],
        ["leave"],
        ["run"],
        ["succeed"],
    ],
    "twins are suspended when one is done": [
        ["create", TWINS],
        ["run"],
        ["succeed", {"job": "node-1"}],
        ["suspend"],
        ["leave"],
        ["resume"],
        ["run"],
        ["succeed"],
    ],
}

SPOT: Final = {"spot": 4, "reserved": 0}
RESERVED: Final = {"spot": 0, "reserved": 4}

QUEUES: Final[dict[str, list[Step]]] = {
    "is admitted and finishes": [["create", "a", 2], ["count", "a", 1], ["finish", "a", "Complete"]],
    "is admitted and fails": [["create", "a", 2], ["count", "a", 1], ["finish", "a", "Failed"]],
    "one waits for another": [
        ["create", "a", 3],
        ["create", "b", 3],
        ["count", "a", 1],
        ["finish", "a", "Complete"],
        ["count", "b", 1],
        ["finish", "b", "Complete"],
    ],
    "one waits until another is deleted": [["create", "a", 3], ["create", "b", 3], ["delete", "a"]],
    "a small one goes before": [["create", "a", 3], ["create", "b", 3], ["create", "c", 1]],
    "is evicted and admitted again": [
        ["create", "a", 2],
        ["count", "a", 1],
        ["deactivate", "a"],
        ["count", "a", 0],
        ["activate", "a"],
        ["count", "a", 1],
        ["finish", "a", "Complete"],
    ],
    "is evicted before a pod is counted": [["create", "a", 2], ["deactivate", "a"], ["activate", "a"]],
    "is evicted and another takes its place": [
        ["create", "a", 3],
        ["count", "a", 1],
        ["create", "b", 3],
        ["deactivate", "a"],
        ["count", "a", 0],
        ["activate", "a"],
        ["finish", "b", "Complete"],
    ],
    "is evicted and finishes meanwhile": [
        ["create", "a", 2],
        ["count", "a", 1],
        ["deactivate", "a"],
        ["finish", "a", "Complete"],
    ],
    "is evicted and deleted": [["create", "a", 2], ["count", "a", 1], ["deactivate", "a"], ["delete", "a"]],
    "is moved to another flavor": [
        ["create", "a", 2],
        ["count", "a", 1],
        ["offer", RESERVED],
        ["deactivate", "a"],
        ["count", "a", 0],
        ["activate", "a"],
    ],
    "quota moves and what runs stays": [["create", "a", 3], ["count", "a", 1], ["offer", RESERVED], ["create", "b", 3]],
    "waits until there is quota": [["offer", {"spot": 0, "reserved": 0}], ["create", "a", 2], ["offer", SPOT]],
    "is held back by its user": [["create", "a", 2], ["suspend", "a"]],
    "is resumed by its user without quota": [
        ["offer", {"spot": 0, "reserved": 0}],
        ["create", "a", 2],
        ["resume", "a"],
    ],
    "is preempted and waits": [
        ["create", "a", 3],
        ["count", "a", 1],
        ["create", "b", 3, "first"],
        ["count", "a", 0],
        ["count", "b", 1],
        ["finish", "b", "Complete"],
    ],
    "is preempted before a pod is counted": [["create", "a", 3], ["create", "b", 2, "first"], ["delete", "b"]],
    "is gated until it is let in": [["create", "a", 2, "gate"], ["open", "a"]],
}
