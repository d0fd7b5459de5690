"""Objects that are there already: whose they are, what may change of a JobSet, whether it runs where it should. Pure.

**Whose.** A TrainJob's objects have names that follow from its own, so others may have taken them: an earlier TrainJob
of the same name, whose objects the garbage collector takes a moment later; or anybody. Only what this TrainJob
controls is used.

**What may change.** A suspended JobSet may have been made by the Go controller, or by an older release of ours, from
the same TrainJob and runtime but not to the letter as we would make it today. JobSet lets only little of it change. So
where it refuses our whole body, the JobSet stays what its maker made of it, and only what may change follows the
TrainJob.

**Where it runs.** Kueue evicts a TrainJob, admits it again with another flavor, and both may happen between two looks:
then nobody has stopped the JobSet, which goes on where it was while Kueue counts it elsewhere. What tells it is a
patch that is younger than the JobSet's last apply: as a rule a TrainJob's patches are older, for they were applied.
Without such a one nothing is compared, so that another release of this controller, which renders otherwise, does not
stop what runs. Patches are stamped by a webhook and applies by the API server: clocks that differ may hide a
readmission as quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.document import to_tree
from trainplane.api.meta import owner
from trainplane.operator.errors import EarlierSelfError, ForeignObjectError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.api.meta import ObjectMeta
    from trainplane.api.patches import RuntimePatch
    from trainplane.api.tree import Tree
    from trainplane.operator.stores import Meta

_TEMPLATE: Final = ("template", "spec", "template")
_METADATA: Final = frozenset({"labels", "annotations"})
_PLACEMENT: Final = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    *(("spec", field) for field in sorted(names.JOBSET_MUTABLE_POD_FIELDS)),
)


class OwnerKind(NamedTuple):
    """The kind of job that objects belong to."""

    api_version: str
    name: str


TRAIN_JOB: Final = OwnerKind(names.API_VERSION, names.TRAIN_JOB)


def owned_by(job: ObjectMeta, of: OwnerKind = TRAIN_JOB) -> Tree:
    """Return the reference that makes an object the job's, to be deleted with it."""
    return to_tree(owner(of.api_version, of.name, job))


def check_owner(kind: str, found: Meta, job: ObjectMeta, of: OwnerKind = TRAIN_JOB) -> None:
    """See that an object is a job's own.

    Raises:
        EarlierSelfError: it belongs to an earlier job of the same name, and goes by itself.
        ForeignObjectError: it belongs to somebody else, or to nobody.
    """
    by = found.controller
    if by is not None and by.uid == job.uid:
        return
    if by is not None and (by.kind, by.name) == (of.name, job.name):
        raise EarlierSelfError(f"{kind} {found.name} of an earlier {of.name} of this name is about to be removed")
    raise ForeignObjectError(
        f"{kind} {found.name} is not controlled by this {of.name}, which needs its name: delete it, or give the "
        f"{of.name} another name"
    )


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


def is_patched_since(patches: Iterable[RuntimePatch], moment: datetime | None) -> bool:
    """Return whether a patch changed after a moment; at any time, if the moment is not known."""
    times = (patch.time for patch in patches if patch.time is not None)
    return any(moment is None or time > moment for time in times)


def is_elsewhere(live: Tree, body: Tree) -> bool:
    """Return whether the pods of a JobSet are placed elsewhere: by what a queue sets, and JobSet lets change."""
    wanted = {job.get("name"): job for job in body["spec"].get("replicatedJobs") or ()}
    return any(
        _at(job, path) != _at(wanted.get(job.get("name")) or {}, path)
        for job in (live.get("spec") or {}).get("replicatedJobs") or ()
        for path in _PLACEMENT
    )


def _at(job: Tree, path: tuple[str, ...]) -> Any:
    return trees.get(job, *_TEMPLATE, *path) or None
