"""What runtimePatches speak of, and whether the runtime has it.

Judged against the runtime as it stands, before any patch is merged: a merge adds what it does not find, so afterwards
every target would be there.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import jobset
from trainplane.api import tree as trees
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from trainplane.api.tree import Tree

_SHOWN: Final = 16
_LONGEST: Final = 64
"""How many names a message shows, and how many letters of each."""
_KINDS = (("containers", "container"), ("initContainers", "init container"))


@dataclass(frozen=True, slots=True)
class Missing:
    """A target that the runtime does not have, and who speaks of it."""

    manager: str
    finding: Finding


def missing_targets(patches: Iterable[Tree], template: Tree) -> Iterator[Missing]:
    """Yield every replicated job, container and init container that a patch names and the runtime lacks."""
    jobs = {job.name: job for job in jobset.JobSetTemplate(template).jobs}
    for manager, change in job_patches(patches):
        job = jobs.get(change.get("name", ""))
        if job is None:
            problem = f"the runtime has no replicated job of this name; it has {_listed(jobs)}"
            yield Missing(manager, Finding(path_of(manager, change), problem))
            continue
        pod = pod_spec_of(change)
        present = {
            kind: dict.fromkeys(entry.get("name", "") for entry in job.pod_spec.get(kind) or ()) for kind, _ in _KINDS
        }
        for (kind, word), (other, other_word) in zip(_KINDS, reversed(_KINDS), strict=True):
            for entry in pod.get(kind) or ():
                name = entry.get("name", "")
                if name in present[kind]:
                    continue
                if name in present[other]:
                    problem = f"{name} is a {other_word} of the runtime: move the entry to {other}"
                else:
                    problem = (
                        f"the runtime's job {job.name} has no {word} of this name; it has {_listed(present[kind])}"
                    )
                place = f"{path_of(manager, change)}.template.spec.template.spec.{kind}[name={name}]"
                yield Missing(manager, Finding(place, problem))


def job_patches(patches: Iterable[Tree]) -> Iterator[tuple[str, Tree]]:
    """Yield each patch of a replicated job with its manager."""
    for patch in patches:
        manager = patch.get("manager", "")
        for change in trees.get(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs") or ():
            yield manager, change


def path_of(manager: str, change: Tree) -> str:
    """Return where a manager's patch of a replicated job stands in the TrainJob."""
    at = f"spec.runtimePatches[manager={manager}].trainingRuntimeSpec.template.spec.replicatedJobs"
    return f"{at}[name={change.get('name', '')}]"


def pod_spec_of(change: Tree) -> Tree:
    """Return what a patch of a replicated job says of its pods."""
    said: Any = trees.get(change, "template", "spec", "template", "spec")
    return said or {}


def _listed(names: Collection[str]) -> str:
    """Return some names as a person reads them: the first few, none of them at length."""
    shown = ", ".join(str(name)[:_LONGEST] for name in heapq.nsmallest(_SHOWN, names, key=str))
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown or "none"
