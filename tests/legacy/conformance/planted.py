"""Faults put into our core on purpose: the comparison must find each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import Kind
from trainplane.legacy import autoscaler, decide, gangs, pods, tally, training
from trainplane.legacy.frameworks import pytorch, tensorflow
from trainplane.legacy.frameworks.framework import Framework
from trainplane.legacy.frameworks.jax import Jax
from trainplane.legacy.frameworks.paddle import Paddle
from trainplane.legacy.frameworks.xgboost import XGBoost
from trainplane.legacy.job import Job
from trainplane.legacy.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

Plant: TypeAlias = "Callable[[pytest.MonkeyPatch], None]"


def _returns(owner: Any, name: str, value: Any) -> Plant:
    """Let a function return one value, whatever it is asked."""
    return lambda patch: patch.setattr(owner, name, lambda *_, **__: value)


def _changes(owner: Any, name: str, change: Callable[[Any], Any]) -> Plant:
    """Let what a function returns be changed."""
    usual = getattr(owner, name)
    return lambda patch: patch.setattr(owner, name, lambda *given, **named: change(usual(*given, **named)))


def _without(*path: trees.Step) -> Callable[[Any], Any]:
    return lambda tree: tree and trees.drop(tree, *path)


def _with(*path: trees.Step, value: Any) -> Callable[[Any], Any]:
    return lambda tree: tree and trees.put(tree, *path, value=value)


FAULTS: Final[dict[str, Plant]] = {
    "a pod has no role": _changes(pods, "pod", _without("metadata", "labels", names.LABEL_JOB_ROLE)),
    "a pod is restarted by the kubelet": _changes(pods, "pod", _with("spec", "restartPolicy", value="Always")),
    "a pod is nobody's": _changes(pods, "pod", _without("metadata", "ownerReferences")),
    "a pod loses its volumes": _changes(pods, "pod", _without("spec", "volumes")),
    "a Service has an address": _changes(pods, "service", _without("spec", "clusterIP")),
    "a Service leads to all pods": _changes(pods, "service", _without("spec", "selector", names.LABEL_REPLICA_INDEX)),
    "every port is the usual one": _returns(Job, "port", 23456),
    "a pod has one process": _returns(pytorch, "_processes", 1),
    "an address lacks its namespace": _returns(tensorflow, "_address", "job-worker-0:2222"),
    "ranks begin anew": _changes(XGBoost, "variables", _with(("name", "RANK"), "value", value="0")),
    "nobody leads": _returns(Jax, "is_master", value=False),
    "a server is a trainer": _changes(Paddle, "variables", _without(("name", "PADDLE_SERVER_NUM"))),
    "every exit code is tried again": lambda patch: patch.setattr(tally, "SIGNALLED", 1),
    "no job is ever done": _returns(Framework, "is_done", value=False),
    "restarts are not counted": _returns(training, "restarts", 0),
    "a deadline is forgotten": _returns(training._Look, "_seconds_left", None),
    "a job lives for ever": _returns(training._Look, "_seconds_to_live", None),
    "pods are not cleaned up": _returns(training._Look, "_clean", None),
    "pods that are too many stay": _returns(training._Look, "_remove", None),
    "a suspended job counts its pods": _returns(Status, "stop_counting", None),
    "a resumed job began long ago": _returns(Status, "begin", None),
    "a gang does not wait": _returns(gangs, "is_waiting", value=False),
    "a gang is of one": _changes(gangs, "group", _with("spec", "minMember", value=1)),
    "an autoscaler has no least": _changes(autoscaler, "autoscaler", _without("spec", "minReplicas")),
    "MultiKueue's jobs are run here": _returns(decide, "is_ours", value=True),
    "the usual restart policy is another": _returns(Kind, "restart_of", "ExitCode"),
}
"""What is wrong, by what it would mean."""
