"""Which edits of a TrainJob are possible, and when.

The schema holds fields fixed by rules that compare old and new, and such a rule does not run where a field is added or
removed. Those edits are judged here, and the ones that depend on what the job is doing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.semantic_equality import same
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_FIXED: Final = ("trainer", "initializer", "activeDeadlineSeconds")
_FIXED_ANNOTATIONS: Final = (names.ANNOTATION_OUTPUT, names.ANNOTATION_OUTPUT_SECRET, names.ANNOTATION_CACHE)
"""Annotations that pods are made by; a JobSet's pods cannot be given others."""


def changes_only_suspend(new: Tree, old: Tree) -> bool:
    """Return whether an update leaves the spec as it is, but for `suspend`."""
    return _without_suspend(new) == _without_suspend(old)


def changes_patches(new: Tree, old: Tree) -> bool:
    """Return whether `runtimePatches` mean something else than before."""
    return not same(_patches(new), _patches(old))


def judge_fixed(new: Tree, old: Tree) -> Iterator[Finding]:
    """Yield a finding for each field that cannot change and was added or removed."""
    for field in _FIXED:
        now, before = (trees.get(job, "spec", field) for job in (new, old))
        if (now is None) != (before is None):
            verb = "removed" if now is None else "added"
            yield Finding(
                f"spec.{field}",
                f"cannot be {verb} once the TrainJob exists: create another TrainJob instead",
                "Forbidden",
            )


def changes_output(new: Tree, old: Tree) -> bool:
    """Return whether an update says otherwise where output goes, with which credentials, or whose cache is read."""
    return any(_annotation(new, name) != _annotation(old, name) for name in _FIXED_ANNOTATIONS)


def judge_output(new: Tree, old: Tree) -> Iterator[Finding]:
    """Yield a finding for each annotation that pods are made by and that was added, changed or removed."""
    for name in _FIXED_ANNOTATIONS:
        if _annotation(new, name) != _annotation(old, name):
            yield Finding(
                f"metadata.annotations[{name}]",
                "cannot change once the TrainJob exists: its pods were made by it. Create another TrainJob instead",
                "Forbidden",
            )


def judge_moment(new: Tree, old: Tree, jobset: Tree | None) -> Iterator[Finding]:
    """Yield findings if now is not the time to change `runtimePatches`: pods run with the patches as they are."""
    if not (_is_suspended(new) or _is_suspended(old)):
        yield Finding(
            "spec.runtimePatches",
            "cannot change while the TrainJob runs: set spec.suspend to true, in the same update if you like",
            "Forbidden",
        )
        return
    for status in trees.get(jobset, "status", "replicatedJobsStatus") or []:
        if status.get("active", 0) > 0:
            yield Finding(
                "spec.runtimePatches",
                f"cannot change while job {status.get('name')} is still active: its pods are stopping; "
                "try again when status.jobsStatus counts none as active",
                "Forbidden",
            )


def _annotation(job: Tree, name: str) -> Any:
    return trees.get(job, "metadata", "annotations", name)


def _is_suspended(job: Tree) -> bool:
    return trees.get(job, "spec", "suspend") is True


def _without_suspend(job: Tree) -> Tree:
    return {field: value for field, value in (job.get("spec") or {}).items() if field != "suspend"}


def _patches(job: Tree) -> list[Any]:
    entries = trees.get(job, "spec", "runtimePatches") or []
    return [{field: value for field, value in entry.items() if field != "time"} for entry in entries]
