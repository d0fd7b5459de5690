"""What makes a difference in a rendered JobSet or a stored document one that we declare.

Each predicate asks for the cause in the case's documents, not only for the place, or it would hide faults.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.conformance import context as it
from tests.conformance.compare import ABSENT, tree_differences
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

_ADDED = re.compile(r"(resourceFieldRef\.containerName|templates\.status)$")
_NULLED = re.compile(r"(projected\.sources|dataSource(Ref)?\.apiGroup)$")
_DEFAULTED = re.compile(r"([rR]ef|\.configMap|\.sources\.secret)\.name$")
"""A reference's name, which the schema makes an empty text if it is not given."""
_AMOUNT = re.compile(r"\.(requests|limits|overhead)\.[^[]+$|resourceFieldRef\.divisor$|emptyDir\.sizeLimit$")


# -- initializers ------------------------------------------------------------------------------------------------------


def mounts_claim(found: Difference) -> bool:
    """Match the volume and the mount of the claim that an initializer's URI names, which nobody gave."""
    step = it.entry(found, "replicatedJobs")
    source = it.spec(found.case).get("initializer", {}).get(step.removesuffix("-initializer"), {})
    claim = re.match(r"pvc://([^/]+)", source.get("storageUri", ""))
    if not (it.within(found, "JobSet") and claim):
        return False
    path, name = f"/pvc/{claim[1]}", "trainplane-claim"
    if it.is_owned(found):
        return found.reference == ABSENT and (f'"name":"{name}"' in found.path or f'"mountPath":"{path}"' in found.path)
    added = {
        "volumeMounts": {"name": name, "mountPath": path, "readOnly": True},
        "volumes": {"name": name, "persistentVolumeClaim": {"claimName": claim[1]}},
    }.get(found.path.rpartition(".")[2])
    return added is not None and found.ours == [*(found.reference if found.reference != ABSENT else []), added]


# -- merging ----------------------------------------------------------------------------------------------------------


def is_other_value(found: Difference) -> bool:
    """Match what the reference keeps of a variable that was patched: a variable has one value or one source."""
    leaf = re.search(r"ontainers\.env\.(value|valueFrom)(?:\.(\w+))?$", it.plain(found.path))
    if not (it.within(found, "JobSet") and leaf and found.ours == ABSENT):
        return False
    name = it.entry(found, "env")
    sayings = [
        entry
        for _, pod in _sayings(found)
        for kind in ("containers", "initContainers")
        for one in pod.get("spec", {}).get(kind, ())
        for entry in one.get("env", ())
        if entry["name"] == name
    ]
    return _gave_way([_kinds(entry) for entry in sayings], leaf[2] or leaf[1])


def _kinds(variable: Tree) -> set[str]:
    """Return what a variable has: `value`, `valueFrom`, and the kind of its source."""
    return {*variable, *variable.get("valueFrom", {})}


def is_other_volume_source(found: Difference) -> bool:
    """Match a source that the reference keeps of a volume whose source was patched."""
    leaf = re.search(r"template\.spec\.volumes\.(\w+)", it.plain(found.path))
    if not (it.within(found, "JobSet") and leaf and found.ours == ABSENT):
        return False
    name, where = it.entry(found, "volumes"), it.entry(found, "replicatedJobs")
    sayings = [
        set(volume)
        for job, pod in _sayings(found)
        for volume in pod.get("spec", {}).get("volumes", ())
        if (job, volume["name"]) == (where, name)
    ]
    return _gave_way(sayings, leaf[1])


def _sayings(found: Difference) -> list[tuple[str, Tree]]:
    """Return what is said of pod templates: by the runtime, then by the patches in force, in order."""
    entries = it.patches(found)
    return [*it.pods(found.case).items(), *(it.patched_pods(entries[-1]) if entries else ())]


def _gave_way(sayings: list[set[str]], field: str) -> bool:
    """Tell if a field that was said first is not in what was said last."""
    return len(sayings) > 1 and any(field in one for one in sayings[:-1]) and field not in sayings[-1]


def adds_tolerations_of_kueue(found: Difference) -> bool:
    """Match tolerations that others gave and that stay beside those of Kueue."""
    if not (it.within(found, "JobSet") and it.plain(found.path).endswith("template.spec.tolerations")):
        return False
    if not (isinstance(found.ours, list) and isinstance(found.reference, list)):
        return False
    managers = {entry["manager"] for entries in it.patches(found)[-1:] for entry in entries}
    kept = [one for one in found.ours if one not in found.reference]
    given = [one for tolerations in it.said(found, "tolerations") for one in tolerations]
    is_whole = len(found.ours) == len(kept) + len(found.reference)
    return it.KUEUE in managers and is_whole and all(one in given for one in kept)


def stands_last(found: Difference) -> bool:
    """Match what Kueue's entry says of pods where another entry stands behind it; lists are in another order then."""
    entries = [entry for given in it.patches(found)[-1:] for entry in given]
    managers = [entry["manager"] for entry in entries]
    if it.KUEUE not in managers[:-1] or not (it.within(found, "JobSet") and it.is_changeable(found)):
        return False
    ordered = re.search(r"\b(schedulingGates|tolerations)\b", found.path)
    speak = entries if ordered else [entry for entry in entries if entry["manager"] == it.KUEUE]
    return it.is_owned(found) or any(found.ours == value for entry in speak for value in it.leaves(entry))


def sets_both_sides(found: Difference) -> bool:
    """Match a request of a device that is its limit, where the reference leaves the runtime's."""
    match = re.search(r"\.(requests|limits)\.([\w.-]+/[\w.-]+)$", found.path)
    if match is None or it.is_owned(found) or not it.within(found, "JobSet", "TrainJob"):
        return False
    theirs, ours = _resources(found.case)
    side, name = match.groups()
    is_ours = found.ours == ours.get(side, {}).get(name) != theirs.get(side, {}).get(name)
    return is_ours and (it.within(found, "TrainJob") or found.reference == theirs.get(side, {}).get(name, ABSENT))


def has_no_policy(found: Difference) -> bool:
    """Match resources of the training container on a runtime without a policy."""
    match = re.search(r"containers(?:\[node]|\.k:\{\"name\":\"node\"})\.(?:f:)?resources(.*)$", found.path)
    said = "resourcesPerNode" in it.trainer(found.case)
    if match is None or not said or "mlPolicy" in it.runtime(found.case).get("spec", {}):
        return False
    given, (_, ours) = _canonical(it.node(found.case).get("resources", ABSENT)), _resources(found.case)
    places = tree_differences(given, ours)
    tail = match[1].removeprefix(".")
    if it.is_owned(found):
        return it.plain(tail) in {path for path, _, _ in places} and found.reference == ABSENT
    return (tail, found.reference, found.ours) in places


def _resources(case: Case) -> tuple[Tree, Tree]:
    """Return what a node asks for with the TrainJob's words: the reference's, side by side, and ours, devices equal."""
    given, asked = it.node(case).get("resources", {}), it.trainer(case).get("resourcesPerNode") or {}
    theirs: Tree = {}
    ours: Tree = {}
    for side, other in (("requests", "limits"), ("limits", "requests")):
        merged = {**given.get(side, {}), **asked.get(side, {})}
        even = {name: one for name, one in asked.get(other, {}).items() if "/" in name and name in merged}
        for sides, amounts in ((theirs, merged), (ours, {**merged, **even, **asked.get(side, {})})):
            if amounts:
                sides[side] = {name: str(Quantity.of(one)) for name, one in amounts.items()}
    return theirs, ours


def _canonical(resources: Any) -> Any:
    """Return resources with amounts as the API server writes them."""
    if not isinstance(resources, dict):
        return resources
    amounts = {
        side: {name: str(Quantity.of(one)) for name, one in resources[side].items()}
        for side in ("requests", "limits")
        if side in resources
    }
    return {**resources, **amounts}


def is_dropped_metadata(found: Difference) -> bool:
    """Match a pod template's metadata that is not labels and annotations."""
    leaf = re.search(r"template\.metadata(\.(name|namespace|finalizers))?$", it.plain(found.path))
    value = found.reference if isinstance(found.reference, dict) else {found.path.rpartition(".")[2]: None}
    names = {key.removeprefix("f:") for key in value}
    is_ours = it.within(found, "JobSet") and bool(leaf) and found.ours == ABSENT
    return is_ours and names <= {"name", "namespace", "finalizers"}


# -- what Go's types do to a document ---------------------------------------------------------------------------------


def is_kept_by_us(found: Difference) -> bool:
    """Match a field that the reference drops, as the TrainJob gives it."""
    if found.reference != ABSENT:
        return False
    trainer, name = it.trainer(found.case), it.entry(found, "env")
    if it.of_container(found, "resources.claims"):
        said = trainer.get("resourcesPerNode", {}).get("claims")
    elif it.of_container(found, "env.valueFrom.fileKeyRef"):
        files = [one.get("valueFrom", {}).get("fileKeyRef") for one in trainer.get("env", ()) if one["name"] == name]
        said = {"optional": False, **files[0]} if files and files[0] else None
    else:
        return False
    return bool(said) and (it.is_owned(found) or bool(found.ours == said))


def is_amount_as_written(found: Difference) -> bool:
    """Match an amount in a document that stays as its author wrote it, and that the reference writes anew."""
    if not (it.within(found, "TrainJob", "ConfigMap") and _AMOUNT.search(it.plain(found.path))):
        return False
    try:
        return bool(found.reference == str(Quantity.of(found.ours)))
    except QuantityError:
        return False


def is_spelt_out(found: Difference) -> bool:
    """Match `resourcesPerNode` of a TrainJob that Kueue counts, where it says what the container will have."""
    prefix = "spec.trainer.resourcesPerNode"
    managers = {entry["manager"] for entries in it.patches(found) for entry in entries}
    if not (it.within(found, "TrainJob") and found.path.startswith(f"{prefix}.") and it.KUEUE in managers):
        return False
    kind, _, name = found.path.removeprefix(f"{prefix}.").partition(".")
    given = [one.get("resources", {}).get(kind, ABSENT) for one in it.containers(found.case) if one["name"] == "node"]
    amounts = [value.get(name, ABSENT) if name and isinstance(value, dict) else value for value in given]
    return found.ours in amounts and found.reference == ABSENT


def is_go_zero(found: Difference) -> bool:
    """Match zeros and empty texts, lists and maps that a Go struct drops or adds.

    What it drops must have been said by a document. What it adds is the zero of a field that is no pointer.
    """
    path = it.plain(found.path)
    if path.endswith("resourceFieldRef.divisor") and not it.is_owned(found):
        return (found.reference, found.ours) == ("0", ABSENT)
    if not it.within(found, "JobSet", "ConfigMap"):
        return False
    if found.reference == ABSENT:
        if found.ours == "" and _DEFAULTED.search(path):
            return True
        return (it.is_owned(found) or is_zero(found.ours)) and any(map(is_zero, it.said_there(found)))
    if found.ours != ABSENT:
        return False
    return (found.reference is None and bool(_NULLED.search(path))) or (
        found.reference in ("", {}) and bool(_ADDED.search(path))
    )


def is_zero(value: Any) -> bool:
    """Tell if a value is one that Go leaves out: nothing, or empty, or off."""
    return _is_hollow(value) or (type(value) in (bool, int, str) and not value)


def without_zeros(tree: Any) -> Any:
    """Return a tree without the fields that Go leaves out for their value; an empty map may be a choice, and stays."""
    if isinstance(tree, list):
        return [without_zeros(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    return {key: without_zeros(one) for key, one in tree.items() if one or type(one) not in (bool, int, str)}


def _is_hollow(value: Any) -> bool:
    """Tell if nothing is in a list or a map, or in those within it."""
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list) and all(_is_hollow(item) for item in inner)
