"""What is filled in and straightened before a TrainJob is stored. Pure: the clock's `now` is handed in.

In order:

0. a runtime that is named without its kind gets one (`settle_kind`);
0. one that begins after another is kept out of its queue (`after`);
1. older generations take today's form (`conversion`, `processes`);
   what is Kueue's stays Kueue's: its entry, and when a queued TrainJob begins (`kueue`);
2. of a TrainJob that Kueue counts, `resourcesPerNode` says all that its nodes ask for (`quota`);
3. on an update, a part that means what is stored keeps the stored form (`semantic_equality`), so that a client
   which writes the same in other letters changes nothing; and so does a trainer that Kueue rewrote (`rewritten`);
4. every `runtimePatches` entry carries the time of its last change.

What runs here has been pruned and filled with the schema's defaults but not validated, so any part may have any type. A
part of a wrong type is left as it is, and the schema refuses it.

Doing it twice is doing it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.after import with_gate
from trainplane.admission.conversion import convert
from trainplane.admission.kueue import is_held_back, with_entry
from trainplane.admission.processes import convert_processes
from trainplane.admission.quota import is_counted, says_nodes, says_resources, spell_out
from trainplane.admission.rewritten import is_rewritten
from trainplane.admission.semantic_equality import same, settled
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.meta import whole_seconds

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.render.plan import Runtime

_FIXED: Final = ("trainer", "initializer")
_POD: Final = ("template", "spec", "template", "spec")
_GRACE: Final = "terminationGracePeriodSeconds"


@dataclass(frozen=True, slots=True)
class Defaulted:
    """A TrainJob as it will be stored, and what to tell whoever sent it."""

    tree: Tree
    warnings: tuple[str, ...] = ()


def default_trainjob(new: Tree, old: Tree | None, *, now: datetime, runtime: Runtime | None = None) -> Defaulted:
    """Return the TrainJob in the form to store.

    Args:
        new: what was sent.
        old: what is stored, on an update.
        now: the time to stamp on entries that changed.
        runtime: the runtime, if at hand (of an update: the snapshot, else the live one). `needs_runtime` says whether
            it makes a difference. Without it a word in `numProcPerNode` stays, and validation refuses it; and
            `resourcesPerNode` stays as it was sent.
    """
    turned = convert(with_gate(new, old))
    tree, processes = convert_processes(turned.tree, old, runtime)
    warnings = [*turned.warnings, processes] if processes else list(turned.warnings)
    tree = _with_kueues(tree, old, warnings)
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        return Defaulted(tree, tuple(warnings))
    filled = spec
    if runtime is not None and is_counted(tree) and _may_be_spelt_out(tree, old):
        filled = spell_out(tree, runtime)["spec"]
    if old is not None:
        filled = _keeping_form(filled, convert_processes(convert(old).tree, None, runtime)[0], warnings)
    stored = trees.get(old, "spec", "runtimePatches")
    filled = _with_patches(filled, stored if isinstance(stored, list) else None, now, warnings)
    return Defaulted(tree if filled is spec else {**tree, "spec": filled}, tuple(warnings))


def leaves_kind_open(new: Tree, old: Tree | None) -> bool:
    """Return whether a new TrainJob names a runtime that may be the namespace's or the cluster's."""
    annotation = trees.get(new, "metadata", "annotations", names.ANNOTATION_RUNTIME_KIND)
    return old is None and annotation == names.RUNTIME_KIND_ANY and isinstance(_ref(new), dict)


def settle_kind(new: Tree, *, in_namespace: bool) -> Tree:
    """Return a TrainJob that left the kind of its runtime open with the kind settled.

    Without the annotation then, so that a worker that it is dispatched to does not settle it again in another way.

    Args:
        new: the TrainJob.
        in_namespace: whether its namespace has a TrainingRuntime of that name; it goes before the cluster's.
    """
    kind = names.TRAINING_RUNTIME if in_namespace else names.CLUSTER_TRAINING_RUNTIME
    settled = trees.put(new, "spec", "runtimeRef", "kind", value=kind)
    settled = trees.drop(settled, "metadata", "annotations", names.ANNOTATION_RUNTIME_KIND)
    if not settled["metadata"]["annotations"]:
        settled = trees.drop(settled, "metadata", "annotations")
    return settled  # type: ignore[no-any-return] # a tree stays one


def _ref(job: Tree) -> Any:
    return trees.get(job, "spec", "runtimeRef")


def needs_runtime(new: Tree, old: Tree | None) -> bool:
    """Return whether the form to store depends on the runtime: only then is it worth fetching."""
    if isinstance(trees.get(new, "spec", "trainer", "numProcPerNode"), str):
        return True
    return (is_counted(new) or (old is not None and is_counted(old))) and _may_be_spelt_out(new, old)


def _may_be_spelt_out(new: Tree, old: Tree | None) -> bool:
    """Return whether a TrainJob leaves to its runtime what Kueue counts by, in other words than are stored."""
    if old is None:
        return says_resources(new) or not says_nodes(new)
    return _resources(new) != _resources(old) or (says_nodes(old) and not says_nodes(new))


def _resources(job: Tree) -> Any:
    return trees.get(job, "spec", "trainer", "resourcesPerNode")


def _with_kueues(tree: Tree, old: Tree | None, warnings: list[str]) -> Tree:
    """Return the TrainJob with what is Kueue's in it as Kueue left it."""
    tree = with_entry(tree, old, warnings)
    if is_held_back(tree, old):
        tree = trees.put(tree, "spec", "suspend", value=True)
        warnings.append(
            "spec.suspend: stays true: Kueue starts this TrainJob when its queue admits it; to start it without, take "
            f"the label {names.LABEL_QUEUE} away first"
        )
    return tree


def _keeping_form(spec: Tree, old: Tree, warnings: list[str]) -> Tree:
    """Return the spec with parts that cannot change in the form they are stored in, where they mean the same."""
    stored = old.get("spec")
    if not isinstance(stored, dict):
        return spec
    kept: Tree = {name: settled(spec[name], stored[name]) for name in _FIXED if name in spec and name in stored}
    if is_rewritten(kept.get("trainer"), stored.get("trainer")):
        kept["trainer"] = stored["trainer"]
        warnings.append(
            "spec.trainer.command: stays as it was; what its framework runs is put there when pods are made"
        )
    return {**spec, **kept}


def _with_patches(spec: Tree, stored: list[Any] | None, now: datetime, warnings: list[str]) -> Tree:
    patches = spec.get("runtimePatches")
    if not isinstance(patches, list) or not patches:
        return spec
    before = {entry["manager"]: entry for entry in stored or () if _is_entry(entry)}
    stamp = whole_seconds(now).isoformat().replace("+00:00", "Z")
    after = [
        _stamped(entry, before.get(entry["manager"]), stamp, warnings) if _is_entry(entry) else entry
        for entry in patches
    ]
    return {**spec, "runtimePatches": after}


def _stamped(entry: Tree, stored: Tree | None, stamp: str, warnings: list[str]) -> Tree:
    """Return the entry with the time of its last change.

    Kueue writes its entry at every step, often unchanged: a time that moved then would make it come back for ever.
    """
    if stored is None:
        return entry if entry.get("time") is not None else {**entry, "time": stamp}
    entry = _with_grace(entry, stored, warnings)
    if same(_timeless(entry), _timeless(stored)):
        return stored
    return {**entry, "time": stamp}


def _with_grace(entry: Tree, stored: Tree, warnings: list[str]) -> Tree:
    """Return the entry with a grace period that this update would take away.

    It cannot change. Kueue up to 0.19 does not know the field and leaves it out of what it writes back, which must
    neither stop the job from starting nor lose what the user asked for.
    """
    path = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
    jobs, present = trees.get(stored, *path), trees.get(entry, *path)
    if not isinstance(jobs, list) or not isinstance(present, list):
        return entry
    graces = {job["name"]: seconds for job in jobs if (seconds := trees.get(job, *_POD, _GRACE)) is not None}
    kept = list(present)
    for place, job in enumerate(present):
        name, pod = trees.get(job, "name"), trees.get(job, *_POD)
        seconds = graces.pop(name, None) if isinstance(name, str) else None
        if seconds is not None and isinstance(pod, dict) and pod.get(_GRACE) is None:
            kept[place] = trees.put(job, *_POD, _GRACE, value=seconds)
            warnings.append(f"spec.runtimePatches: {_GRACE} of job {name} cannot be taken away and stays {seconds}")
    if all(one is other for one, other in zip(kept, present, strict=True)):
        return entry
    return trees.put(entry, *path, value=kept)  # type: ignore[no-any-return] # a tree stays one


def _timeless(entry: Tree) -> Tree:
    return {key: value for key, value in entry.items() if key != "time"}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("manager"), str)
