"""What is Kueue's in a TrainJob: its entry in `runtimePatches`, and when a queued TrainJob begins.

Kueue gives a new TrainJob an empty entry. When it has admitted the job, it writes there where the pods run (node
selectors, tolerations, gates, and the marks by which it knows them) and then, in a second write, lets the job run. A
job whose entry is lost never starts, and one that begins with an empty entry runs on nodes that nobody charged for.

| written                                                          | becomes                                    |
|------------------------------------------------------------------|--------------------------------------------|
| a list without the entry, over one that has it (`kubectl apply`, | the stored entry comes back                |
| `kubectl replace`, Argo CD: they know only what is in the file)  |                                            |
| an entry that says something, where none is stored: a document   | Kueue's own, which it makes anew; so long  |
| that was taken from a cluster, or somebody who names himself so  | as it is not there, none                   |
| `suspend: false` in a queue, while the entry is empty: the       | suspended, as it was                       |
| default of a file that does not say it                           |                                            |

Who asks makes no difference to these. What does (an entry that is stored may be changed by Kueue alone) is judged by
the API server, which knows who may do what: `manifests/operator/kueue-policy.yaml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.semantic_equality import meaning
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_AT: Final = f"spec.runtimePatches[manager={names.PATCH_MANAGER_KUEUE}]"


def with_entry(new: Tree, old: Tree | None, warnings: list[str]) -> Tree:
    """Return the TrainJob with Kueue's entry as it may be: the one that is stored or, where none is, an empty one."""
    entries, stored = _entries(new), _entries(old)
    if entries is None:
        return new
    place = next((place for place, entry in enumerate(stored or ()) if is_kueues(entry)), None)
    if stored and place is not None:
        return new if any(map(is_kueues, entries)) else _put(new, _inserted(entries, stored[place], stored[:place]))
    kueues = [entry for entry in entries if is_kueues(entry)]
    silent = next((entry for entry in kueues if not says_something(entry)), None)
    if any(map(says_something, kueues)):
        warnings.append(f"{_AT}: is left out: Kueue writes this entry itself when it admits the TrainJob")
    left = [entry for entry in entries if entry is silent or not is_kueues(entry)]
    return new if len(left) == len(entries) else _put(new, left)


def is_held_back(new: Tree, old: Tree | None) -> bool:
    """Return whether an update would let a TrainJob run that waits in a queue and that Kueue has not admitted."""
    if trees.get(old, "spec", "suspend") is not True or trees.get(new, "spec", "suspend") is not False:
        return False
    kueues = [entry for entry in _entries(new) or () if is_kueues(entry)]
    return is_queued(new) and bool(kueues) and not any(map(says_something, kueues))


def judge_entry(new: Tree, old: Tree | None) -> Iterator[Finding]:
    """Yield a finding for an entry of Kueue's that cannot be Kueue's: it came with the TrainJob, or has no place."""
    was_there = any(map(is_kueues, _entries(old) or ()))
    for entry in filter(is_kueues, _entries(new) or ()):
        if not was_there and says_something(entry):
            problem = "is Kueue's to write, when it has admitted the TrainJob: leave the entry out"
            yield Finding(_AT, problem, "Forbidden")
        elif was_there and not isinstance(trees.get(entry, "trainingRuntimeSpec", "template", "spec"), dict):
            problem = "must have trainingRuntimeSpec.template.spec, into which Kueue writes: leave the entry as it is"
            yield Finding(_AT, problem)


def is_queued(job: Tree) -> bool:
    """Return whether a TrainJob names a queue."""
    return bool(trees.get(job, "metadata", "labels", names.LABEL_QUEUE))


def is_kueues(entry: Any) -> bool:
    """Return whether an entry of `runtimePatches` is Kueue's."""
    return isinstance(entry, dict) and entry.get("manager") == names.PATCH_MANAGER_KUEUE


def says_something(entry: Tree) -> bool:
    """Return whether an entry changes anything."""
    template = trees.get(entry, "trainingRuntimeSpec", "template")
    return bool(meaning(trees.get(template, "metadata")) or trees.get(template, "spec", "replicatedJobs"))


def _entries(job: Tree | None) -> list[Any] | None:
    """Return the list, empty if there is none; None if what stands there is no list."""
    patches = trees.get(job, "spec", "runtimePatches")
    if patches is None:
        return []
    return patches if isinstance(patches, list) else None


def _put(job: Tree, entries: list[Any]) -> Tree:
    changed: Tree = trees.put(job, "spec", "runtimePatches", value=entries)
    return changed


def _inserted(entries: list[Any], entry: Tree, earlier: list[Any]) -> list[Any]:
    """Return the entries with one more, behind those of managers that it stood behind."""
    managers = set(map(_manager, earlier))
    place = max((index for index, one in enumerate(entries, 1) if _manager(one) in managers), default=0)
    return [*entries[:place], entry, *entries[place:]]


def _manager(entry: Any) -> str:
    return str(entry.get("manager")) if isinstance(entry, dict) else ""
