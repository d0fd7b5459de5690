"""What differs between two documents, field by field: a pure function of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.client.types.renderings import ABSENT, FieldChange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Step


def changes(before: Any, after: Any) -> Iterator[FieldChange]:
    """Yield what differs, in the order of the first document, then what only the second has."""
    yield from _changes(before, after, ())


def _changes(before: Any, after: Any, path: tuple[Step, ...]) -> Iterator[FieldChange]:
    old, new = _parts(before), _parts(after)
    if old is None or new is None or type(before) is not type(after):
        if before != after:
            yield FieldChange(path, before, after)
        return
    for step in [*old, *(step for step in new if step not in old)]:
        yield from _changes(old.get(step, ABSENT), new.get(step, ABSENT), (*path, step))


def _parts(tree: Any) -> dict[Step, Any] | None:
    """Return what stands below, by step; None for a value that has nothing below it."""
    if isinstance(tree, dict):
        return dict(tree) if tree else None
    if isinstance(tree, list) and tree:
        names = [entry.get("name") if isinstance(entry, dict) else None for entry in tree]
        if all(isinstance(name, str) for name in names) and len({*names}) == len(names):
            return {("name", str(name)): entry for name, entry in zip(names, tree, strict=True)}
        if any(isinstance(entry, dict) for entry in tree):
            return dict(enumerate(tree))
    return None
