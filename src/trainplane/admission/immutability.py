"""What JobSet would refuse to change in a JobSet that exists.

Of a suspended JobSet's pods JobSet lets labels, annotations, nodeSelector, tolerations and schedulingGates change, and
nothing else. An edit of anything else would be accepted here, refused there at every reconcile, and never run.

The judgement is about what is rendered, not about what was written: an edit that comes to the same JobSet is no edit,
and one that leads back to what the JobSet is may always be made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.semantic_equality import meaning, same
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.jobset import JobSetTemplate
from trainplane.render.errors import RenderError
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.jobset import ReplicatedJob
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.pipeline import Pipeline, Runtime

_POD: Final = ("template", "spec", "template", "spec")
_LISTED: Final = "labels, annotations, nodeSelector, tolerations and schedulingGates"


def judge_immutable(
    job: Document[TrainJob], before: Document[TrainJob], runtime: Runtime, jobset: Tree, pipeline: Pipeline
) -> Iterator[Finding]:
    """Yield a finding if the changed `runtimePatches` ask for what JobSet would refuse."""
    if not touches_fixed(job.tree, before.tree):
        return
    try:
        was = JobSetTemplate(pipeline.render(before, runtime).jobset.tree)
        becomes = JobSetTemplate(pipeline.render(job, runtime).jobset.tree)
    except RenderError:
        return  # the pipeline's own validation says what is wrong
    before_edit, stands = _by_name(was), _by_name(JobSetTemplate(jobset))
    edits = [
        f"{field} of job {one.name}"
        for one in becomes.jobs
        for field in _edited(before_edit.get(one.name), one, stands.get(one.name))
    ]
    if edits:
        yield Finding(
            "spec.runtimePatches",
            f"cannot change {', '.join(edits)}: the JobSet is there already, and of its pods only {_LISTED} "
            "can change. Create another TrainJob instead, or delete this one first to keep its name",
            "Forbidden",
        )


def touches_fixed(new: Tree, old: Tree) -> bool:
    """Return whether changed `runtimePatches` ask for more than JobSet lets change of any suspended JobSet."""
    return not same(_frozen_patches(old), _frozen_patches(new))


def _by_name(jobset: JobSetTemplate) -> dict[str, ReplicatedJob]:
    """Return the jobs of a JobSet by name; of two with one name, the first."""
    return {job.name: job for job in reversed(jobset.jobs)}


def _frozen_patches(job: Tree) -> list[Any]:
    """Return the patches without what JobSet lets change, in order."""
    kept = []
    for entry in trees.get(job, "spec", "runtimePatches") or []:
        for one in trees.get(entry, "trainingRuntimeSpec", "template", "spec", "replicatedJobs") or []:
            pod = trees.get(one, *_POD) or {}
            rest = {field: value for field, value in pod.items() if field not in names.JOBSET_MUTABLE_POD_FIELDS}
            metadata = trees.get(one, "template", "metadata") or {}
            if meaning(rest) or meaning(metadata):
                kept.append([one.get("name"), rest, metadata])
    return kept


def _edited(was: ReplicatedJob | None, becomes: ReplicatedJob, stands: ReplicatedJob | None) -> Iterator[str]:
    """Yield the fields of a replicated job that JobSet would refuse to change."""
    old, new, live = (_parts(job) for job in (was, becomes, stands))
    for field in sorted(old.keys() | new.keys()):
        if not same(old.get(field), new.get(field)) and not _covers(live.get(field), new.get(field)):
            yield field


def _parts(job: ReplicatedJob | None) -> dict[str, Any]:
    """Return what JobSet holds fixed of a replicated job, by the names that a person knows it by."""
    if job is None:
        return {}
    tree = job.tree
    job_spec = trees.get(tree, "template", "spec") or {}
    pod = {field: value for field, value in job.pod_spec.items() if field not in names.JOBSET_MUTABLE_POD_FIELDS}
    rest = {f"Job {field}": value for field, value in job_spec.items() if field != "template"}
    metadata = {f"Job {field}": value for field, value in (trees.get(tree, "template", "metadata") or {}).items()}
    own = {field: value for field, value in tree.items() if field not in {"name", "template"}}
    return {**own, **metadata, **rest, **pod}


def _covers(live: Any, wanted: Any) -> bool:
    """Return whether what stands in the cluster has all that is wanted; the API server may have added defaults."""
    if isinstance(live, dict) and isinstance(wanted, dict):
        return all(_covers(live.get(field), value) for field, value in wanted.items())
    if isinstance(live, list) and isinstance(wanted, list):
        return len(live) == len(wanted) and all(map(_covers, live, wanted))
    return same(live, wanted)
