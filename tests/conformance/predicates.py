"""What makes a verdict, a condition or a whole object one that we declare to be different; `rendered` has the fields.

Each predicate looks as closely as it can, or it would hide faults.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.conformance import context as it
from tests.conformance.cases import Change, Create, Remove, Report, Tree
from tests.conformance.compare import ABSENT
from tests.conformance.gangs import KINDS
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.compare import Difference

_MESSAGES = ("TrainJob is suspended", "TrainJob is resumed", "TrainJob exceeded its active deadline")


# -- verdicts ---------------------------------------------------------------------------------------------------------


def _verdict(found: Difference, path: str) -> bool:
    return (found.place, found.path) == ("verdict", path)


def refused(field: str, *, saying: str) -> Callable[[Difference], bool]:
    """Match what we alone refuse, by the field that our message names and what it says of it."""
    named = re.compile(rf"(?<![\w.])(?:{field})[^:\s]*: .*(?:{saying})", re.DOTALL)

    def matches(found: Difference) -> bool:
        return (
            _verdict(found, "code")
            and found.reference < 400
            and found.ours == 403
            and bool(named.search(found.message))
        )

    return matches


def accepted(because: str) -> Callable[[Difference], bool]:
    """Match what the reference alone refuses, by its reason."""

    def matches(found: Difference) -> bool:
        return (
            _verdict(found, "code") and found.reference >= 400 > found.ours and bool(re.search(because, found.message))
        )

    return matches


def accepted_by_snapshot(found: Difference) -> bool:
    """Match an edit that the reference refuses because the runtime is not what it was."""
    moved = any(
        isinstance(step, Remove | Change) and step.kind.endswith("TrainingRuntime") for step in it.before(found)
    )
    return moved and accepted("spec.[rR]untimeRef")(found)


def is_more_precise(found: Difference) -> bool:
    """Match fields of ours that lie within those that the reference names, none of which is left out."""
    if not _verdict(found, "fields"):
        return False
    theirs = [it.plain(field).lower() for field in found.reference]
    ours = [it.plain(field).lower() for field in found.ours]
    if not theirs:
        return ours == ["spec.runtimeref"]
    within = all(any(_is_in(mine, field) for field in theirs) for mine in ours)
    return within and all(any(_is_in(mine, field) for mine in ours) for field in theirs)


def _is_in(field: str, whole: str) -> bool:
    return field == whole or field.startswith(f"{whole}.")


def accepted_as_written(found: Difference) -> bool:
    """Match a patch of a TrainJob that the reference refuses since its webhook writes an amount of the trainer anew.

    What else is wrong with the patch is ours to say: the schema, which refuses there, comes before its last webhook.
    """
    resources = it.job(found.case).get("spec", {}).get("trainer", {}).get("resourcesPerNode", {})
    amounts = [amount for kind in ("requests", "limits") for amount in resources.get(kind, {}).values()]
    is_rewritten = any(amount != str(Quantity.of(amount)) for amount in amounts)
    change = found.step.patch if isinstance(found.step, Change) else None
    leaves_trainer = isinstance(change, dict) and "trainer" not in change.get("spec", {})
    is_fault = found.reference == 422 and found.ours != 422 and re.search(r"spec\.trainer: .*immutable", found.message)
    return _verdict(found, "code") and is_rewritten and leaves_trainer and bool(is_fault)


def warns_alone(found: Difference) -> bool:
    """Match a warning of ours about a runtime that is not the cluster's, or about metadata that a patch has in vain."""
    if not (_verdict(found, "warned") and found.ours is True):
        return False
    if it.kind(found.step) != "TrainJob":
        return it.kind(found.step) == "TrainingRuntime"
    patched = [pod.get("metadata", {}) for entries in it.patches(found) for _, pod in it.patched_pods(entries)]
    deprecated = "deprecated" in it.said(found, "trainer.kubeflow.org/support")
    return deprecated or any(metadata.keys() - {"labels", "annotations"} for metadata in patched)


def warns(saying: str) -> Callable[[Difference], bool]:
    """Match warnings of ours alone that all say something."""

    def matches(found: Difference) -> bool:
        ours = _verdict(found, "warned") and found.ours is True
        return ours and bool(found.message) and all(saying in line for line in found.message.splitlines())

    return matches


def is_kueues_own(found: Difference) -> bool:
    """Match Kueue's entry where a list was written without it, or a new TrainJob came with one that says something."""
    new = it.job(found.case).get("spec", {}).get("runtimePatches", [])
    forged = any(entry["manager"] == it.KUEUE and _says_something(entry) for entry in new)
    if _verdict(found, "warned"):
        return forged and isinstance(found.step, Create) and found.ours is True
    if it.within(found, "JobSet"):
        said = [value for entry in new if entry["manager"] == it.KUEUE for value in it.leaves(entry)]
        is_lost = found.reference in said and found.ours == ABSENT
        return forged and len(it.patches(found)) == 1 and it.is_changeable(found) and (is_lost or it.is_owned(found))
    given = it.patches(found)
    left_out = it.KUEUE not in {entry["manager"] for entry in given[-1]} if given[1:] else False
    had = any(entry["manager"] == it.KUEUE for entries in given[:-1] for entry in entries)
    place = found.path.startswith("spec.runtimePatches") or found.path == "metadata.generation" or it.is_owned(found)
    return it.within(found, "TrainJob") and place and (forged or (left_out and had))


def _says_something(entry: Tree) -> bool:
    template = entry["trainingRuntimeSpec"].get("template", {})
    return bool(template.get("metadata") or template.get("spec", {}).get("replicatedJobs"))


# -- conditions -------------------------------------------------------------------------------------------------------


def is_worded_otherwise(found: Difference) -> bool:
    """Match another message of ours in the place of one of the reference's own."""
    is_message = re.fullmatch(r"status\.conditions\[(Suspended|Failed)]\.message", found.path)
    return bool(is_message) and found.reference in _MESSAGES and found.ours not in ("", ABSENT)


def has_ended(found: Difference) -> bool:
    """Match conditions of a job that ended that differ only in that ours has no Suspended, or none of later."""
    if not it.within(found, "TrainJob"):
        return False
    if re.fullmatch(r"status\.conditions\[Suspended]\.(status|reason)", found.path):
        turned = {found.reference, found.ours} in ({"True", "False"}, {"Suspended", "Resumed"})
        return turned and it.has_reported(found, "Completed", "Failed")
    theirs, ours = _conditions(found)
    return bool(ours & _ENDS) and theirs - {"Suspended"} == ours and found.path == "status.conditions"


def runs_unconditionally(found: Difference) -> bool:
    """Match that Suspended=False is gone once pods are ready, unless a deadline counts from it."""
    if not (it.within(found, "TrainJob") and found.path == "status.conditions" and found.reference != ABSENT):
        return False
    reports = [step for step in it.so_far(found) if isinstance(step, Report)]
    is_ready = any(one["ready"] for step in reports[-1:] for one in step.status["replicatedJobsStatus"])
    is_timed = "activeDeadlineSeconds" in it.job(found.case)["spec"]
    theirs, ours = (
        [(one["type"], one["status"], one["reason"]) for one in side]
        for side in (found.reference, [] if found.ours == ABSENT else found.ours)
    )
    return is_ready and not is_timed and [*ours, ("Suspended", "False", "Resumed")] == theirs


def is_failed_for_good(found: Difference) -> bool:
    """Match what the reference alone does to a job whose JobSet has reported Failed: it begins anew, or is changed."""
    if not it.has_reported(found, "Failed"):
        return False
    if it.within(found, "JobSet"):
        if found.path == "":
            return found.ours == ABSENT and it.has_removed(found, "JobSet")
        return it.kind(found.step) == "TrainJob" and it.is_changeable(found)
    if not (it.within(found, "TrainJob") and it.has_removed(found, "JobSet")):
        return False
    if found.path == "status.jobsStatus":
        return bool(found.reference == ABSENT)
    theirs, ours = _conditions(found)
    return ours - theirs == {"Failed"} and theirs <= {"Suspended"}


_ENDS = {"Complete", "Failed"}


def _conditions(found: Difference) -> tuple[set[str], ...]:
    """Return which conditions hold on each side, none if something else differs; a whole status may be missing."""
    if found.path not in ("status", "status.conditions"):
        return set(), set()
    sides = [
        side.get("conditions", ABSENT) if isinstance(side, dict) else side for side in (found.reference, found.ours)
    ]
    lists = [[] if side == ABSENT else side for side in sides]
    return tuple({one["type"] for one in conditions if one["status"] == "True"} for conditions in lists)


# -- the snapshot and the JobSet as a whole ---------------------------------------------------------------------------


def holds_ttl(found: Difference) -> bool:
    """Match a JobSet without the TTL of its runtime until its end was reported, and one more change of it then."""
    asked = it.runtime(found.case).get("spec", {}).get("template", {}).get("spec", {}).get("ttlSecondsAfterFinished")
    if asked is None or not it.within(found, "JobSet"):
        return False
    reports = [step.status.get("conditions", ()) for step in it.so_far(found) if isinstance(step, Report)]
    has_ended = any(one["type"] in {"Completed", "Failed"} for conditions in reports for one in conditions)
    if it.plain(found.path) == "spec.ttlSecondsAfterFinished":
        return found.ours == ABSENT and (it.is_owned(found) or (found.reference == asked and not has_ended))
    return found.path == "metadata.generation" and has_ended and found.ours == found.reference + 1


def is_created_snapshot(found: Difference) -> bool:
    """Match a snapshot that differs only in who owns its fields."""
    return found.place.endswith("-runtime-snapshot") and found.path == "owned" and found.ours == ABSENT


def is_immutable_snapshot(found: Difference) -> bool:
    """Match a snapshot that says so, and an edit of it that the API server refuses."""
    if _verdict(found, "code") and isinstance(found.step, Change):
        is_edit = found.step.kind == "ConfigMap" and found.step.name.endswith("-runtime-snapshot")
        return is_edit and found.reference < 400 and found.ours == 422 and "immutable" in found.message
    return found.place.endswith("-runtime-snapshot") and (found.path, found.reference, found.ours) == (
        "immutable",
        ABSENT,
        True,
    )


_OF_OURS: Final = {
    "runtimeDigest": r"sha256:[0-9a-f]{64}",
    "phase": "Suspended|Queued|Pending|Running|Restarting|Succeeded|Failed",
    "reason": r"[A-Za-z]+",
    "nodesReady": r"\d+/\d+",
}


def is_added_status(found: Difference) -> bool:
    """Match a field of a TrainJob's status that no release of the reference has, or a status that has nothing else."""
    if not (it.within(found, "TrainJob") and found.reference == ABSENT):
        return False
    section, _, field = found.path.partition(".")
    fields = {field: found.ours} if field else found.ours
    return section == "status" and isinstance(fields, dict) and bool(fields) and all(map(_is_of_ours, fields.items()))


def _is_of_ours(entry: tuple[str, object]) -> bool:
    name, value = entry
    if name == "timeline" and isinstance(value, list):
        return all(isinstance(one, dict) and {"stage", "time"} <= one.keys() for one in value)
    return name in _OF_OURS and isinstance(value, str) and re.fullmatch(_OF_OURS[name], value) is not None


def is_held_count(found: Difference) -> bool:
    """Match how many Jobs of a TrainJob are suspended, where that is all that is to be told of them."""
    if not (it.within(found, "TrainJob") and _is_held_back(found)):
        return False
    if found.path == "status.jobsStatus" and found.ours == ABSENT and isinstance(found.reference, list):
        told = [value for one in found.reference for count, value in one.items() if count not in ("name", "suspended")]
        return not any(told)
    return found.path.startswith("status.jobsStatus[") and found.path.endswith("].suspended")


def _is_held_back(found: Difference) -> bool:
    said = [it.job(found.case)["spec"].get("suspend")]
    said += [
        step.patch["spec"]["suspend"]
        for step in it.so_far(found)
        if isinstance(step, Change) and isinstance(step.patch, dict) and "suspend" in step.patch.get("spec", {})
    ]
    return said[-1] is True


def is_deleted_snapshot(found: Difference) -> bool:
    """Match a snapshot that is gone since it was deleted, and the end of a job whose runtime had changed by then."""
    removed = isinstance(found.step, Remove) and found.step.kind == "ConfigMap"
    if removed and found.place.endswith("-runtime-snapshot"):
        return bool(found.ours == ABSENT)
    steps = it.so_far(found)
    changed = any(isinstance(step, Change) and step.kind == "TrainingRuntime" for step in steps)
    deleted = any(isinstance(step, Remove) and step.name.endswith("-runtime-snapshot") for step in steps)
    if not (changed and deleted):
        return False
    if it.within(found, "JobSet"):
        return (found.path, found.ours) == ("", ABSENT)
    ends = found.ours if found.path == "status.conditions" and isinstance(found.ours, list) else []
    return it.within(found, "TrainJob") and any(one["reason"] == "RuntimeSnapshotMissing" for one in ends)


def is_unwatched(found: Difference) -> bool:
    """Match a Secret, ConfigMap or PodGroup just deleted, or a field of a suspended job's group just edited."""
    kind, _, name = found.place.partition(" ")
    if not (isinstance(found.step, Change | Remove) and (found.step.kind, found.step.name) == (kind, name)):
        return False
    if isinstance(found.step, Remove):
        is_made = kind in (*KINDS, "Secret", "ConfigMap") and not name.endswith("-runtime-snapshot")
        return is_made and (found.path, found.ours) == ("", ABSENT)
    if kind not in KINDS or it.job(found.case)["spec"].get("suspend") is not True:
        return False
    if found.path == "metadata.generation":
        return ABSENT not in (found.reference, found.ours) and found.reference > found.ours
    edited = found.step.patch.get("spec", {}) if isinstance(found.step.patch, dict) else {}
    field = it.plain(found.path).removeprefix("spec.")
    return field in edited and (found.ours == edited[field] or (it.is_owned(found) and found.ours == ABSENT))


def has_foreign_jobset(found: Difference) -> bool:
    """Match the missing snapshot of a job whose JobSet's name is taken."""
    taken = any(document["kind"] == "JobSet" for document in found.case.setup)
    return taken and found.place.endswith("-runtime-snapshot") and found.ours == ABSENT


def has_foreign_keys(found: Difference) -> bool:
    """Match what is not made for a job whose Secret's name is taken."""
    taken = any(document["kind"] == "Secret" for document in found.case.setup)
    is_made = it.within(found, "JobSet", "ConfigMap") and not found.place.endswith("-runtime-snapshot")
    return taken and is_made and (found.path, found.ours) == ("", ABSENT)


def has_emptied_metadata(found: Difference) -> bool:
    """Match what is stuck on the reference since the pods of a job lost all labels and annotations."""
    is_stuck = any(_is_emptied(found, *pod) for pod in it.pods(found.case).items())
    return it.within(found, "JobSet") and it.is_changeable(found) and is_stuck


def _is_emptied(found: Difference, name: str, template: Tree) -> bool:
    """Tell if patches once gave metadata to the pods of a job, and neither they nor the runtime does now."""
    given = [
        any(job == name and pod.get("metadata") for job, pod in it.patched_pods(entries))
        for entries in it.patches(found)
    ]
    return not template.get("metadata") and any(given) and not given[-1]
