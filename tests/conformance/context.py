"""The case around a difference: what its documents and steps say, so that a predicate can ask for the cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.conformance.cases import Change, Create, Remove, Report, Step, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.cases import Case
    from tests.conformance.compare import Difference

KUEUE = "kueue.x-k8s.io/manager"
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


# -- documents --------------------------------------------------------------------------------------------------------


def runtime(case: Case) -> Tree:
    """Return the case's runtime."""
    return next((document for document in case.setup if document["kind"].endswith("TrainingRuntime")), {})


def job(case: Case) -> Tree:
    """Return the TrainJob as the case creates it."""
    documents = (step.document for step in case.steps if isinstance(step, Create))
    return next((document for document in documents if document["kind"] == "TrainJob"), {})


def is_torch(case: Case) -> bool:
    """Tell if the runtime has the torch policy."""
    return "torch" in (runtime(case).get("spec", {}).get("mlPolicy") or {})


def pods(case: Case) -> dict[str, Tree]:
    """Return the pod template of each replicated job of the runtime."""
    return _pods(runtime(case).get("spec", {}))


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
    """Return the steps before the one at which the difference appeared."""
    return found.case.steps[: max(found.number, 0)]


def so_far(found: Difference) -> tuple[Step, ...]:
    """Return the steps up to the one at which the difference appeared."""
    return found.case.steps[: found.number + 1]


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


def patches(found: Difference) -> list[list[Tree]]:
    """Return the TrainJob's patches after each step that gave some; the last are in force."""
    given = [_body(step).get("spec", {}) for step in so_far(found) if kind(step) == "TrainJob"]
    return [spec["runtimePatches"] or [] for spec in given if "runtimePatches" in spec]


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
