"""The objects of the bench: TrainJobs of four nodes, what a controller writes for each, what is read back."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.operator.runtimes import FoundRuntime
from trainplane.operator.snapshot import config_map
from trainplane.render.pipeline import Pipeline
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

RUNTIME = "torch-distributed"
MANAGER = "trainer"
LAST_WORD = "Completed"
"""Reason of the last Event of a TrainJob that ended well."""
_NAME = "job-of-the-template"
_UID = "00000000-0000-4000-8000-000000000000"


class Meta(msgspec.Struct):
    """Who an object is."""

    name: str
    uid: str = ""


class Condition(msgspec.Struct):
    """One condition of a status."""

    type: str
    status: str


class Status(msgspec.Struct):
    """What the bench reads of a status."""

    conditions: list[Condition] = []


class Seen(msgspec.Struct):
    """What the bench reads of a TrainJob or a JobSet."""

    metadata: Meta
    status: Status = msgspec.field(default_factory=Status)

    @property
    def is_complete(self) -> bool:
        """Whether a TrainJob has ended well."""
        return any(one.type == "Complete" and one.status == "True" for one in self.status.conditions)


class SeenEvent(msgspec.Struct, rename="camel"):
    """What the bench reads of an Event."""

    reason: str
    involved_object: Meta


def trainjob(name: str, namespace: str) -> Tree:
    """Return a TrainJob of four nodes."""
    trainer = {
        "numNodes": 4,
        "image": "registry.example.test/team/image:1",
        "command": ["torchrun", "train.py"],
        "env": [{"name": "EPOCHS", "value": "10"}],
        "resourcesPerNode": {"requests": {"cpu": "4", "memory": "16Gi"}},
    }
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": RUNTIME}, "trainer": trainer},
    }


def completed() -> Tree:
    """Return the status of a JobSet whose Jobs all ended well just now."""
    condition = {
        "type": "Completed",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "lastTransitionTime": _now(),
    }
    counts = {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    return {"status": {"conditions": [condition], "replicatedJobsStatus": [counts]}}


@dataclass(frozen=True)
class Bodies:
    """What a controller writes for a TrainJob, rendered once: only the name and the uid differ from job to job.

    So a writer of them spends nothing on what it writes, and is as fast as whoever takes it.
    """

    snapshot: bytes
    jobset: bytes
    status: bytes
    event: bytes

    @classmethod
    def of(cls, runtime: Tree, namespace: str) -> Bodies:
        """Render them for a namespace, from a runtime as the API server has it, by the operator's own renderer."""
        document = read(runtime, ClusterTrainingRuntime)
        tree = trainjob(_NAME, namespace)
        tree["metadata"]["uid"] = _UID
        job = read(tree, TrainJob)
        subject = {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", **tree["metadata"]}
        return cls(
            _text(config_map(job.view.metadata, FoundRuntime(document).text.json)),
            _text(Pipeline.default().render(job, document).jobset.tree),
            _text(_ended()),
            _text(_event(subject)),
        )

    @staticmethod
    def written_for(body: bytes, name: str, uid: str) -> bytes:
        """Return one of them for a TrainJob."""
        return body.replace(_NAME.encode(), name.encode()).replace(_UID.encode(), uid.encode())


def _ended() -> Tree:
    counts = {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    condition = {
        "type": "Complete",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "lastTransitionTime": _now(),
    }
    return {"status": {"conditions": [condition], "jobsStatus": [counts]}}


def _event(subject: Tree) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{_NAME}.0123456789abcdef", "namespace": subject["namespace"]},
        "involvedObject": subject,
        "type": "Normal",
        "reason": LAST_WORD,
        "message": "created JobSet for 4 pods; 1 s later: AllJobsCompleted: jobset completed successfully",
        "firstTimestamp": _now(),
        "lastTimestamp": _now(),
        "count": 1,
        "source": {"component": "bare"},
        "reportingComponent": "bare",
        "reportingInstance": "",
    }


def _text(tree: Any) -> bytes:
    return msgspec.json.encode(tree)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
