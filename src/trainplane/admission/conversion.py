"""TrainJobs of v2.0 and v2.1, turned into the form of v2.3.

| older                                    | today                                                             |
|------------------------------------------|-------------------------------------------------------------------|
| `spec.labels`, `spec.annotations`        | `template.metadata` of one `runtimePatches` entry; pods get it too |
| `spec.podSpecOverrides` (v2.0)           | its `template.spec.replicatedJobs`, one for each target job       |
| `spec.podTemplateOverrides` (v2.1)       | the same, with pod labels and annotations                         |
| `spec.trainer.numProcPerNode` as a text  | a number, or left out where that means the same (see `processes`) |
| `spec.runtimeRef.apiGroup: kubeflow.org` | `trainer.kubeflow.org`                                            |

The entry is ours, manager `names.PATCH_MANAGER_OLDER_FIELDS`, and stands first: entries of today's form win over it.
Whoever sends the old form again (`kubectl apply` of the same file) gets the same entry again, so nothing changes.

A field that does not have the form its release gave it is left alone: the schema refuses it better than we could.
Nothing here looks at what is stored or at a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.bounds import MOST_LETTERS, MOST_VALUES, weigh
from trainplane.api.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from trainplane.api.tree import Tree

_MANAGER: Final = names.PATCH_MANAGER_OLDER_FIELDS
_OVERRIDES: Final = ("podSpecOverrides", "podTemplateOverrides")
_OLDER: Final = ("labels", "annotations", *_OVERRIDES)

_MERGED_BY: Final = {"containers": "name", "initContainers": "name"}
"""Lists whose entries are merged when two overrides speak of the same job."""
_REPLACED_BY: Final = {
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
}
"""Lists whose entries are replaced whole."""

LONGEST_WARNING: Final = 256
"""Characters of a warning that the API server passes on."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A TrainJob in today's form, and a sentence for each field that was not."""

    tree: Tree
    warnings: tuple[str, ...] = ()


def convert(job: Tree) -> Converted:
    """Return the TrainJob with older fields in today's form; the same tree if there are none.

    `numProcPerNode` is not turned here: what its words mean depends on the runtime (`processes`).

    Raises:
        DecodeError: its overrides come to more, in today's form, than a TrainJob may say.
    """
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return Converted(job)
    warnings: list[str] = []
    turned = _with_patches(spec, warnings) if any(field in spec for field in _OLDER) else spec
    if trees.get(turned, "runtimeRef", "apiGroup") == names.LEGACY_GROUP:
        turned = trees.put(turned, "runtimeRef", "apiGroup", value=names.GROUP)
        warnings.append(
            f"spec.runtimeRef.apiGroup: {names.LEGACY_GROUP} was stored as {names.GROUP}; "
            f"write: apiGroup: {names.GROUP}, or leave it out"
        )
    return Converted(job if turned is spec else {**job, "spec": turned}, tuple(warnings))


def _with_patches(spec: Tree, warnings: list[str]) -> Tree:
    patches = spec.get("runtimePatches")
    patches = [] if patches is None else patches
    present = [field for field in _OLDER if field in spec and _is_well_formed(field, spec[field])]
    if not isinstance(patches, list) or not present:
        return spec
    written = [field for field in present if spec[field]]
    rest = {field: value for field, value in spec.items() if field not in present}
    if not written:
        return rest
    template = _template(spec, written)
    warnings.extend(_warning(field, spec[field], template) for field in written)
    return {**rest, "runtimePatches": _with_entry(patches, template)} if template else rest


def _template(spec: Tree, written: Sequence[str]) -> Tree:
    """Return what the older fields say, as a patch of the runtime's template."""
    template: Tree = {}
    metadata = {field: spec[field] for field in ("labels", "annotations") if field in written}
    if metadata:
        template["metadata"] = metadata
    fields = [field for field in _OVERRIDES if field in written]
    for field in fields:
        _judge_size(field, spec[field])
    merging = Merging()
    for job, pod in (override for field in fields for override in _pods(field, spec[field])):
        merging.add(job, pod)
    if merging.pods:
        jobs = [{"name": job, "template": {"spec": {"template": pod}}} for job, pod in merging.pods.items()]
        template["spec"] = {"replicatedJobs": jobs}
    return template


def _judge_size(field: str, overrides: list[Tree]) -> None:
    """Refuse overrides that come to more than a TrainJob may say: each is said again for each of its jobs.

    Raises:
        DecodeError: they do.
    """
    values = letters = 0
    for override in overrides:
        targets = {target["name"] for target in override.get("targetJobs") or []}
        weight = weigh({key: value for key, value in override.items() if key != "targetJobs"})
        values += len(targets) * weight[0]
        letters += len(targets) * weight[1]
    if values > MOST_VALUES or letters > MOST_LETTERS:
        raise DecodeError(
            f"spec.{field}",
            f"comes to {values} values and {letters} characters, said for each of its targetJobs, and a TrainJob may "
            f"say {MOST_VALUES} and {MOST_LETTERS}: name fewer jobs, or say less of them",
        )


def _pods(field: str, overrides: list[Tree]) -> Iterable[tuple[str, Tree]]:
    """Yield each target job and the pod template patch that an override means for it."""
    for override in overrides:
        if field == "podSpecOverrides":
            pod: Tree = {"spec": {key: value for key, value in override.items() if key != "targetJobs"}}
        else:
            pod = {key: value for key, value in override.items() if key not in {"targetJobs", "metadata"}}
            metadata = override.get("metadata") or {}
            # v2.1 took these two and no more.
            wanted = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
            if wanted:
                pod = {"metadata": wanted, **pod}
        for target in override.get("targetJobs") or []:
            yield target["name"], pod


def _with_entry(patches: list[Any], template: Tree) -> list[Any]:
    """Return the patches with our entry saying `template`; what else it says stays."""
    for place, entry in enumerate(patches):
        if isinstance(entry, dict) and entry.get("manager") == _MANAGER:
            known = trees.get(entry, "trainingRuntimeSpec", "template")
            merged = {**known, **template} if isinstance(known, dict) else template
            if isinstance(known, dict) and isinstance(known.get("metadata"), dict) and "metadata" in template:
                merged["metadata"] = {**known["metadata"], **template["metadata"]}
            spec = entry.get("trainingRuntimeSpec")
            spec = {**spec, "template": merged} if isinstance(spec, dict) else {"template": merged}
            return [*patches[:place], {**entry, "trainingRuntimeSpec": spec}, *patches[place + 1 :]]
    return [{"manager": _MANAGER, "trainingRuntimeSpec": {"template": template}}, *patches]


class Merging:
    """Makes one patch of the pods of each job of all that overrides say of it.

    The later wins, as when they were merged one after the other. What was sent is not changed.

    A thousand overrides may speak of one job. So what was merged is not copied again with each: an object or list of
    our own is written into, and the places of a list's entries are remembered.
    """

    def __init__(self) -> None:
        self.pods: dict[str, Tree] = {}
        """Pod template patches by replicated job."""
        # By identity; what it belongs to is kept with it, as an identity means nothing once its object is gone.
        self._own: dict[int, Tree] = {}
        self._lists: dict[int, tuple[list[Any], dict[Hashable, int]]] = {}

    def add(self, job: str, pod: Tree) -> None:
        """Merge one more patch of the pods of a job."""
        self.pods[job] = self._into(self.pods.get(job, {}), pod)

    def _into(self, base: Tree, patch: Tree) -> Tree:
        if id(base) not in self._own:
            base = dict(base)
            self._own[id(base)] = base
        for field, value in patch.items():
            known = base.get(field)
            key = _MERGED_BY.get(field) or _REPLACED_BY.get(field)
            if key and isinstance(known, list) and isinstance(value, list):
                base[field] = self._into_list(known, value, key, whole=field in _REPLACED_BY)
            elif isinstance(known, dict) and isinstance(value, dict):
                base[field] = self._into(known, value)
            else:
                base[field] = value
        return base

    def _into_list(self, base: list[Any], patch: list[Any], key: str, *, whole: bool) -> list[Any]:
        if id(base) not in self._lists:
            base = list(base)
            known: dict[Hashable, int] = {}
            for place, one in enumerate(base):
                known.setdefault(_name(one, key), place)
            self._lists[id(base)] = base, known
        places = self._lists[id(base)][1]
        for entry in patch:
            name = _name(entry, key)
            found = len(base) if name is None else places.setdefault(name, len(base))
            if found == len(base):
                base.append(entry)
            else:
                base[found] = entry if whole else self._into(base[found], entry)
        return base


def _name(entry: Any, key: str) -> Hashable:
    """Return what tells an entry apart; None if nothing does."""
    name = entry.get(key) if isinstance(entry, dict) else None
    return trees.hashable(name) if name else None


def _is_well_formed(field: str, value: Any) -> bool:
    """Return whether a field has the form that its release gave it, as far as we take it apart. Null is absent."""
    if value is None:
        return True
    if field not in _OVERRIDES:
        return isinstance(value, dict)
    return isinstance(value, list) and all(isinstance(entry, dict) and _has_targets(entry) for entry in value)


def _has_targets(override: Tree) -> bool:
    targets = override.get("targetJobs")
    named = isinstance(targets, list) and all(
        isinstance(target, dict) and isinstance(target.get("name"), str) for target in targets
    )
    return named and isinstance(override.get("metadata") or {}, dict)


def _warning(field: str, value: Any, template: Tree) -> str:
    """Return the sentence that shows what to write instead, the user's own values in it where they fit."""
    if field not in _OVERRIDES:
        outlines = [_flow({"metadata": {field: value}}), f"{{metadata: {{{field}: {{...}}}}}}"]
    elif "spec" in template:
        first = template["spec"]["replicatedJobs"][0]["name"]
        outlines = [_flow({"spec": template["spec"]}), _flow_of_job(first), _flow_of_job(names.JOB_NODE)]
    else:
        return f"spec.{field} names no targetJobs and so changes nothing; leave it out"
    forms = (
        f"spec.{field} is an older form, stored as spec.runtimePatches; "
        f"write: runtimePatches: [{{manager: example.com/you, trainingRuntimeSpec: {{template: {outline}}}}}]"
        for outline in outlines
    )
    return next(form for form in forms if form.isascii() and len(form) <= LONGEST_WARNING)


def _flow(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _flow_of_job(name: str) -> str:
    return "{spec: {replicatedJobs: [{name: " + name + ", template: {spec: {template: {...}}}}]}}"
