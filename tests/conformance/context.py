"""The case around a difference: what its documents and steps say, so that a predicate can ask for the cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.conformance.cases import Change, Create, Remove, Report, Step, Tree
from tests.conformance.documents import ANCESTOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.cases import Case
    from tests.conformance.compare import Difference

KUEUE = "kueue.x-k8s.io/manager"
EDITABLE = ("nodeSelector", "tolerations", "schedulingGates")
"""What JobSet lets a suspended job change of its pods, beside their labels and annotations."""
_CHANGEABLE = re.compile(
    r"(spec\.replicatedJobs\.template\.spec\.template\.)?metadata(\.(labels|annotations)\b.*)?"
    r"|spec\.replicatedJobs\.template\.spec\.template\.spec\.(nodeSelector|tolerations|schedulingGates)\b.*"
    r"|spec\.suspend|metadata\.generation"
)


# -- where ------------------------------------------------------------------------------------------------------------


def within(found: Difference, *kinds: str) -> bool:
    """Tell if a difference lies in an object of one of some kinds."""
    return found.place.partition(" ")[0] in kinds


def plain(path: str) -> str:
    """Return a path without indexes and keys, in the words of the object and not of its ownership."""
    return re.sub(r"\[[^]]*]|\.k:\{[^}]*}", "", path).removeprefix("owned.").replace("f:", "")


def is_owned(found: Difference) -> bool:
    """Tell if a difference is one of who owns a field."""
    return found.path.startswith("owned.")


def is_changeable(found: Difference) -> bool:
    """Tell if a difference lies in what an edit of a TrainJob may change of its JobSet, or counts such changes."""
    return _CHANGEABLE.fullmatch(plain(found.path)) is not None


def of_container(found: Difference, field: str) -> bool:
    """Tell if a difference is one of a field of a container that is no init container."""
    return within(found, "JobSet") and plain(found.path).endswith(f"template.spec.containers.{field}")


def entry(found: Difference, field: str) -> str:
    """Return which entry of a list a difference lies in: `replicatedJobs` gives `node`; an owned field's too."""
    match = re.search(rf'\b{field}(?:\[([^]]*)]|\.k:\{{"name":"([^"]*)")', found.path)
    return (match[1] or match[2]) if match else ""


def in_node(found: Difference, field: str) -> bool:
    """Tell if a difference is one of a field of the first container that trains, or of an entry of it."""
    if not (within(found, "JobSet") and re.search(rf"template\.spec\.containers\.{field}\b", plain(found.path))):
        return False
    where = (entry(found, "replicatedJobs"), entry(found, "containers"))
    return where in [(name, "node") for name in training(found.case)[:1]]


def keys(found: Difference, field: str) -> set[str]:
    """Return the keys of a list's entries that a difference of ownership is about."""
    rest = found.path.partition(f".f:{field}")[2]
    if rest:
        return {match[0] for match in [re.search(r"k:\{[^}]*}", rest)] if match}
    return {key for key in found.ours if key != "."} if isinstance(found.ours, dict) else set()


# -- documents --------------------------------------------------------------------------------------------------------


def runtime(case: Case) -> Tree:
    """Return the case's runtime, set up or created by a step."""
    documents = (*case.setup, *(step.document for step in case.steps if isinstance(step, Create)))
    return next((document for document in documents if document["kind"].endswith("TrainingRuntime")), {})


def job(case: Case) -> Tree:
    """Return the TrainJob as the case creates it."""
    documents = (step.document for step in case.steps if isinstance(step, Create))
    return next((document for document in documents if document["kind"] == "TrainJob"), {})


def spec(case: Case) -> Tree:
    """Return the spec of the TrainJob as the case creates it, or an empty one."""
    found: Tree = job(case).get("spec", {})
    return found


def trainer(case: Case) -> Tree:
    """Return the `trainer` of the TrainJob, or an empty one."""
    found: Tree = spec(case).get("trainer") or {}
    return found


def has_trainer(case: Case) -> bool:
    """Tell if the TrainJob has a `trainer`, be it an empty one."""
    return spec(case).get("trainer") is not None


def policy(case: Case) -> Tree:
    """Return the runtime's `mlPolicy`, or an empty one."""
    found: Tree = runtime(case).get("spec", {}).get("mlPolicy") or {}
    return found


def nodes(case: Case) -> int:
    """Return how many nodes a job has whose framework counts them by the policy."""
    return int(trainer(case).get("numNodes") or policy(case).get("numNodes", 1))


def address(case: Case) -> str:
    """Return where the first node is reached."""
    name = job(case)["metadata"]["name"]
    network = runtime(case)["spec"]["template"]["spec"].get("network", {})
    return f"{name}-{[*training(case), 'node'][0]}-0-0.{network.get('subdomain', name)}"


def node(case: Case) -> Tree:
    """Return the runtime's container that trains, or an empty one."""
    names, templates = [*training(case)[:1], "node"], pods(case)
    found = [one for name in names if name in templates for one in templates[name]["spec"]["containers"]]
    return next((one for one in found if one["name"] == "node"), {})


def is_torch(case: Case) -> bool:
    """Tell if the runtime has the torch policy."""
    return "torch" in (runtime(case).get("spec", {}).get("mlPolicy") or {})


def pods(case: Case) -> dict[str, Tree]:
    """Return the pod template of each replicated job of the runtime."""
    return _pods(runtime(case).get("spec", {}))


def ancestor(job: Tree) -> str:
    """Return which step of a training a replicated job is labelled as."""
    return str(job["template"].get("metadata", {}).get("labels", {}).get(ANCESTOR, ""))


def training(case: Case) -> list[str]:
    """Return the replicated jobs of the runtime that train."""
    jobs = runtime(case).get("spec", {}).get("template", {}).get("spec", {}).get("replicatedJobs", ())
    return [job["name"] for job in jobs if ancestor(job) == "trainer"]


def containers(case: Case) -> list[Tree]:
    """Return every container of the runtime."""
    specs = [template.get("spec", {}) for template in pods(case).values()]
    return [one for spec in specs for kind in ("containers", "initContainers") for one in spec.get(kind, ())]


def _pods(spec: Tree) -> dict[str, Tree]:
    jobs = spec.get("template", {}).get("spec", {}).get("replicatedJobs", ())
    return {one["name"]: one["template"].get("spec", {}).get("template", {}) for one in jobs}


# -- steps ------------------------------------------------------------------------------------------------------------


def kind(step: Step | None) -> str:
    """Return the kind of object that a step writes."""
    if isinstance(step, Create):
        return str(step.document["kind"])
    return step.kind if isinstance(step, Change | Remove) else ""


def before(found: Difference) -> tuple[Step, ...]:
    """Return the steps before the one at which the difference appeared, without those that both sides refused."""
    return _taken(found, max(found.number, 0))


def so_far(found: Difference) -> tuple[Step, ...]:
    """Return the steps up to the one at which the difference appeared, without those that both sides refused."""
    return _taken(found, found.number + 1)


def _taken(found: Difference, end: int) -> tuple[Step, ...]:
    return tuple(step for number, step in enumerate(found.case.steps[:end]) if number not in found.refused)


def stored(found: Difference, *, before: bool = False) -> Tree:
    """Return the TrainJob as it was written, edits included: with the step of the difference, or before it."""
    tree = job(found.case)
    for step in _taken(found, found.number + (not before)):
        if isinstance(step, Change) and step.kind == "TrainJob" and isinstance(step.patch, dict):
            tree = merged(tree, step.patch)
    return tree


def merged(tree: Any, patch: Any) -> Any:
    """Return a tree with a merge patch (RFC 7386) applied."""
    if not isinstance(patch, dict):
        return patch
    found = dict(tree) if isinstance(tree, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def has_reported(found: Difference, *conditions: str) -> bool:
    """Tell if the JobSet has reported one of some conditions in an earlier step."""
    return any(
        one["type"] in conditions
        for step in before(found)
        if isinstance(step, Report)
        for one in step.status.get("conditions", ())
    )


def has_removed(found: Difference, kind: str) -> bool:
    """Tell if an object of a kind has been removed so far."""
    return any(isinstance(step, Remove) and step.kind == kind for step in so_far(found))


def said_of_suspend(found: Difference) -> list[bool]:
    """Return what was said of `suspend`, by the TrainJob and its edits so far, in order."""
    given = [said_by(step) for step in so_far(found)]
    return [suspend for suspend in given if suspend is not None]


def said_by(step: Step) -> bool | None:
    """Return what a step says of a TrainJob's `suspend`, if it does."""
    suspend: bool | None = _body(step).get("spec", {}).get("suspend") if kind(step) == "TrainJob" else None
    return suspend


def patches(found: Difference) -> list[list[Tree]]:
    """Return the TrainJob's patches after each step that gave some; the last are in force."""
    given = [_body(step).get("spec", {}) for step in so_far(found) if kind(step) == "TrainJob"]
    return [spec["runtimePatches"] or [] for spec in given if "runtimePatches" in spec]


def says_something(entry: Tree) -> bool:
    """Tell if an entry of `runtimePatches` changes anything."""
    template = entry["trainingRuntimeSpec"].get("template", {})
    return bool(template.get("metadata") or template.get("spec", {}).get("replicatedJobs"))


def patched_pods(entries: list[Tree]) -> list[tuple[str, Tree]]:
    """Return what patches say of the pod templates of replicated jobs, by name, in order."""
    return [item for one in entries for item in _pods(one["trainingRuntimeSpec"]).items()]


def annotated(entries: list[Tree], name: str) -> list[str]:
    """Return the values that patches give to an annotation of the JobSet."""
    templates = [one["trainingRuntimeSpec"].get("template", {}) for one in entries]
    given = [one.get("metadata", {}).get("annotations", {}) for one in templates]
    return [annotations[name] for annotations in given if name in annotations]


def said(found: Difference, name: str) -> Iterator[Any]:
    """Yield every value that a document of the case gives to a field of a name, wherever it stands."""
    for document in (*found.case.setup, *map(_body, so_far(found))):
        yield from _values(document, name)


def said_there(found: Difference) -> Iterator[Any]:
    """Yield the values that the runtime and the patches give to the field of a JobSet or snapshot that differs."""
    steps = plain(found.path).removeprefix("data.runtime.spec.template.").split(".")
    entries = [entry["trainingRuntimeSpec"] for given in patches(found) for entry in given]
    for spec in (runtime(found.case).get("spec", {}), *entries):
        yield from _reached(spec.get("template", {}), steps)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield every part of a tree, and what is below it."""
    yield tree
    for below in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from leaves(below)


def _reached(tree: Any, steps: list[str]) -> Iterator[Any]:
    """Yield what stands at a path, which steps into lists without a word."""
    if not steps:
        yield tree
    elif isinstance(tree, list):
        for entry in tree:
            yield from _reached(entry, steps)
    elif isinstance(tree, dict) and steps[0] in tree:
        yield from _reached(tree[steps[0]], steps[1:])


def _body(step: Step) -> Tree:
    """Return what a step writes; a JSON patch's operations are no tree of the object, so they say nothing here."""
    body = step.patch if isinstance(step, Change) else step.document if isinstance(step, Create) else {}
    return body if isinstance(body, dict) else {}


def _values(tree: Any, name: str) -> Iterator[Any]:
    if isinstance(tree, dict):
        if name in tree:
            yield tree[name]
        for value in tree.values():
            yield from _values(value, name)
    elif isinstance(tree, list):
        for value in tree:
            yield from _values(value, name)
