"""Whether `runtimePatches` keep to the fields that an admin allows.

A patch may ask for all that a pod's author may ask for: another service account, a node's disk, more privileges. Where
that is too much, the setting `admission.allowedRuntimePatches` says what is left. Fields of older generations are
judged as the patches that they become. An update is judged for the entries that it changes, so that a setting that
came later stops no job from starting.

Kueue's entry may also say where pods run: these fields are Kueue's words, and whoever writes more under its name has to
ask for it like everybody else.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.kueue import is_kueues
from trainplane.admission.semantic_equality import meaning, same
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.fieldpaths import ANY, FieldPaths
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.tree import Tree

_SETTING: Final = "admission.allowedRuntimePatches"
_POD: Final = "template.spec.replicatedJobs[*].template.spec.template"
_KUEUES: Final = (
    f"{_POD}.metadata.labels",
    f"{_POD}.metadata.annotations",
    f"{_POD}.spec.nodeSelector",
    f"{_POD}.spec.tolerations",
    f"{_POD}.spec.schedulingGates",
)
_CHOOSING: Final = frozenset({"replicatedJobs", "containers", "initContainers"})
"""Lists whose entries are chosen by a name that says nothing else."""
_SHOWN: Final = 10
"""How many fields a refusal names."""


def judge_allowed(new: Tree, old: Tree | None, allowed: Sequence[str] | None) -> Iterator[Finding]:
    """Yield a finding for each entry that sets what it may not; None allows every field."""
    if allowed is None:
        return
    stored = {entry["manager"]: entry for entry in trees.get(old, "spec", "runtimePatches") or ()}
    for entry in trees.get(new, "spec", "runtimePatches") or ():
        before = stored.get(entry["manager"])
        if before is not None and same(before.get("trainingRuntimeSpec"), entry.get("trainingRuntimeSpec")):
            continue
        paths = FieldPaths.of((*allowed, *_KUEUES) if is_kueues(entry) else allowed)
        at = f"spec.runtimePatches[manager={entry['manager']}].trainingRuntimeSpec"
        fields = list(itertools.islice(_beyond(_said(entry), paths, ""), _SHOWN))
        if fields:
            also = f", nor may {', '.join(fields[1:])}" if fields[1:] else ""
            problem = f"may not be patched by {_SETTING} of the operator{also}: allowed are {_listed(allowed)}"
            yield Finding(f"{at}{fields[0]}", problem, "Forbidden")


def _said(entry: Tree) -> Tree:
    """Return all that an entry changes; of the older fields, what they say of a JobSet holds for its pods, too."""
    said: Tree = meaning(entry.get("trainingRuntimeSpec")) or {}
    metadata = trees.get(said, "template", "metadata")
    if entry["manager"] != names.PATCH_MANAGER_OLDER_FIELDS or not metadata:
        return said
    pods = {"name": ANY, "template": {"spec": {"template": {"metadata": metadata}}}}
    jobs = trees.get(said, "template", "spec", "replicatedJobs") or []
    whole: Tree = trees.put(said, "template", "spec", "replicatedJobs", value=[*jobs, pods])
    return whole


def _beyond(said: Any, allowed: FieldPaths, at: str, *, empty_speaks: bool = False) -> Iterator[str]:
    """Yield the path of each field that is said and not allowed; `empty_speaks` where `{}` says something."""
    if allowed.holds_all:
        return
    if isinstance(said, dict) and (said or not empty_speaks):
        for key, value in said.items():
            below, place = allowed.below(key), f"{at}.{key}"
            if isinstance(value, list):
                yield from _beyond_in_list(value, below, place, chooses=key in _CHOOSING)
            else:
                yield from _beyond(value, below, place, empty_speaks=empty_speaks)
    else:
        yield at


def _beyond_in_list(said: list[Any], allowed: FieldPaths, at: str, *, chooses: bool) -> Iterator[str]:
    if allowed.holds_all:
        return
    if not allowed.paths and not chooses:
        yield at
        return
    for entry in said:
        rest = {key: value for key, value in entry.items() if key != "name"} if isinstance(entry, dict) else entry
        name = str(entry.get("name", "")) if isinstance(entry, dict) else ""
        place = f"{at}[name={name}]" if name else at
        yield from _beyond(rest, allowed.below(name), place, empty_speaks=not chooses)


def _listed(allowed: Sequence[str]) -> str:
    return ", ".join(allowed) or "no fields at all"
