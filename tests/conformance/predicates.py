"""What makes a difference one that we declare. Each predicate looks as closely as it can, or it would hide faults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.conformance.cases import Change, Create, Remove, Report, Tree
from tests.conformance.compare import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.cases import Case
    from tests.conformance.compare import Difference

_MESSAGES = ("TrainJob is suspended", "TrainJob is resumed", "TrainJob exceeded its active deadline")
_GO_ZERO = re.compile(r"(resourceFieldRef\.containerName|templates\.status)$")
_GPU = re.compile(r"gpu|mig-", re.IGNORECASE)


# -- the case around it -----------------------------------------------------------------------------------------------


def _runtime(case: Case) -> Tree:
    return next((document for document in case.setup if document["kind"].endswith("TrainingRuntime")), {})


def _job(case: Case) -> Tree:
    documents = (step.document for step in case.steps if isinstance(step, Create))
    return next((document for document in documents if document["kind"] == "TrainJob"), {})


def _is_torch(case: Case) -> bool:
    return "torch" in (_runtime(case).get("spec", {}).get("mlPolicy") or {})


def _so_far(found: Difference) -> tuple[Any, ...]:
    return found.case.steps[: found.number + 1]


def _within(found: Difference, kind: str) -> bool:
    return found.place.partition(" ")[0] == kind


def _plain(path: str) -> str:
    """Return a path without indexes and keys, in the words of the object and not of its ownership."""
    return re.sub(r"\[[^]]*]|\.k:\{[^}]*}", "", path).removeprefix("owned.").replace("f:", "")


def _of_container(found: Difference, field: str) -> bool:
    return _within(found, "JobSet") and _plain(found.path).endswith(f"template.spec.containers.{field}")


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
        isinstance(step, Remove | Change) and step.kind.endswith("TrainingRuntime") for step in _so_far(found)[:-1]
    )
    return moved and accepted("spec.[rR]untimeRef")(found)


def is_more_precise(found: Difference) -> bool:
    """Match fields of ours that lie within those that the reference names, none of which is left out."""
    if not _verdict(found, "fields"):
        return False
    theirs = [_plain(field).lower() for field in found.reference]
    ours = [_plain(field).lower() for field in found.ours]
    if not theirs:
        return ours == ["spec.runtimeref"]
    within = all(any(mine.startswith(field) for field in theirs) for mine in ours)
    return within and all(any(mine.startswith(field) for mine in ours) for field in theirs)


def warns_alone(found: Difference) -> bool:
    """Match an accepted request of which only we say something."""
    return _verdict(found, "warned") and found.ours is True


# -- conditions -------------------------------------------------------------------------------------------------------


def is_worded_otherwise(found: Difference) -> bool:
    """Match another message of ours in the place of one of the reference's own."""
    is_message = re.fullmatch(r"status\.conditions\[\d]\.message", found.path)
    return bool(is_message) and found.reference in _MESSAGES and found.ours not in ("", ABSENT)


def has_ended(found: Difference) -> bool:
    """Match conditions of a job that ended that differ only in that ours has no Suspended, or none of later."""
    ended = any(isinstance(step, Report) and step.status.get("conditions") for step in _so_far(found)[:-1])
    if ended and re.fullmatch(r"status\.conditions\[\d]\.(status|reason|message)", found.path):
        return all(value in ("True", "False", "Suspended", "Resumed") for value in (found.reference, found.ours))
    if not (_within(found, "TrainJob") and found.path == "status.conditions"):
        return False
    theirs = [_gist(entry) for entry in found.reference if entry["type"] != "Suspended"]
    ours = [_gist(entry) for entry in found.ours]
    return theirs == ours and any(kind in ("Complete", "Failed") for kind, *_ in ours)


def _gist(entry: Tree) -> tuple[str, ...]:
    return tuple(entry[key] for key in ("type", "status", "reason"))


def is_failed_for_good(found: Difference) -> bool:
    """Match what the reference does to a job after its JobSet has reported Failed."""
    failed = any(
        isinstance(step, Report) and any(entry["type"] == "Failed" for entry in step.status.get("conditions", ()))
        for step in _so_far(found)[:-1]
    )
    return failed and (_within(found, "JobSet") or (_within(found, "TrainJob") and found.path.startswith("status")))


# -- the snapshot and the JobSet as a whole ---------------------------------------------------------------------------


def is_created_snapshot(found: Difference) -> bool:
    """Match a snapshot that differs only in who owns its fields."""
    return found.place.endswith("-runtime-snapshot") and found.path == "owned" and found.ours == ABSENT


def is_deleted_snapshot(found: Difference) -> bool:
    """Match a snapshot that is gone right after it was deleted."""
    removed = isinstance(found.step, Remove) and found.step.kind == "ConfigMap"
    return removed and found.place.endswith("-runtime-snapshot") and found.ours == ABSENT


def has_foreign_jobset(found: Difference) -> bool:
    """Match the missing snapshot of a job whose JobSet's name is taken."""
    taken = any(document["kind"] == "JobSet" for document in found.case.setup)
    return taken and found.place.endswith("-runtime-snapshot") and found.ours == ABSENT


def has_emptied_metadata(found: Difference) -> bool:
    """Match a JobSet on which the reference is stuck since the pods of a job lost all labels and annotations."""
    if not (_within(found, "JobSet") and isinstance(found.step, Change) and found.step.kind == "TrainJob"):
        return False
    before = [entry for step in _so_far(found)[:-1] for entry in _patches(step)]
    return any("metadata" in _pods(entry) for entry in before) and isinstance(found.step.patch, dict)


def _patches(step: Any) -> list[Tree]:
    tree = step.patch if isinstance(step, Change) else step.document if isinstance(step, Create) else {}
    found: list[Tree] = tree.get("spec", {}).get("runtimePatches") or [] if isinstance(tree, dict) else []
    return found


def _pods(entry: Tree) -> set[str]:
    jobs = entry["trainingRuntimeSpec"]["template"].get("spec", {}).get("replicatedJobs", ())
    return {key for job in jobs for key in job["template"].get("spec", {}).get("template", {})}


# -- fields of pods ---------------------------------------------------------------------------------------------------


def _added(found: Difference, ours: Callable[[Tree], bool]) -> bool:
    """Tell if our list is the reference's and, beside it, only entries that `ours` knows."""
    if not isinstance(found.ours, list):
        return False
    theirs = [] if found.reference == ABSENT else found.reference
    return [entry for entry in found.ours if not ours(entry)] == [entry for entry in theirs if not ours(entry)]


def is_torch_without_trainer(found: Difference) -> bool:
    """Match the variables and the port of a Torch job without `spec.trainer`, and their ownership."""
    job = _job(found.case)
    if not (job and _is_torch(found.case) and "trainer" not in job["spec"]):
        return False
    if found.path.startswith("owned."):
        return found.reference == ABSENT and ("f:env" in found.path or "f:ports" in found.path)
    if _of_container(found, "env"):
        return _added(found, lambda entry: entry["name"].startswith("PET_"))
    return _of_container(found, "ports") and _added(found, lambda entry: entry["containerPort"] == 29500)


def is_auto_for_accelerators(found: Difference) -> bool:
    """Match our `auto` where the reference counted CPUs although something on the pod looks like a GPU."""
    if not (_of_container(found, "env.value") and found.ours == "auto"):
        return False
    job = _job(found.case)["spec"].get("trainer", {}).get("resourcesPerNode", {})
    resources = [job, *_resources(_runtime(found.case))]
    return any(_GPU.search(name) for entry in resources for amounts in entry.values() for name in amounts)


def _containers(runtime: Tree) -> list[Tree]:
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pods = [job["template"]["spec"]["template"]["spec"] for job in jobs]
    return [one for pod in pods for kind in ("containers", "initContainers") for one in pod.get(kind, ())]


def _resources(runtime: Tree) -> list[Tree]:
    return [one.get("resources", {}) for one in _containers(runtime)]


def _has_equal_ports(one: Tree) -> bool:
    """Tell if a container has ports that the reference takes for one: both unnamed, or of one number."""
    ports = one.get("ports", ())
    numbers = {port["containerPort"] for port in ports}
    return sum("name" not in port for port in ports) > 1 or len(numbers) < len(ports)


def keeps_port(found: Difference) -> bool:
    """Match an unnamed port, or the name of port 29500, that the reference lost, and JobSets that it so cannot make."""
    if _of_container(found, "ports.name"):
        return bool(found.reference == ABSENT)
    if _within(found, "JobSet") and found.path == "" and found.reference == ABSENT:
        return any(_has_equal_ports(one) for one in _containers(_runtime(found.case)))
    if found.path.startswith("owned."):
        return ".f:ports." in found.path and found.reference == ABSENT
    if not _of_container(found, "ports"):
        return False
    return [one for one in found.ours if one in found.reference] == found.reference and all(
        "name" not in one for one in found.ours if one not in found.reference
    )


def follows_subdomain(found: Difference) -> bool:
    """Match the address of the first node in the runtime's subdomain."""
    name = _job(found.case).get("metadata", {}).get("name", "")
    subdomain = (
        _runtime(found.case).get("spec", {}).get("template", {}).get("spec", {}).get("network", {}).get("subdomain")
    )
    if not (subdomain and _of_container(found, "env.value")):
        return False
    return (found.reference, found.ours) == (f"{name}-node-0-0.{name}", f"{name}-node-0-0.{subdomain}")


def is_other_value(found: Difference) -> bool:
    """Match what the reference keeps of a variable that was patched: a variable has one value or one source."""
    leaf = re.search(r"ontainers\.env\.value(From\.\w+)?$", _plain(found.path))
    return _within(found, "JobSet") and leaf is not None and found.ours == ABSENT


def is_other_volume_source(found: Difference) -> bool:
    """Match a source that the reference keeps of a volume whose source was patched."""
    leaf = re.search(r"template\.spec\.volumes\.\w+$", _plain(found.path))
    return _within(found, "JobSet") and leaf is not None and found.ours == ABSENT


def adds_tolerations_of_kueue(found: Difference) -> bool:
    """Match tolerations that others gave and that stay beside those of Kueue."""
    if not (_within(found, "JobSet") and _plain(found.path).endswith("template.spec.tolerations")):
        return False
    managers = {entry["manager"] for step in _so_far(found) for entry in _patches(step)}
    return "kueue.x-k8s.io/manager" in managers and _ends_with(found.ours, found.reference)


def _ends_with(one: Any, other: Any) -> bool:
    return isinstance(one, list) and isinstance(other, list) and one[-len(other) :] == other


def is_kept_by_us(found: Difference) -> bool:
    """Match a field that the reference drops."""
    return found.reference == ABSENT and any(
        _of_container(found, leaf) for leaf in ("resources.claims", "env.valueFrom.fileKeyRef")
    )


def is_dropped_metadata(found: Difference) -> bool:
    """Match a pod template's metadata that is not labels and annotations."""
    leaf = re.search(r"template\.metadata(\.(name|namespace|finalizers))?$", _plain(found.path))
    value = found.reference if isinstance(found.reference, dict) else {found.path.rpartition(".")[2]: None}
    names = {key.removeprefix("f:") for key in value}
    return (
        _within(found, "JobSet")
        and bool(leaf)
        and found.ours == ABSENT
        and names <= {"name", "namespace", "finalizers"}
    )


def is_go_zero(found: Difference) -> bool:
    """Match zeros and empty texts, lists and maps that a Go struct drops or adds."""
    if _plain(found.path).endswith("resourceFieldRef.divisor"):
        return (found.reference, found.ours) == ("0", ABSENT)
    if not (_within(found, "JobSet") or _within(found, "ConfigMap")):
        return False
    if found.reference == ABSENT:
        return _is_hollow(found.ours) or found.ours in (False, 0, "")
    if found.ours != ABSENT:
        return False
    return found.reference is None or (found.reference in ("", {}) and bool(_GO_ZERO.search(_plain(found.path))))


def _is_hollow(value: Any) -> bool:
    """Tell if nothing is in a list or a map, or in those within it."""
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list) and all(_is_hollow(item) for item in inner)
