"""May a runtime change while TrainJobs that Kueue counts use it?

A TrainJob keeps the runtime that it began with, so for us a runtime may change and go at any time. Kueue reads the
runtime as it stands at every look. If that comes to other pods than it reserved quota for, it stops the job, however
long it has run, and queues it again; for a job that waits it then counts pods that will never be. If the runtime is
gone, Kueue can neither start the job nor see that it has ended, and its quota stays taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.semantic_equality import same
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.jobset import JobSetTemplate
from trainplane.render.findings import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.jobset import ReplicatedJob
    from trainplane.api.tree import Tree

_SHOWN: Final = 3
"""How many TrainJobs a refusal names."""
_COUNTED: Final = ("containers", "initContainers", "tolerations")
"""What Kueue compares of a pod, beside how many there are."""
_ANYWAY: Final = f"to do it all the same, first label the runtime {names.LABEL_VALIDATION}={names.VALIDATION_DISABLED}"


def judge_edit(new: Tree, old: Tree, users: Sequence[str]) -> Verdict:
    """Judge an update of a runtime; `users` are unfinished TrainJobs that Kueue counts by it, as namespace/name."""
    changed = list(_changes(new, old)) if users else []
    if not changed:
        return Verdict()
    problem = (
        f"cannot change {', '.join(changed)} while Kueue counts by it: {_named(users)} would be stopped if running, "
        "counted wrongly if queued. Give the changed runtime another name, or wait until they have ended; "
        f"{_ANYWAY}"
    )
    return Verdict((Finding("spec", problem, "Forbidden"),))


def judge_removal(users: Sequence[str], others: Sequence[str] = ()) -> Verdict:
    """Judge the deletion of a runtime; `others` are unfinished TrainJobs that Kueue does not count."""
    if not users:
        return Verdict(warnings=(_still_used(others),) if others else ())
    problem = (
        f"cannot be deleted while Kueue counts by it: {_named(users)} could neither start nor give their quota back. "
        f"Wait until they have ended, or delete them; {_ANYWAY}"
    )
    return Verdict((Finding("metadata.name", problem, "Forbidden"),))


def _still_used(others: Sequence[str]) -> str:
    they = "they go" if len(others) > 1 else "it goes"
    return (
        f"this runtime is used by {_named(others)}: {they} on with the runtime as it was at the beginning, but no new "
        "TrainJob can use it. If that was a mistake, create the runtime again"
    )


def _changes(new: Tree, old: Tree) -> Iterator[str]:
    """Yield what changes of that which Kueue makes pods of, by the names that a person knows it by."""
    for field in ("mlPolicy", "podGroupPolicy"):
        if not same(*(trees.get(runtime, "spec", field) for runtime in (new, old))):
            yield f"spec.{field}"
    after, before = (JobSetTemplate(trees.get(runtime, "spec", "template") or {}).jobs for runtime in (new, old))
    if [job.name for job in after] != [job.name for job in before]:
        yield "which replicatedJobs there are"
        return
    for one, other in zip(after, before, strict=True):
        was, becomes = _counted(other), _counted(one)
        fields = [field for field in becomes if not same({field: becomes[field]}, {field: was[field]})]
        if fields:
            yield f"{' and '.join(fields)} of job {one.name}"


def _counted(job: ReplicatedJob) -> dict[str, Any]:
    spec = trees.get(job.tree, "template", "spec") or {}
    counts = {field: spec.get(field) for field in ("parallelism", "completions")}
    pod = {field: job.pod_spec.get(field) for field in _COUNTED}
    return {"replicas": job.replicas, names.LABEL_ANCESTOR: job.ancestor, **counts, **pod}


def _named(users: Sequence[str]) -> str:
    shown = ", ".join(users[:_SHOWN])
    more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
    return f"TrainJob{'s' if len(users) > 1 else ''} {shown}{more}"
