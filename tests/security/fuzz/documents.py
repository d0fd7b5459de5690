"""The good documents that inputs are made from: what the repository ships and shows."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import yaml

from lab.paths import REPOSITORY
from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Iterator

Tree = dict[str, Any]

_RUNTIME_KINDS = (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME)


def _all(*patterns: str) -> Iterator[Tree]:
    for pattern in patterns:
        for path in sorted(REPOSITORY.glob(pattern)):
            for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
                if isinstance(document, dict):
                    yield document


@functools.cache
def shipped_runtimes() -> tuple[Tree, ...]:
    """Return the ClusterTrainingRuntimes that admins install."""
    return tuple(_all("runtimes/*.yaml"))


@functools.cache
def runtimes() -> tuple[Tree, ...]:
    """Return every runtime there is to see, shipped or shown."""
    shown = _all("examples/**/*.yaml", "runtimes/*.yaml")
    return tuple(document for document in shown if document.get("kind") in _RUNTIME_KINDS)


@functools.cache
def train_jobs() -> tuple[Tree, ...]:
    """Return the TrainJobs of the examples, and some of older generations."""
    shown = [document for document in _all("examples/**/*.yaml") if document.get("kind") == names.TRAIN_JOB]
    return (*shown, *_older())


def _older() -> Iterator[Tree]:
    pods = {"nodeSelector": {"a": "b"}, "volumes": [{"name": "data", "emptyDir": {}}], "serviceAccountName": "x"}
    containers = [
        {"name": "node", "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    ]
    targets = [{"name": "node"}]
    for fields in (
        {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        {"podSpecOverrides": [{"targetJobs": targets, **pods, "containers": containers}]},
        {"podTemplateOverrides": [{"targetJobs": targets, "metadata": {"labels": {"a": "b"}}, "spec": pods}]},
        {"trainer": {"numProcPerNode": "auto", "numNodes": 2}, "suspend": True},
        {"trainer": {"numProcPerNode": "gpu", "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}},
    ):
        spec = {
            "runtimeRef": {
                "apiGroup": names.LEGACY_GROUP,
                "kind": "ClusterTrainingRuntime",
                "name": "torch-distributed",
            }
        }
        yield {
            "apiVersion": names.API_VERSION,
            "kind": names.TRAIN_JOB,
            "metadata": {"name": "older", "namespace": "team"},
            "spec": {**spec, **fields},
        }
