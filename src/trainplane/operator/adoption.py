"""Adopts an existing JobSet: keeps the fields that JobSet holds immutable, changes the others. Pure.

A suspended JobSet may have been made by the Go controller, or by an older release of ours, from the same TrainJob and
runtime but not to the letter as we would make it today. JobSet lets only little of it change. So where it refuses our
whole body, the JobSet stays what its maker made of it, and only what may change follows the TrainJob.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_TEMPLATE: Final = ("template", "spec", "template")
_METADATA: Final = frozenset({"labels", "annotations"})


def with_fixed_parts_of(live: Tree, body: Tree) -> Tree:
    """Return the body with all that JobSet would not let us change as it stands in the live JobSet."""
    wanted = {job.get("name"): job for job in body["spec"].get("replicatedJobs") or ()}
    stands = live.get("spec") or {}
    jobs = [_job(job, wanted.get(job.get("name")) or {}) for job in stands.get("replicatedJobs") or ()]
    return {**body, "spec": {**stands, "suspend": body["spec"].get("suspend", False), "replicatedJobs": jobs}}


def _job(live: Tree, wanted: Tree) -> Tree:
    job = trees.copy(live)
    template: Tree = trees.get(job, *_TEMPLATE) or {}
    for part, fields in (("metadata", _METADATA), ("spec", names.JOBSET_MUTABLE_POD_FIELDS)):
        change = {field: value for field, value in (trees.get(wanted, *_TEMPLATE, part) or {}).items() if value}
        if part in template or change.keys() & fields:
            _replace(template.setdefault(part, {}), change, fields)
    return dict(job)


def _replace(place: Tree, wanted: Tree, fields: frozenset[str]) -> None:
    """Let some fields be what is wanted, and absent where nothing is."""
    for field in fields:
        value: Any = wanted.get(field)
        if value:
            place[field] = value
        else:
            place.pop(field, None)
