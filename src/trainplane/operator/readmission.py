"""Detects that Kueue evicted and readmitted a TrainJob while its JobSet went on running. Pure.

Kueue evicts a TrainJob, admits it again with another flavor, and both may happen between two looks: then nobody has
stopped the JobSet, which goes on where it was while Kueue counts it elsewhere. What tells it is a patch that is younger
than the JobSet's last apply: as a rule a TrainJob's patches are older, for they were applied. Without such a one
nothing is compared, so that another release of this controller, which renders otherwise, does not stop what runs.
Patches are stamped by a webhook and applies by the API server: clocks that differ may hide a readmission as quick.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.patches import RuntimePatch
    from trainplane.api.tree import Tree

_TEMPLATE: Final = ("template", "spec", "template")
_PLACEMENT: Final = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    *(("spec", field) for field in sorted(names.JOBSET_MUTABLE_POD_FIELDS)),
)


def is_patched_since(patches: Iterable[RuntimePatch], moment: datetime | None) -> bool:
    """Return whether a patch changed after a moment; at any time, if the moment is not known."""
    times = (patch.time for patch in patches if patch.time is not None)
    return any(moment is None or time > moment for time in times)


def applied_at(live: Tree, manager: str) -> datetime | None:
    """Return when a manager last changed an object by an apply; None if it does not say."""
    for entry in live.get("metadata", {}).get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply") and not entry.get("subresource"):
            return datetime.fromisoformat(entry["time"]) if entry.get("time") else None
    return None


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
