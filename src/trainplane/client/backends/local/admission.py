"""May this TrainJob run here? What a cluster's API server and webhooks say of one, asked of the same functions.

    default      older fields take today's form, changed patches get their time
    schema       the CRD's, with its rules
    validate     by the runtime, as the webhook does; an edit by the runtime that the TrainJob began with

So what this machine takes a cluster takes, and what is refused is refused in the cluster's words.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from trainplane.admission.defaulting import Defaulted, default_trainjob
from trainplane.admission.message import describe, shown
from trainplane.admission.schema_validation import judge
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import names
from trainplane.api.crds.schema import schema_of
from trainplane.api.trainjob import TrainJob
from trainplane.client.backends.local.moments import now
from trainplane.client.backends.local.rendering import read_runtime, render_jobset
from trainplane.client.errors import RefusedError
from trainplane.render.findings import Finding, Verdict, written
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Runtime


def admit(job: Tree, runtime: Tree, *, stored: Tree | None = None) -> Defaulted:
    """Return a TrainJob as a cluster would store it, with the warnings that a cluster would show.

    Args:
        job: what is to be stored.
        runtime: the runtime, on an edit the one that the TrainJob began with.
        stored: what is stored, with its status, on an edit.

    Raises:
        RefusedError: a cluster would refuse it too; the message has all reasons.
    """
    document = read_runtime(runtime)
    admitted = default_trainjob(job, stored, now=now(), runtime=document)
    verdict = _judge_form(admitted.tree, stored)
    if verdict.allowed:
        verdict = _judge(admitted.tree, stored, document)
    if not verdict.allowed:
        done = "changed" if stored else "created"
        raise RefusedError(
            f"TrainJob {job['metadata'].get('name')} cannot be {done}: {describe(verdict, names.TRAIN_JOB)}"
        )
    return Defaulted(admitted.tree, shown([*admitted.warnings, *verdict.warnings]))


@functools.cache
def _schema() -> dict[str, Any]:
    return schema_of(TrainJob)


def _judge_form(job: Tree, stored: Tree | None) -> Verdict:
    return Verdict.of(Finding(written(found.path), found.text) for found in judge(job, _schema(), old=stored))


def _judge(job: Tree, stored: Tree | None, runtime: Runtime) -> Verdict:
    return validate_trainjob(
        job,
        stored,
        runtime=runtime,
        runtime_source="snapshot" if stored else "live",
        jobset=_jobset(stored, runtime) if stored else None,
        pipeline=Pipeline.default(),
    )


def _jobset(stored: Tree, runtime: Runtime) -> Tree:
    """Return the JobSet that a cluster would have of a TrainJob that is stored here."""
    status = {"replicatedJobsStatus": (stored.get("status") or {}).get("jobsStatus") or []}
    return {**render_jobset(stored, runtime), "status": status}
