"""Causes of the refusals that are ours alone: which fields of a case deserve one, worked out from its documents.

Our own words are no cause. A refusal is declared only if every field that it names has a cause, so that refusing the
good, or the good beside the bad, is a fault. Fields are written as messages have them, without numbers of entries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.conformance import context as it
from tests.conformance.cases import Change, Create, Remove
from tests.conformance.compare import named_fields
from trainplane.api.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conformance.cases import Tree
    from tests.conformance.compare import Difference

    Causes = Callable[[Difference], Iterator[str]]

PODS_PER_TRAINJOB = 32_768
LONGEST_NAME = 63
_ENDING = "-abcde"
"""What a pod's random ending looks like."""
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"({_SUBDOMAIN}/)?{_WORD}"
_RESOURCES = "spec.trainer.resourcesPerNode"
_QUEUE = "kueue.x-k8s.io/queue-name"
_FIXED = ("trainer", "initializer", "activeDeadlineSeconds")


def refused(causes: Causes) -> Callable[[Difference], bool]:
    """Match what we alone refuse where one of the fields that our message names has this cause, and each has one."""

    def matches(found: Difference) -> bool:
        if (found.place, found.path, found.ours) != ("verdict", "code", 403) or found.reference >= 400:
            return False
        named = {_unnumbered(field) for field in named_fields(found.message)}
        if not named & set(causes(found)):
            return False
        return named <= {field for every in ALL for field in every(found)}

    return matches


def _unnumbered(field: str) -> str:
    return re.sub(r"\[\d+]", "", field)


# -- the case ---------------------------------------------------------------------------------------------------------


def _spec(found: Difference) -> Tree:
    spec: Tree = it.stored(found).get("spec", {})
    return spec


def _trainer(found: Difference) -> Tree:
    return _spec(found).get("trainer") or {}


def _is_of_job(found: Difference) -> bool:
    """Tell if the step writes a TrainJob."""
    return isinstance(found.step, Create | Change) and it.kind(found.step) == "TrainJob"


def _policy(found: Difference) -> Tree:
    return it.runtime(found.case).get("spec", {}).get("mlPolicy") or {}


def _jobs(found: Difference) -> list[Tree]:
    jobs: list[Tree] = it.runtime(found.case).get("spec", {}).get("template", {}).get("spec", {})["replicatedJobs"]
    return jobs


def _trains(job: Tree) -> bool:
    return it.ancestor(job) == "trainer"


def _pods(found: Difference, job: Tree) -> int:
    """Return how many pods each replica of a job has."""
    nodes = _trainer(found).get("numNodes", _policy(found).get("numNodes"))
    count = job["template"].get("spec", {}).get("parallelism", 1)
    return int(nodes if _trains(job) and nodes is not None else count)


def _patched(found: Difference) -> Iterator[tuple[str, str, Tree]]:
    """Yield the path, the job's name and what is said of it, for each job of each patch in force."""
    for entry in _spec(found).get("runtimePatches") or ():
        path = f"spec.runtimePatches[manager={entry['manager']}].trainingRuntimeSpec.template.spec.replicatedJobs"
        for job in entry["trainingRuntimeSpec"].get("template", {}).get("spec", {}).get("replicatedJobs", ()):
            yield f"{path}[name={job['name']}]", job["name"], job


def _pod_of(job: Tree) -> Tree:
    pod: Tree = job.get("template", {}).get("spec", {}).get("template", {})
    return pod


def _containers(pod: Tree) -> Iterator[tuple[str, Tree]]:
    for kind in ("containers", "initContainers"):
        for one in pod.get("spec", {}).get(kind, ()):
            yield kind, one


# -- targets and fixed fields -----------------------------------------------------------------------------------------


def ghosts(found: Difference) -> Iterator[str]:
    """Yield patches of jobs and containers that the runtime does not have, or has as the other kind."""
    if not _is_of_job(found):
        return
    pods = it.pods(found.case)
    for path, name, job in _patched(found):
        if name not in pods:
            yield path
            continue
        known = {(kind, one["name"]) for kind, one in _containers(pods[name])}
        for kind, one in _containers(_pod_of(job)):
            if (kind, one["name"]) not in known:
                yield f"{path}.template.spec.template.spec.{kind}[name={one['name']}]"


def fixed(found: Difference) -> Iterator[str]:
    """Yield fields that an edit adds or removes although they may not change."""
    if not isinstance(found.step, Change) or found.step.kind != "TrainJob":
        return
    was, is_now = it.stored(found, before=True).get("spec", {}), _spec(found)
    for field in _FIXED:
        if (was.get(field) is None) != (is_now.get(field) is None):
            yield f"spec.{field}"


def frozen(found: Difference) -> Iterator[str]:
    """Yield the patches where an edit says of pods what JobSet does not let a suspended job change."""
    if isinstance(found.step, Change) and found.step.kind == "TrainJob":
        sides = [_frozen(it.stored(found, before=before).get("spec", {})) for before in (True, False)]
        if sides[0] != sides[1]:
            yield "spec.runtimePatches"


def _frozen(spec: Tree) -> list[Any]:
    kept = []
    for entry in spec.get("runtimePatches") or ():
        for job in entry["trainingRuntimeSpec"].get("template", {}).get("spec", {}).get("replicatedJobs", ()):
            pod = _pod_of(job).get("spec", {})
            rest = {key: value for key, value in pod.items() if key not in it.EDITABLE and value}
            metadata = job.get("template", {}).get("metadata", {})
            kept += [(job["name"], rest, metadata)] if rest or metadata else []
    return kept


# -- names and numbers ------------------------------------------------------------------------------------------------


def long_names(found: Difference) -> Iterator[str]:
    """Yield the name of a TrainJob of which a pod's would be too long."""
    if not _is_of_job(found):
        return
    name = it.job(found.case)["metadata"]["name"]
    for job in _jobs(found):
        replica, pod = job.get("replicas", 1) - 1, _pods(found, job) - 1
        if len(f"{name}-{job['name']}-{replica}-{pod}{_ENDING}") > LONGEST_NAME:
            yield "metadata.name"


def numbers(found: Difference) -> Iterator[str]:
    """Yield numbers of nodes, and with Torch and MPI of processes, that are below 1."""
    trainer = _trainer(found)
    counted = ["numNodes", *(["numProcPerNode"] if {"torch", "mpi"} & _policy(found).keys() else [])]
    for field in counted:
        if isinstance(trainer.get(field), int) and trainer[field] < 1:
            yield f"spec.trainer.{field}"


def too_many(found: Difference) -> Iterator[str]:
    """Yield the number of nodes of a TrainJob that comes to more pods than one may have."""
    if _is_of_job(found) and "numNodes" in _trainer(found):
        pods = sum(_pods(found, job) * job.get("replicas", 1) for job in _jobs(found))
        if pods > PODS_PER_TRAINJOB:
            yield "spec.trainer.numNodes"


def claims(found: Difference) -> Iterator[str]:
    """Yield URIs of claims that can have no such name."""
    for which, source in (_spec(found).get("initializer") or {}).items():
        claim = re.match(r"pvc://([^/]*)", source.get("storageUri", "")) if isinstance(source, dict) else None
        if claim and not re.fullmatch(_SUBDOMAIN, claim[1]):
            yield f"spec.initializer.{which}.storageUri"


# -- resources --------------------------------------------------------------------------------------------------------


def over_limits(found: Difference) -> Iterator[str]:
    """Yield `resourcesPerNode` that no training container of the runtime can have with what it has."""
    if any(_is_impossible(resources) for resources in _training(found).values()):
        yield _RESOURCES


def uncountable(found: Difference) -> Iterator[str]:
    """Yield `resourcesPerNode` of a queued TrainJob whose training containers have different amounts."""
    queued = _QUEUE in (it.stored(found).get("metadata", {}).get("labels") or {})
    amounts = [*_training(found).values()]
    if queued and any(one != amounts[0] for one in amounts):
        yield _RESOURCES


def _training(found: Difference) -> dict[str, dict[str, dict[str, Quantity]]]:
    """Return what the training container of each job asks for, with what the TrainJob says of it."""
    asked = _trainer(found).get("resourcesPerNode")
    if not asked or not _is_of_job(found):
        return {}
    containers = {job["name"]: one for job in _jobs(found) if _trains(job) for one in _nodes(job)}
    return {name: _amounts(one.get("resources", {}), asked) for name, one in containers.items()}


def _nodes(job: Tree) -> list[Tree]:
    return [one for kind, one in _containers(_pod_of(job)) if (kind, one["name"]) == ("containers", "node")]


def _amounts(given: Tree, asked: Tree) -> dict[str, dict[str, Quantity]]:
    """Return amounts by side and name; of a device what is asked on one side holds for both."""
    sides = {}
    for side, other in (("requests", "limits"), ("limits", "requests")):
        equal = {name: amount for name, amount in asked.get(other, {}).items() if "/" in name}
        merged = {**given.get(side, {}), **equal, **asked.get(side, {})}
        sides[side] = {name: Quantity.of(amount) for name, amount in merged.items()}
    return sides


def _is_impossible(amounts: dict[str, dict[str, Quantity]]) -> bool:
    limits, requests = amounts["limits"], amounts["requests"]
    halves = any("/" in name and one != Quantity.of(one.value()) for name, one in (limits | requests).items())
    uneven = any("/" in name and limits.get(name) != one for name, one in requests.items())
    return halves or uneven or any(one > limits.get(name, one) or one < ZERO for name, one in requests.items())


# -- pods that cannot be ----------------------------------------------------------------------------------------------


def twice(found: Difference) -> Iterator[str]:
    """Yield mounts of a patch at one path of a container."""
    for path, _, job in _patched(found):
        for kind, one in _containers(_pod_of(job)):
            paths = [mount["mountPath"] for mount in one.get("volumeMounts", ())]
            if len(set(paths)) < len(paths):
                yield f"{path}.template.spec.template.spec.{kind}[name={one['name']}].volumeMounts"


def impossible_pods(found: Difference) -> Iterator[str]:
    """Yield what patches say of pods for which the API server would refuse each Job."""
    if not _is_of_job(found):
        return
    for path, name, job in _patched(found):
        pod = _pod_of(job)
        spec, at = pod.get("spec", {}), f"{path}.template.spec.template"
        for field in ("operator", "effect", "key", "value"):
            if any(_is_bad(field, one) for one in spec.get("tolerations", ())):
                yield f"{at}.spec.tolerations.{field}"
        yield from _bad_keys(f"{path}.template.metadata", job.get("template", {}).get("metadata", {}))
        yield from _bad_keys(f"{at}.metadata", pod.get("metadata", {}))
        yield from _bad_keys(f"{at}.spec", {"nodeSelector": spec.get("nodeSelector", {})})
        if not re.fullmatch(_SUBDOMAIN, spec.get("serviceAccountName") or "default"):
            yield f"{at}.spec.serviceAccountName"
        yield from _lost(found, name, spec, f"{at}.spec")


def _is_bad(field: str, toleration: Tree) -> bool:
    """Tell if a field of a toleration is one for which the API server refuses a pod."""
    key, operator, value, effect = (toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
    match field:
        case "operator":
            return operator not in ("", "Equal", "Exists", "Lt", "Gt") or (not key and operator != "Exists")
        case "effect":
            timed = toleration.get("tolerationSeconds") is not None and effect != "NoExecute"
            return timed or effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
        case "key":
            return bool(key) and not re.fullmatch(_KEY, key)
        case _:
            return bool(value) and (operator == "Exists" or not re.fullmatch(_WORD, value))


def _bad_keys(at: str, maps: Tree) -> Iterator[str]:
    for kind, entries in maps.items():
        if kind not in ("labels", "annotations", "nodeSelector"):
            continue
        for key, value in (entries or {}).items():
            bad_value = kind != "annotations" and value and not re.fullmatch(_WORD, value)
            if bad_value or not re.fullmatch(_KEY, key):
                yield f"{at}.{kind}[{key}]" if re.search(r"[./]", key) else f"{at}.{kind}.{key}"


def _lost(found: Difference, job: str, spec: Tree, at: str) -> Iterator[str]:
    """Yield mounts of volumes, and uses of claims, that neither the runtime nor a patch gives to the job's pods."""
    pods = [it.pods(found.case).get(job, {}).get("spec", {})]
    pods += [_pod_of(said).get("spec", {}) for _, name, said in _patched(found) if name == job]
    volumes, devices = (
        {one["name"] for pod in pods for one in pod.get(field, ())} for field in ("volumes", "resourceClaims")
    )
    for kind, one in _containers({"spec": spec}):
        container = f"{at}.{kind}[name={one['name']}]"
        for mount in one.get("volumeMounts", ()):
            if mount["name"] not in volumes:
                yield f"{container}.volumeMounts[name={mount['name']}].name"
        for claim in one.get("resources", {}).get("claims", ()):
            if claim["name"] not in devices:
                yield f"{container}.resources.claims[name={claim['name']}].name"


# -- runtimes ---------------------------------------------------------------------------------------------------------


def unheard(found: Difference) -> Iterator[str]:
    """Yield the trainer of a new TrainJob on a runtime that has no container for it."""
    is_new = isinstance(found.step, Create) and it.kind(found.step) == "TrainJob"
    said = is_new and any(_trainer(found).values())
    if said and not any(_nodes(job) for job in _jobs(found) if _trains(job)):
        yield "spec.trainer"


def lost_jobs(found: Difference) -> Iterator[str]:
    """Yield names of jobs in a runtime's own words that it does not have, or has only later."""
    document = found.step.document if isinstance(found.step, Create) else {}
    if not str(document.get("kind", "")).endswith("TrainingRuntime"):
        return
    spec = document["spec"]["template"]["spec"]
    names = [job["name"] for job in spec["replicatedJobs"]]
    policies = [("successPolicy", spec.get("successPolicy", {}))]
    policies += [("failurePolicy.rules", rule) for rule in spec.get("failurePolicy", {}).get("rules", ())]
    for path, policy in policies:
        if not set(policy.get("targetReplicatedJobs", ())) <= set(names):
            yield f"spec.template.spec.{path}.targetReplicatedJobs"
    for number, job in enumerate(spec["replicatedJobs"]):
        if not {one["name"] for one in job.get("dependsOn", ())} <= set(names[:number]):
            yield "spec.template.spec.replicatedJobs.dependsOn.name"


def counted_runtimes(found: Difference) -> Iterator[str]:
    """Yield what an edit changes of a runtime, or its name if it goes, while Kueue counts a job of it."""
    job = it.stored(found)
    managers = {entry["manager"] for entry in job.get("spec", {}).get("runtimePatches") or ()}
    counted = it.KUEUE in managers or _QUEUE in (job.get("metadata", {}).get("labels") or {})
    step = found.step
    if not counted or it.has_reported(found, "Completed", "Failed") or not isinstance(step, Change | Remove):
        return
    on = it.runtime(found.case)
    if (step.kind, step.name) != (on["kind"], on["metadata"]["name"]):
        return
    if isinstance(step, Remove):
        yield "metadata.name"
    elif isinstance(step.patch, dict) and it.merged(on, step.patch)["spec"] != on["spec"]:
        yield "spec"


def nameless_mpi(found: Difference) -> Iterator[str]:
    """Yield the runtime of a TrainJob whose MPI implementation is an empty text."""
    if _is_of_job(found) and _policy(found).get("mpi", {}).get("mpiImplementation") == "":
        yield "spec.runtimeRef"


ALL: tuple[Causes, ...] = (
    *(ghosts, fixed, frozen, long_names, numbers, too_many, over_limits, claims, twice, counted_runtimes),
    *(impossible_pods, unheard, lost_jobs, uncountable, nameless_mpi),
)
