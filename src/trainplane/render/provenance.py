"""Where each field of a rendered object came from: the runtime, the TrainJob, a patch manager, or a plugin.

A rendered tree begins as a private copy of the runtime's template, so **what nobody wrote came from the runtime**. Who
writes records an origin: of a field (`provenance.field(container, "image", origin)`) or of an entry of a list
(`provenance.entry(variable, origin)`). An origin covers everything below it until a deeper one says otherwise, so a
lookup walks from the root and takes the last that it met. Origins are kept by the identity of the object written into,
which costs a few dictionary writes while rendering, and no path is built until someone asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.tree import Step, Tree

OriginKind: TypeAlias = Literal["runtime", "trainjob", "patch", "plugin"]

Path: TypeAlias = "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a field came from."""

    source: OriginKind
    name: str = ""
    """The patch's manager or the plugin's name; empty for the runtime and the TrainJob, of which there is one."""
    path: str = ""
    """The field there that said so, where it is not the same field: `spec.trainer.image`."""

    def __str__(self) -> str:
        """Return the origin as people read it: `patch kueue.x-k8s.io/manager`, `trainjob spec.trainer.image`."""
        return " ".join(part for part in (self.source, self.name, self.path) if part)


RUNTIME: Final = Origin("runtime")


def trainjob(path: str) -> Origin:
    """Return the origin of what a field of the TrainJob says."""
    return Origin("trainjob", path=path)


class Provenance:
    """Who wrote which part of one tree."""

    __slots__ = ("_entries", "_fields", "_ground")

    def __init__(self, ground: Origin = RUNTIME) -> None:
        """Begin with a tree that came from `ground` as a whole."""
        self._ground = ground
        # By identity. The object is kept with its provenance: an identity means nothing once its object is gone.
        self._entries: dict[int, tuple[Any, Origin]] = {}
        self._fields: dict[int, tuple[Any, dict[str, Origin]]] = {}

    def field(self, holder: Tree, key: str, origin: Origin) -> None:
        """Record who wrote a field of an object."""
        self._of(holder)[key] = origin

    def fields(self, holder: Tree, keys: Iterable[str], origin: Origin) -> None:
        """Record who wrote some fields of an object."""
        self._of(holder).update(dict.fromkeys(keys, origin))

    def entry(self, entry: Any, origin: Origin) -> None:
        """Record who wrote an object that stands in a list; what was known of it is forgotten."""
        self._entries[id(entry)] = (entry, origin)
        self._fields.pop(id(entry), None)

    def inherit(self, holder: Tree, former: Tree) -> None:
        """Record for an object what is known of another, whose fields it took over."""
        entry, fields = self._entries.get(id(former)), self._fields.get(id(former))
        if entry is not None:
            self._entries[id(holder)] = (holder, entry[1])
        if fields is not None:
            self._fields[id(holder)] = (holder, dict(fields[1]))

    def origin_of(self, tree: Any, path: Path) -> Origin:
        """Return who wrote what stands at a path.

        Raises:
            LookupError: nothing stands there.
        """
        origin = self._ground
        for depth, step in enumerate(path):
            below = trees.get(tree, step)
            if below is None:
                raise LookupError(f"nothing stands at step {depth} of {path!r}")
            origin = self._step(tree, step, below, origin)
            tree = below
        return origin

    def leaves(self, tree: Any) -> Iterator[tuple[Path, Any, Origin]]:
        """Yield every value that has nothing below it, with its path and origin."""
        yield from self._leaves(tree, (), self._ground)

    def _leaves(self, tree: Any, path: Path, origin: Origin) -> Iterator[tuple[Path, Any, Origin]]:
        steps: Iterable[tuple[str | int, Any]] = ()
        if isinstance(tree, dict):
            steps = tree.items()
        elif isinstance(tree, list):
            steps = enumerate(tree)
        below = False
        for step, value in steps:
            below = True
            yield from self._leaves(value, (*path, step), self._step(tree, step, value, origin))
        if not below:
            yield path, tree, origin

    def _step(self, holder: Any, step: Step, value: Any, origin: Origin) -> Origin:
        """Return who wrote `value`, which stands at a step of `holder`, given who wrote `holder`."""
        fields = self._fields.get(id(holder))
        if fields is not None and isinstance(step, str):
            origin = fields[1].get(step, origin)
        if isinstance(value, dict):
            entry = self._entries.get(id(value))
            if entry is not None:
                origin = entry[1]
        return origin

    def _of(self, holder: Any) -> dict[str, Origin]:
        known = self._fields.get(id(holder))
        if known is None:
            known = self._fields[id(holder)] = (holder, {})
        return known[1]


@dataclass(frozen=True, slots=True, eq=False)
class Rendered:
    """One object to apply: a complete body for server-side apply, and where each of its fields came from."""

    tree: Tree
    provenance: Provenance

    def origin_of(self, *path: Step) -> Origin:
        """Return where a field came from; steps as in `api.tree`: `"spec", "replicatedJobs", ("name", "node")`.

        Raises:
            LookupError: the object has nothing there.
        """
        return self.provenance.origin_of(self.tree, path)

    def leaves(self) -> Iterator[tuple[Path, Any, Origin]]:
        """Yield every value that has nothing below it, with its path and origin."""
        return self.provenance.leaves(self.tree)
