"""Strategic merge: how a runtimePatches entry changes the runtime's template, as Kubernetes merges patches.

Objects merge field by field. A list is replaced, unless Kubernetes' types give it a merge key: then its entries are
told apart by that field and merged one by one. The keys below are the `patchMergeKey` tags of the types of core/v1 and
JobSet v1alpha2; a list that is missing from the table has none. The order of a merged list is Kubernetes' too: entries
keep their places, entries that the patch adds come before those that follow the ones it names.

What reaches a controller as a patch has passed through Go types, which leave out empty lists, so an empty list changes
nothing. A null removes its field.

Kubernetes' rules make four kinds of invalid pod here, and we follow what the patch means instead:

- a variable replaces the one of its name as a whole, so it never has a `value` and a `valueFrom`;
- a volume keeps only the source that the patch names (`retainKeys`, which Kubernetes leaves to the client to ask for);
- of metadata only labels and annotations are taken, which is all that a patch is for;
- directives (`$patch`, `$retainKeys`) are no part of the API and are refused, not written into the pod.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from trainplane.api import tree as trees
from trainplane.render.provenance import Origin, Provenance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.api.tree import Tree

Place: TypeAlias = "tuple[Place, str] | None"
"""Where something stands: what it stands in, and the last step from there. Written out only for an error: a text for
each of many fields, all below one long name, would cost their product."""

Mode: TypeAlias = Literal["merge", "retain", "replace", "union"]
"""What becomes of an entry that is there already: its fields merge; only the patch's fields stay; the patch's entry
takes its place; or (for lists without a key) entries that are not there yet are added."""


class MergeError(ValueError):
    """A patch cannot be merged; `path` is the field within the patch."""

    def __init__(self, path: str, problem: str) -> None:
        """Name the field within the patch and say what is wrong with it."""
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Shape:
    """How the fields of an object merge, where it is not field by field and list for list."""

    objects: Mapping[str, Shape] = field(default_factory=dict)
    lists: Mapping[str, Keyed] = field(default_factory=dict)
    only: frozenset[str] = frozenset()
    """The fields that a patch may set; none means any."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose entries are told apart by one of their fields."""

    key: str
    entry: Shape = Shape()
    mode: Mode = "merge"


PLAIN: Final = Shape()
METADATA: Final = Shape(only=frozenset({"labels", "annotations"}))

CONTAINER: Final = Shape(
    lists={
        "env": Keyed("name", mode="replace"),
        "ports": Keyed("containerPort"),
        "volumeMounts": Keyed("mountPath"),
        "volumeDevices": Keyed("devicePath"),
    }
)

_POD_LISTS: Final = {
    "containers": Keyed("name", CONTAINER),
    "initContainers": Keyed("name", CONTAINER),
    "ephemeralContainers": Keyed("name", CONTAINER),
    "volumes": Keyed("name", mode="retain"),
    "resourceClaims": Keyed("name", mode="retain"),
    "imagePullSecrets": Keyed("name"),
    "schedulingGates": Keyed("name"),
    "hostAliases": Keyed("ip"),
    "topologySpreadConstraints": Keyed("topologyKey"),
}


def _jobset_spec(pod_spec: Shape) -> Shape:
    pod = Shape(objects={"metadata": METADATA, "spec": pod_spec})
    job = Shape(objects={"metadata": METADATA, "spec": Shape(objects={"template": pod})})
    replicated_job = Shape(objects={"template": job}, lists={"dependsOn": Keyed("name")})
    return Shape(lists={"replicatedJobs": Keyed("name", replicated_job)})


JOBSET_SPEC: Final = _jobset_spec(Shape(lists=_POD_LISTS))
"""A JobSet's spec."""

JOBSET_SPEC_ADDING_TOLERATIONS: Final = _jobset_spec(
    Shape(lists={**_POD_LISTS, "tolerations": Keyed("", mode="union")})
)
"""The same for a manager that only ever adds tolerations: it does not mean to take away what others tolerate."""


def merged(tree: Tree, patch: Tree, shape: Shape = JOBSET_SPEC) -> Tree:
    """Return a tree with a patch merged in. Neither is changed.

    Raises:
        MergeError: the patch has an entry without its merge key, or a directive.
    """
    result: Tree = trees.copy(tree)
    Merge(Provenance(), Origin("patch")).into(result, patch, shape)
    return result


@dataclass(frozen=True, slots=True)
class Merge:
    """Merges patches of one origin into a tree that is ours to change, and records that they wrote it."""

    provenance: Provenance
    origin: Origin

    def into(self, tree: Tree, patch: Tree, shape: Shape, at: str = "") -> None:
        """Merge a patch, which is not changed; `at` is where it stands in its TrainJob.

        Raises:
            MergeError: as `merged`; the tree may be changed in part.
        """
        self._object(tree, patch, shape, (None, at) if at else None)

    def _object(self, tree: Tree, patch: Tree, shape: Shape, at: Place) -> None:
        for key, value in patch.items():
            if shape.only and key not in shape.only:
                continue
            if key.startswith("$"):
                raise MergeError(_path((at, key)), "a directive of kubectl's patches has no meaning here: leave it out")
            if value is None:
                tree.pop(key, None)
            elif isinstance(value, dict):
                if not isinstance(tree.get(key), dict):
                    self._write(tree, key, {})
                self._object(tree[key], value, shape.objects.get(key, PLAIN), (at, key))
            elif isinstance(value, list):
                self._list(tree, key, value, shape.lists.get(key), (at, key))
            else:
                self._write(tree, key, value)

    def _write(self, tree: Tree, key: str, value: Any) -> None:
        tree[key] = value
        self.provenance.field(tree, key, self.origin)

    def _list(self, tree: Tree, key: str, patch: list[Any], keyed: Keyed | None, at: Place) -> None:
        present = tree.get(key)
        if not patch:
            return
        if keyed is None:
            self._write(tree, key, trees.without_nulls(patch))
        elif keyed.mode == "union":
            present = present if isinstance(present, list) else []
            known = set(map(trees.hashable, present))
            tree[key] = [*present, *(self._new(entry) for entry in patch if trees.hashable(entry) not in known)]
        else:
            tree[key] = self._entries(present if isinstance(present, list) else [], patch, keyed, at)

    def _entries(self, present: list[Tree], patch: list[Tree], keyed: Keyed, at: Place) -> list[Tree]:
        key = keyed.key
        places = {entry.get(key): place for place, entry in enumerate(present)}
        named = dict(zip(_keys_of(patch, key, at), patch, strict=True))
        for name, change in named.items():
            place = places.get(name)
            if place is None or keyed.mode == "replace":
                named[name] = self._new(change)
                continue
            entry = named[name] = present[place]
            if keyed.mode == "retain":
                for gone in entry.keys() - change.keys():
                    del entry[gone]
            rest = {key_: value for key_, value in change.items() if key_ != key}
            self._object(entry, rest, keyed.entry, (at, f"[{key}={name}]"))
        return _in_order(present, named, places, key)

    def _new(self, entry: Any) -> Any:
        copied = trees.without_nulls(entry)
        self.provenance.entry(copied, self.origin)
        return copied


def _in_order(present: list[Tree], named: dict[Any, Tree], places: Mapping[Any, int], key: str) -> list[Tree]:
    """Weave the patch's entries, in its order, into those that it does not name, in theirs."""
    result: list[Tree] = []
    rest = [entry for entry in present if entry.get(key) not in named]
    taken = 0
    for name, entry in named.items():
        place = places.get(name)
        while place is not None and taken < len(rest) and places[rest[taken].get(key)] < place:
            result.append(rest[taken])
            taken += 1
        result.append(entry)
    return result + rest[taken:]


def _keys_of(entries: list[Any], key: str, at: Place) -> list[Any]:
    """Return what tells the entries of a patch's list apart."""
    seen = set()
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get(key) is None:
            problem = f"needs {key}, by which it finds its counterpart in the runtime"
            raise MergeError(_path((at, f"[{place}]")), problem)
        name = trees.hashable(entry[key])
        if name in seen:
            problem = f"{key} {entry[key]} is there twice: leave one of them out"
            raise MergeError(_path((at, f"[{place}]")), problem)
        seen.add(name)
    return [entry[key] for entry in entries]


def _path(at: Place) -> str:
    """Return a place as people write it: `spec.volumes[name=data].secret`."""
    return "".join(
        step if step.startswith("[") or not before else f".{step}" for before, step in reversed(list(_steps(at)))
    )


def _steps(at: Place) -> Iterator[tuple[Place, str]]:
    while at is not None:
        yield at
        at = at[0]
