"""A TrainJob that begins after another (`trainplane.dev/after: NAME`), and holds no quota until then. Pure.

Kueue counts all pods of a TrainJob from the moment that it admits it, so GPUs of a training stand idle in its quota
while its data is fetched. Two TrainJobs, one that fetches to a claim with little and one that trains, are two
Workloads; a gate of Kueue's (`kueue.x-k8s.io/admission-gated-by`) keeps the second one out of its queue until the first
is complete. Admission sets the gate, so that no moment is without it; the operator takes it away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api.meta import is_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainplane.api.meta import Condition


def gates_of(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return who must agree before Kueue looks at a job."""
    text = annotations.get(names.ANNOTATION_ADMISSION_GATES, "")
    return tuple(gate.strip() for gate in text.split(",") if gate.strip())


def awaited(annotations: Mapping[str, str]) -> str:
    """Return the name of the TrainJob that must be complete first; empty if none is waited for, or no longer."""
    if names.ANNOTATION_AFTER not in gates_of(annotations):
        return ""
    return annotations.get(names.ANNOTATION_AFTER, "").strip()


def gated(annotations: Mapping[str, str]) -> str:
    """Return the gates with ours among them, as Kueue reads them."""
    return ",".join(dict.fromkeys((*gates_of(annotations), names.ANNOTATION_AFTER)))


def opened(annotations: Mapping[str, str]) -> str | None:
    """Return the gates without ours; None if none is left."""
    return ",".join(gate for gate in gates_of(annotations) if gate != names.ANNOTATION_AFTER) or None


def failure(name: str, conditions: Iterable[Condition]) -> str:
    """Return why a TrainJob that waits for another can never begin; empty if it may."""
    failed = next((one for one in conditions if one.type == names.FAILED), None)
    if failed is None or not is_true([failed], names.FAILED):
        return ""
    return (
        f"TrainJob {name}, which {names.ANNOTATION_AFTER} waits for, failed ({failed.reason}): mend and run that one, "
        "then create this one again"
    )
