"""Patches of several managers that Hypothesis draws, and edits of them that JobSet lets through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from tests.conformance.context import EDITABLE, KUEUE
from tests.conformance.documents import patch
from tests.conformance.generated_pods import METADATA, TEMPLATE
from tests.conformance.schema import below, crd, some

if TYPE_CHECKING:
    from tests.conformance.cases import Tree
    from tests.conformance.generated_pods import Draw

_PATCH: Final = below(crd("trainjobs"), "runtimePatches", "trainingRuntimeSpec", *TEMPLATE, "spec")
_MANAGERS = ("a.example.com/x", "b.example.com/y")
_CLOSED = tuple(sorted(set(_PATCH["properties"]) - set(EDITABLE)))


@st.composite
def patches(draw: Draw, on: Tree, *, whole: bool = True) -> list[Tree]:
    """Return entries of several managers: of every field, or only of those that JobSet lets a suspended job change."""
    jobs = jobs_of(on)
    entries = []
    for manager in draw(st.lists(st.sampled_from(_MANAGERS), unique=True, max_size=3)):
        chosen = draw(st.lists(st.sampled_from([job["name"] for job in jobs]), unique=True, max_size=2))
        said = [draw(_patched(next(job for job in jobs if job["name"] == name), whole=whole)) for name in chosen]
        entries.append(patch(manager, *said, metadata=draw(METADATA)))
    return entries


@st.composite
def _patched(draw: Draw, job: Tree, *, whole: bool) -> Tree:
    target = job["template"]["spec"]["template"]["spec"]
    closed = ("containers", "initContainers") if whole else _CLOSED
    pod = draw(some(_PATCH, most=3, without=closed))
    template: Tree = {"spec": {"template": {"metadata": draw(METADATA), "spec": pod}}}
    if whole:
        template["metadata"] = draw(METADATA)
        for kind in ("containers", "initContainers"):
            names = [entry["name"] for entry in target.get(kind, ())]
            chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []
            schema = below(_PATCH, kind)["items"]
            if chosen:
                pod[kind] = [_named(name, draw(some(schema, without=("name",)))) for name in chosen]
    return {"name": job["name"], "template": template}


def _named(name: str, fields: Tree) -> Tree:
    """Return a container's patch; the operator's own containers may have no env by a patch."""
    if name == "node" or name.endswith("-initializer"):
        fields.pop("env", None)
    if "volumeMounts" in fields:
        # Two mounts at one path are no case of merging, but a mistake.
        fields["volumeMounts"] = list({mount["mountPath"]: mount for mount in fields["volumeMounts"]}.values())
    return {"name": name, **fields}


@st.composite
def edited(draw: Draw, on: Tree, entries: list[Tree]) -> list[Tree]:
    """Return a job's entries with other values in what JobSet lets a suspended job change, and perhaps a new manager's.

    Other fields stay: JobSet refuses them, and a case that ends in a refusal tells nothing of what comes after.
    """
    found: list[Tree] = json.loads(json.dumps(entries))
    for entry in found:
        if entry["manager"] == KUEUE:
            names = [job["name"] for job in jobs_of(on)]
            placed = [{"name": name, "template": {"spec": {"template": {"spec": {}}}}} for name in names]
            entry["trainingRuntimeSpec"]["template"]["spec"] = {"replicatedJobs": placed}
        for job in entry["trainingRuntimeSpec"]["template"].get("spec", {}).get("replicatedJobs", ()):
            pod = job["template"]["spec"]["template"]
            pod["metadata"] = draw(METADATA)
            kept = {key: value for key, value in pod["spec"].items() if key not in EDITABLE}
            pod["spec"] = kept | draw(some(_PATCH, without=_CLOSED))
    managers = {entry["manager"] for entry in found}
    return [*found, *(entry for entry in draw(patches(on, whole=False)) if entry["manager"] not in managers)]


def jobs_of(on: Tree) -> list[Tree]:
    """Return the replicated jobs of a runtime."""
    jobs: list[Tree] = on["spec"]["template"]["spec"]["replicatedJobs"]
    return jobs
