"""Differences that no run found: written down to ask what would explain them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conformance.cases import Case, Change, Create
from tests.conformance.compare import Difference
from tests.conformance.differences import explain
from tests.conformance.documents import patch, patch_job, replicated_job, torch, train_job

if TYPE_CHECKING:
    from tests.conformance.cases import Step, Tree

POD = "spec.replicatedJobs[node].template.spec.template"
CONTAINER = f"{POD}.spec.containers[node]"
ENV = f"{CONTAINER}.env"
OWNED_POD = 'owned.f:spec.f:replicatedJobs.k:{"name":"node"}.f:template.f:spec.f:template'
OWNED = f'{OWNED_POD}.f:spec.f:containers.k:{{"name":"node"}}'
KUEUE = "kueue.x-k8s.io/manager"
TOUCH = Change({"metadata": {"labels": {"a": "b"}}})
JOBSET, JOB, SNAPSHOT = "JobSet job", "TrainJob job", "ConfigMap job-runtime-snapshot"


def patched(*entries: Tree, **spec: Any) -> Change:
    """Return the edit that gives a TrainJob these patches."""
    return Change({"spec": {"runtimePatches": list(entries), **spec}})


SELECTOR = patched(patch(KUEUE, patch_job(nodeSelector={"a": "b"})))


def difference(
    place: str,
    path: str,
    reference: Any,
    ours: Any,
    *,
    spec: Tree | None = None,
    on: Tree | None = None,
    then: tuple[Step, ...] = (),
    message: str = "",
) -> Difference:
    """Return a difference at the last step of a case: a TrainJob with a `spec` `on` a runtime, and what came `then`."""
    steps = (Create(train_job(**(spec or {}))), *then)
    case = Case("planted", steps, (on or torch(replicated_job()),))
    return Difference(case, len(then), steps[-1], place, path, reference, ours, message)


def explained_by(found: Difference) -> str | None:
    """Return the id of what declares a difference."""
    declared = explain(found)
    return declared.id if declared else None
