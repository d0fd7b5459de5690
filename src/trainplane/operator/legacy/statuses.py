"""The write of a job's status: what changed, as one merge patch. Pure; `legacy` says what is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def merge_patch(job: Tree, after: Tree) -> Tree | None:
    """Return the patch that makes a job's status what it should be; None if it is.

    It holds only for the version that was read, so what somebody else has just written is not lost.
    """
    changes = _changes(job.get("status") or {}, after)
    if not changes:
        return None
    return {"metadata": {"resourceVersion": job["metadata"]["resourceVersion"]}, "status": changes}


def _changes(before: Tree, after: Tree) -> Tree:
    """Return what turns one object into another as RFC 7386 has it: a field that goes is null."""
    changes: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        was = before.get(name)
        if isinstance(value, dict) and isinstance(was, dict):
            below = _changes(was, value)
            if below:
                changes[name] = below
        elif name not in before or was != value:
            changes[name] = value
    return changes
