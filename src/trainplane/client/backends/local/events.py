"""What people are told about a local job beyond `lifecycle.events`, and the documents in which they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.client.backends.local.moments import stamp
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.api.tree import Tree

IGNORED: Final = "Ignored"
"""The reason of events about what a machine without a cluster has no use for."""
COMPONENT: Final = "trainplane-local"


def restarted(count: int) -> EventContent:
    """Tell that all pods begin anew."""
    return EventContent("Warning", "Restarting", f"a Job failed: all pods begin anew, for the {_ordinal(count)} time")


def ignored(what: str, why: str) -> EventContent:
    """Tell that something has no effect here."""
    return EventContent("Normal", IGNORED, f"{what} has no effect here: {why}")


def event(content: EventContent, about: Tree, number: int, moment: datetime) -> Tree:
    """Return the core/v1 Event about an object."""
    metadata, time = about["metadata"], stamp(moment)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{number}", "creationTimestamp": time},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
        },
        "type": content.type,
        "reason": content.reason,
        "message": content.message,
        "source": {"component": COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }


def _ordinal(count: int) -> str:
    ending = "th" if count % 100 in range(11, 14) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"
