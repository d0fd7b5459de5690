"""What makes a verdict, a condition or a whole object one that we declare to be different; `rendered` has the fields.

Each predicate looks as closely as it can, or it would hide faults.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.conformance import context as it
from tests.conformance import warned
from tests.conformance.cases import Change, Create, Remove, Report, Step, Tree
from tests.conformance.compare import ABSENT, named_fields
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.compare import Difference

_MESSAGES = ("TrainJob is suspended", "TrainJob is resumed", "TrainJob exceeded its active deadline")


# -- verdicts ---------------------------------------------------------------------------------------------------------


def _verdict(found: Difference, path: str) -> bool:
    return (found.place, found.path) == ("verdict", path)


def accepted(because: str) -> Callable[[Difference], bool]:
    """Match what the reference alone refuses, by its reason, which must be its only one."""

    def matches(found: Difference) -> bool:
        if not (_verdict(found, "code") and found.reference >= 400 > found.ours):
            return False
        theirs = "\n".join(line for line in found.message.splitlines() if not line.startswith("299 "))
        reasons = len(re.findall(because, theirs))
        return reasons > 0 and len(set(named_fields(theirs))) <= reasons

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
    resources = it.spec(found.case).get("trainer", {}).get("resourcesPerNode", {})
    amounts = [amount for kind in ("requests", "limits") for amount in resources.get(kind, {}).values()]
    is_rewritten = any(amount != str(Quantity.of(amount)) for amount in amounts)
    change = found.step.patch if isinstance(found.step, Change) else None
    leaves_trainer = isinstance(change, dict) and "trainer" not in change.get("spec", {})
    is_fault = found.reference == 422 and found.ours != 422 and re.search(r"spec\.trainer: .*immutable", found.message)
    return _verdict(found, "code") and is_rewritten and leaves_trainer and bool(is_fault)


def is_kueues_own(found: Difference) -> bool:
    """Match Kueue's entry where a list was written without it, or a new TrainJob came with one that says something."""
    new = it.spec(found.case).get("runtimePatches", [])
    forged = any(entry["manager"] == it.KUEUE and it.says_something(entry) for entry in new)
    if _verdict(found, "warned"):
        return warned.warns(warned.FORGED)(found)
    if it.within(found, "JobSet"):
        said = [value for entry in new if entry["manager"] == it.KUEUE for value in it.leaves(entry)]
        is_lost = found.reference in said and found.ours == ABSENT
        return forged and len(it.patches(found)) == 1 and it.is_changeable(found) and (is_lost or it.is_owned(found))
    given = it.patches(found)
    left_out = it.KUEUE not in {entry["manager"] for entry in given[-1]} if given[1:] else False
    had = any(entry["manager"] == it.KUEUE for entries in given[:-1] for entry in entries)
    place = found.path.startswith("spec.runtimePatches") or found.path == "metadata.generation" or it.is_owned(found)
    return it.within(found, "TrainJob") and place and (forged or (left_out and had))


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
    is_timed = "activeDeadlineSeconds" in it.spec(found.case)
    theirs, ours = (
        [(one["type"], one["status"], one["reason"]) for one in side]
        for side in (found.reference, [] if found.ours == ABSENT else found.ours)
    )
    return _has_started(found) and not is_timed and [*ours, ("Suspended", "False", "Resumed")] == theirs


def _has_started(found: Difference) -> bool:
    """Tell if more Jobs than before were ready, or had been, since the last resume."""
    before, held, resumed, started = 0, None, False, False
    for step in it.so_far(found):
        if isinstance(step, Report):
            now = sum(one["ready"] + one["succeeded"] for one in step.status.get("replicatedJobsStatus", ()))
            started = started or (resumed and now > before)
            before = now
        elif isinstance(step, Remove) and step.kind == "JobSet":
            before = 0
        elif (suspend := it.said_by(step)) not in (None, held):
            held, resumed, started = suspend, not suspend, False
    return started


def is_failed_for_good(found: Difference) -> bool:
    """Match what the reference alone does to a job whose JobSet has reported Failed: it begins anew, or is changed."""
    if not it.has_reported(found, "Failed"):
        return False
    if it.within(found, "JobSet"):
        if found.path == "":
            return found.ours == ABSENT and it.has_removed(found, "JobSet")
        return it.is_changeable(found) and _was_written_since(found, "Failed")
    if not (it.within(found, "TrainJob") and it.has_removed(found, "JobSet")):
        return False
    return _is_forgotten(found)


def survives_suspension(found: Difference) -> bool:
    """Match a job that restarts where the reference takes a failure reported while it was suspended for its end."""
    if not _was_held_when_failed(found):
        return False
    if it.within(found, "JobSet"):
        if found.path in {"status", "spec.ttlSecondsAfterFinished"} or found.path.startswith("status."):
            return bool(found.ours == ABSENT)
        return found.reference == ABSENT and _RESTARTS in f"{found.path} {found.ours}"
    if not it.within(found, "TrainJob"):
        return False
    if found.path == "status.jobsStatus":
        return bool(found.ours == ABSENT)
    theirs, ours = _conditions(found)
    return theirs - {"Failed"} == ours and "Failed" in theirs


_RESTARTS: Final = "trainplane.dev/restarts"


def has_run_policy(found: Difference) -> bool:
    """Match `spec.runPolicy` of a runtime, which the reference's API server drops with a warning."""
    if (found.place, found.path) == ("verdict", "warned"):
        document = found.step.document if isinstance(found.step, Create) else {}
        is_runtime = str(document.get("kind", "")).endswith("TrainingRuntime")
        return is_runtime and "runPolicy" in document.get("spec", {}) and found.reference == found.ours + 1
    if found.reference != ABSENT or "spec.runPolicy" not in found.path:
        return False
    is_snapshot = found.place.endswith("-runtime-snapshot") and found.path == "data.runtime.spec.runPolicy"
    is_runtime = it.within(found, "TrainingRuntime", "ClusterTrainingRuntime") and found.path == "spec.runPolicy"
    policy = it.runtime(found.case).get("spec", {}).get("runPolicy")
    return (is_snapshot or is_runtime) and found.ours == policy


def _is_forgotten(found: Difference) -> bool:
    """Match a failure that stays where the reference has forgotten it with the JobSet that reported it."""
    if found.path == "status.jobsStatus":
        return bool(found.reference == ABSENT)
    if match := re.fullmatch(r"status\.conditions\[0]\.(\w+)", found.path):
        return _is_instead(found, match[1])
    theirs, ours = _conditions(found)
    kept = {"Suspended"} if _was_held_when_failed(found) else set()
    return ours - theirs - kept == {"Failed"} and theirs <= {"Suspended"}


def _is_instead(found: Difference, field: str) -> bool:
    """Tell if a field is that of the failure that was reported, where the reference has its Suspended alone."""
    reports = [step.status.get("conditions", ()) for step in it.so_far(found) if isinstance(step, Report)]
    failures = [one[field] for conditions in reports for one in conditions if one["type"] == "Failed"]
    theirs = {
        "type": ("Suspended",),
        "status": ("True", "False"),
        "reason": ("Suspended", "Resumed"),
        "message": _MESSAGES,
        "lastTransitionTime": ("<now>",),
    }
    return found.ours in failures and found.reference in theirs.get(field, ())


def _was_held_when_failed(found: Difference) -> bool:
    """Tell if a job was suspended when its JobSet first reported Failed: it is neither resumed nor told so later."""
    held = False
    for step in it.so_far(found):
        if isinstance(step, Report) and any(one["type"] == "Failed" for one in step.status.get("conditions", ())):
            return held
        held = held if it.said_by(step) is None else it.said_by(step) is True
    return False


def _was_written_since(found: Difference, condition: str) -> bool:
    """Tell if the TrainJob was written after its JobSet first reported a condition."""
    steps = it.so_far(found)
    for place, step in enumerate(steps):
        if isinstance(step, Report) and any(one["type"] == condition for one in step.status.get("conditions", ())):
            return any(it.kind(later) == "TrainJob" for later in steps[place:])
    return False


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
    if name in {"restarts", "restartsCountTowardsMax"}:
        return type(value) is int and value > 0
    return name in _OF_OURS and isinstance(value, str) and re.fullmatch(_OF_OURS[name], value) is not None


def is_held_count(found: Difference) -> bool:
    """Match how many Jobs of a TrainJob are suspended, where that is all that is to be told of them.

    And that they are counted still when their JobSet went, as it counted them last.
    """
    if not (it.within(found, "TrainJob") and it.said_of_suspend(found)[-1:] == [True]):
        return False
    if found.path == "status.jobsStatus":
        if found.ours == ABSENT:
            return isinstance(found.reference, list) and _are_held(found.reference)
        reports = [step.status.get("replicatedJobsStatus") for step in it.so_far(found) if isinstance(step, Report)]
        is_last = found.reference == ABSENT and it.has_removed(found, "JobSet") and found.ours in reports[-1:]
        return is_last and _are_held(found.ours)
    return found.path.startswith("status.jobsStatus[") and found.path.endswith("].suspended")


def _are_held(jobs: list[Tree]) -> bool:
    """Tell if nothing is counted of Jobs but that they are suspended."""
    return not any(value for one in jobs for count, value in one.items() if count not in ("name", "suspended"))


def is_deleted_snapshot(found: Difference) -> bool:
    """Match a snapshot that was deleted after its runtime had changed: ours is of before.

    Or it stays away, where the operator has seen so many runtimes since that it knows it no more; then the job fails
    when it is next looked at. Cases that run by hundreds at once show either.
    """
    steps = it.so_far(found)
    deleted = [number for number, step in enumerate(steps) if isinstance(step, Remove) and _is_snapshot(step.name)]
    before = steps[: deleted[-1]] if deleted else ()
    if not any(isinstance(step, Change) and step.kind.endswith("TrainingRuntime") for step in before):
        return False
    is_away = (found.path, found.ours) == ("", ABSENT)
    if _is_snapshot(found.place):
        return is_away or found.path.startswith("data.runtime.")
    if it.within(found, "JobSet"):
        return is_away
    ends = found.ours if found.path == "status.conditions" and isinstance(found.ours, list) else []
    return it.within(found, "TrainJob") and any(one["reason"] == "RuntimeSnapshotMissing" for one in ends)


def _is_snapshot(name: str) -> bool:
    return name.endswith("-runtime-snapshot")


def is_unwatched(found: Difference) -> bool:
    """Match a Secret that was deleted, until the job is next resumed, or changed while it is suspended."""
    kind, _, name = found.place.partition(" ")
    step = next((one for one in reversed(it.so_far(found)) if _touches(one, kind, name) or _renews(one)), None)
    is_removed = isinstance(step, Remove) and _touches(step, kind, name)
    return is_removed and kind == "Secret" and (found.path, found.ours) == ("", ABSENT)


def _touches(step: Step, kind: str, name: str) -> bool:
    return isinstance(step, Change | Remove) and (step.kind, step.name) == (kind, name)


def _renews(step: Step) -> bool:
    """Tell if a step is one after which a job's objects are made anew."""
    return isinstance(step, Change) and step.kind == "TrainJob" and "spec" in step.patch


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
    return it.within(found, "JobSet") and it.is_changeable(found) and is_emptied(found)


def is_emptied(found: Difference) -> bool:
    """Tell if the pods of a job lost all labels and annotations that patches once gave them."""
    return any(_is_emptied(found, *pod) for pod in it.pods(found.case).items())


def _is_emptied(found: Difference, name: str, template: Tree) -> bool:
    """Tell if patches once gave metadata to the pods of a job, and neither they nor the runtime does now."""
    given = [
        any(job == name and pod.get("metadata") for job, pod in it.patched_pods(entries))
        for entries in it.patches(found)
    ]
    return not template.get("metadata") and any(given) and not given[-1]
