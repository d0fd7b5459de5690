"""What the SDK makes of documents that a cluster returns: types or nothing, never an exception of Python's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from tests.security.fuzz import documents
from tests.security.fuzz.mutations import Mutator, encode
from tests.security.fuzz.target import Target
from trainplane.client.errors import InvalidError
from trainplane.client.reading.events import choose_events, read_events
from trainplane.client.reading.jobs import read_job
from trainplane.client.reading.lines import read_line
from trainplane.client.reading.queues import read_answer
from trainplane.client.reading.runtimes import read_runtime

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

Tree = dict[str, Any]

_JOB: Final[Tree] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {
        "name": "x",
        "namespace": "team",
        "uid": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
    },
    "spec": {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}},
    },
    "status": {
        "conditions": [
            {
                "type": "Failed",
                "status": "True",
                "reason": "JobSetFailed",
                "message": "m",
                "lastTransitionTime": "2026-01-01T01:00:00Z",
            }
        ],
        "jobsStatus": [{"name": "node", "ready": 1, "succeeded": 0, "failed": 1, "active": 0, "suspended": 0}],
        "trainerStatus": {
            "progressPercentage": 5,
            "estimatedRemainingSeconds": 9,
            "metrics": [{"name": "loss", "value": "1"}],
            "lastUpdatedTime": "2026-01-01T00:30:00Z",
        },
    },
}


def _pod(name: str, index: str, state: Tree) -> Tree:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "x",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/restart-attempt": "1",
        "batch.kubernetes.io/job-completion-index": index,
    }
    container = {
        "name": "node",
        "image": "i",
        "env": [{"name": "PET_NNODES", "value": "1:4"}],
        "resources": {"limits": {"memory": "1Gi"}},
    }
    status = {
        "name": "node",
        "restartCount": 1,
        "state": state,
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
    }
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": "2026-01-01T00:00:01Z",
            "labels": labels,
            "annotations": {"trainplane.dev/cluster": "w"},
        },
        "spec": {"containers": [container], "volumes": [{"name": "mpi-ssh-auth"}]},
        "status": {
            "phase": "Failed",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            ],
            "containerStatuses": [status],
            "initContainerStatuses": [],
        },
    }


_EVENT: Final[Tree] = {
    "metadata": {"name": "e", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "involvedObject": {"kind": "Pod", "name": "x-node-0-0-abcde", "uid": "1"},
    "type": "Warning",
    "reason": "FailedScheduling",
    "message": "m",
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "eventTime": None,
    "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:09.123456Z"},
    "count": 1,
}
_SEED: Final[Tree] = {
    "job": _JOB,
    "pods": [
        _pod(
            "x-node-0-0-abcde",
            "0",
            {
                "terminated": {
                    "exitCode": 137,
                    "reason": "OOMKilled",
                    "finishedAt": "2026-01-01T00:00:03Z",
                    "message": "m",
                }
            },
        ),
        _pod("x-node-0-1-abcde", "1", {"waiting": {"reason": "ImagePullBackOff", "message": "m"}}),
    ],
    "events": [_EVENT],
    "view": {"status": {"cluster": "w", "placement": "Waiting", "reason": "r", "readyPods": 1}},
    "queue": {
        "summary": "s",
        "position": 1,
        "pending": 2,
        "causes": [{"what": "w", "do": "d"}],
        "suggestions": [{"what": "w", "do": "d", "now": True}],
    },
    "line": "2026-01-01T00:00:00.5Z text",
}


class Readings(Target):
    """TrainJobs, pods, events, runtimes and lines as the SDK reads them."""

    name: ClassVar[str] = "readings"
    cases: ClassVar[int] = 100_000

    def __init__(self) -> None:
        self._runtimes = [msgspec.json.encode(runtime) for runtime in documents.runtimes()]
        self._seed = msgspec.json.encode(_SEED)

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        case = msgspec.json.decode(self._seed)
        if mutator.chance(0.5):
            case["job"]["status"]["conditions"] = []
        part = mutator.pick(("job", "pods", "pods", "pods", "events", "view", "queue", "line", "runtime"))
        if part == "runtime":
            case["runtime"] = msgspec.json.decode(mutator.pick(self._runtimes))
        case[part] = mutator.tree(case[part]) if part != "line" else mutator.text(case[part])
        return encode(case)

    def run(self, data: bytes) -> str:
        try:
            case = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no case"
        if not isinstance(case, dict):
            return "no case"
        # An object is what the SDK's client decodes; what stands in it is the cluster's.
        job, view = _object(case.get("job")), _object(case.get("view"))
        pods, events = _objects(case.get("pods")), _objects(case.get("events"))
        chosen = choose_events(events, job, pods)
        told = read_job(job, pods, runtime=None, view=view or None, events=chosen)
        read_answer(_object(case.get("queue")))
        for shown in (told, told.cause, *told.steps, *read_events(events)):
            str(shown).encode()
            if shown is not None:
                (shown._repr_html_() or "").encode()
        read_line("node-0", str(case.get("line")).encode())
        if "runtime" in case:
            try:
                runtime = read_runtime(_object(case["runtime"]))
            except InvalidError:
                return "runtime refused"
            read_job(job, pods, runtime=runtime)
        return told.status

    def seeds(self) -> Iterable[bytes]:
        """Return the good case."""
        return (self._seed,)


def _object(value: Any) -> Tree:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Tree]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
