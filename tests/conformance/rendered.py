"""What makes a difference in a rendered JobSet or a stored document one that we declare.

Each predicate asks for the cause in the case's documents, not only for the place, or it would hide faults.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.conformance import context as it
from tests.conformance.compare import ABSENT, MASTER
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.conformance.cases import Tree
    from tests.conformance.compare import Difference

_PORT = 29500
_ADDED = re.compile(r"(resourceFieldRef\.containerName|templates\.status)$")
_NULLED = re.compile(r"(projected\.sources|dataSource(Ref)?\.apiGroup)$")
_DEFAULTED = re.compile(r"[rR]ef\.name$")
"""A reference's name, which the schema makes an empty text if it is not given."""
_AMOUNT = re.compile(r"\.(requests|limits|overhead)\.[^[]+$|resourceFieldRef\.divisor$|emptyDir\.sizeLimit$")
_GPU = re.compile(r"gpu|mig-", re.IGNORECASE)
_DEVICE = re.compile(r"/(tpu|neuron|gaudi)")


# -- torch ------------------------------------------------------------------------------------------------------------


def is_torch_without_trainer(found: Difference) -> bool:
    """Match the variables and the port of a Torch job without `spec.trainer`, and their ownership."""
    job = it.job(found.case)
    if not (job and it.is_torch(found.case) and "trainer" not in job["spec"]):
        return False
    if it.is_owned(found):
        return found.reference == ABSENT and (
            _owns_only(found, "env", "PET_", "MASTER_") or _owns_only(found, "ports", str(_PORT))
        )
    if it.of_container(found, "env"):
        return _added(found, lambda entry: entry["name"].startswith(("PET_", "MASTER_")))
    return it.of_container(found, "ports") and _added(found, lambda entry: entry["containerPort"] == _PORT)


def _owns_only(found: Difference, field: str, *names: str) -> bool:
    """Tell if only we own entries of a container's list, and each has a key that begins with one of `names`."""
    head, list_, entry = found.path.partition(f".f:{field}")
    keys = [entry.removeprefix(".")] if entry else [key for key in found.ours if key != "."]
    marks = tuple(f'k:{{"{key}{name}' for name in names for key in ('name":"', 'containerPort":'))
    return bool(list_) and ".f:containers." in head and all(key.startswith(marks) for key in keys)


def _added(found: Difference, ours: Callable[[Tree], bool]) -> bool:
    """Tell if our list is the reference's and, beside it, only entries that `ours` knows."""
    if not isinstance(found.ours, list):
        return False
    theirs = [] if found.reference == ABSENT else found.reference
    return [entry for entry in found.ours if not ours(entry)] == [entry for entry in theirs if not ours(entry)]


def knows_master(found: Difference) -> bool:
    """Match the first node's address by torch.distributed's own names, which nobody gave."""
    if not (it.within(found, "JobSet") and it.is_torch(found.case) and found.reference == ABSENT):
        return False
    name, variable, step = it.job(found.case)["metadata"]["name"], it.entry(found, "env"), _step(found)
    if variable not in MASTER or not (step and _in_node(found, "env")):
        return False
    if it.is_owned(found):
        return True
    spec = it.runtime(found.case)["spec"]["template"]["spec"]
    host = f"{name}-{step}-0-0.{spec.get('network', {}).get('subdomain', name)}"
    value = host if variable == MASTER[0] else str(_PORT)
    return bool(found.ours == {"name": variable, "value": value})


def mounts_claim(found: Difference) -> bool:
    """Match the volume and the mount of the claim that an initializer's URI names, which nobody gave."""
    step = it.entry(found, "replicatedJobs")
    source = it.job(found.case)["spec"].get("initializer", {}).get(step.removesuffix("-initializer"), {})
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


def runs_torchrun(found: Difference) -> bool:
    """Match the command of a Torch job that gives arguments, where nobody gave a command."""
    if not (it.within(found, "JobSet") and it.is_torch(found.case) and found.reference == ABSENT):
        return False
    trainer, step = it.job(found.case)["spec"].get("trainer", {}), _step(found)
    if not (step and _in_node(found, "command") and trainer.get("args") and "command" not in trainer):
        return False
    pod = it.pods(found.case)[step]["spec"]
    is_said = any("command" in one for one in pod["containers"] if one["name"] == "node")
    return not is_said and (it.is_owned(found) or found.ours == ["torchrun"])


def _step(found: Difference) -> str:
    """Return the job that a difference lies in, if it trains and is the first that does."""
    jobs = it.runtime(found.case)["spec"]["template"]["spec"]["replicatedJobs"]
    labels = [one["template"].get("metadata", {}).get("labels", {}) for one in jobs]
    trains = [job["name"] for job, said in zip(jobs, labels, strict=True) if "trainer" in said.values()]
    step = it.entry(found, "replicatedJobs")
    return step if trains[:1] == [step] else ""


def _in_node(found: Difference, field: str) -> bool:
    """Tell if a difference is one of a field of the training container, or of an entry of it."""
    is_field = it.plain(found.path).endswith(f"template.spec.containers.{field}")
    return is_field and it.entry(found, "containers") == "node"


def counts_accelerators(found: Difference) -> bool:
    """Match our `auto`, or number of devices, where the reference counted CPUs although the pod has an accelerator."""
    if not (it.of_container(found, "env.value") and it.entry(found, "env") == "PET_NPROC_PER_NODE"):
        return False
    job = it.job(found.case)["spec"].get("trainer", {}).get("resourcesPerNode", {})
    resources = [job, *(one.get("resources", {}) for one in it.containers(found.case))]
    given = [item for entry in resources for kind in ("limits", "requests") for item in entry.get(kind, {}).items()]
    if found.ours == "auto":
        return any(_GPU.search(name) for name, _ in given) or any(entry.get("claims") for entry in resources)
    return any(_DEVICE.search(name) and str(amount) == found.ours for name, amount in given)


def keeps_port(found: Difference) -> bool:
    """Match an unnamed port, or the name of port 29500, that the reference lost, and JobSets that it so cannot make."""
    if it.within(found, "JobSet") and (found.path, found.reference) == ("", ABSENT):
        return any(_has_equal_ports(one) for one in it.containers(found.case))
    given = [port for one in it.containers(found.case) for port in one.get("ports", ())]
    if it.of_container(found, "ports") and isinstance(found.reference, list):
        kept = [one for one in found.ours if one not in found.reference]
        return [one for one in found.ours if one not in kept] == found.reference and all(
            "name" not in one for one in kept
        )
    if found.reference != ABSENT or not re.search(r"containers\.ports(\.\w+)?$", it.plain(found.path)):
        return False
    if it.is_owned(found):
        number = re.search(r'\.f:ports\.k:\{"containerPort":(\d+)', found.path)
        return number is not None and int(number[1]) in [port["containerPort"] for port in given]
    return found.ours in [port.get("name") for port in given if port["containerPort"] == _PORT]


def _has_equal_ports(one: Tree) -> bool:
    """Tell if a container has ports that the reference takes for one: both unnamed, or of one number."""
    ports = one.get("ports", ())
    numbers = {port["containerPort"] for port in ports}
    return sum("name" not in port for port in ports) > 1 or len(numbers) < len(ports)


def follows_subdomain(found: Difference) -> bool:
    """Match the address of the first node in the runtime's subdomain."""
    name = it.job(found.case).get("metadata", {}).get("name", "")
    template = it.runtime(found.case).get("spec", {}).get("template", {})
    subdomain = template.get("spec", {}).get("network", {}).get("subdomain")
    if not (subdomain and it.of_container(found, "env.value") and it.entry(found, "env") == "PET_MASTER_ADDR"):
        return False
    return (found.reference, found.ours) == (f"{name}-node-0-0.{name}", f"{name}-node-0-0.{subdomain}")


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
    if not (it.within(found, "JobSet", "TrainJob") and re.search(r"\.(requests|limits)\.[\w.-]+/", found.path)):
        return False
    asked = it.job(found.case)["spec"].get("trainer", {}).get("resourcesPerNode", {})
    return any(
        str(found.ours) == str(amount) for kind in ("limits", "requests") for amount in asked.get(kind, {}).values()
    )


def has_no_policy(found: Difference) -> bool:
    """Match resources of the training container on a runtime without a policy."""
    said = "resourcesPerNode" in it.job(found.case)["spec"].get("trainer", {})
    in_resources = re.search(r"containers(\[[^]]*]|\.k:\{[^}]*})\.(f:)?resources", found.path)
    return said and "mlPolicy" not in it.runtime(found.case).get("spec", {}) and bool(in_resources)


def is_dropped_metadata(found: Difference) -> bool:
    """Match a pod template's metadata that is not labels and annotations."""
    leaf = re.search(r"template\.metadata(\.(name|namespace|finalizers))?$", it.plain(found.path))
    value = found.reference if isinstance(found.reference, dict) else {found.path.rpartition(".")[2]: None}
    names = {key.removeprefix("f:") for key in value}
    is_ours = it.within(found, "JobSet") and bool(leaf) and found.ours == ABSENT
    return is_ours and names <= {"name", "namespace", "finalizers"}


# -- what Go's types do to a document ---------------------------------------------------------------------------------


def is_kept_by_us(found: Difference) -> bool:
    """Match a field that the reference drops."""
    return found.reference == ABSENT and any(
        it.of_container(found, leaf) for leaf in ("resources.claims", "env.valueFrom.fileKeyRef")
    )


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
        return (it.is_owned(found) or _is_zero(found.ours)) and any(map(_is_zero, it.said_there(found)))
    if found.ours != ABSENT:
        return False
    return (found.reference is None and bool(_NULLED.search(path))) or (
        found.reference in ("", {}) and bool(_ADDED.search(path))
    )


def _is_zero(value: Any) -> bool:
    return _is_hollow(value) or (type(value) in (bool, int, str) and not value)


def _is_hollow(value: Any) -> bool:
    """Tell if nothing is in a list or a map, or in those within it."""
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list) and all(_is_hollow(item) for item in inner)
