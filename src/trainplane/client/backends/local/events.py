"""What people are told about a local job, in the words in which the operator and the kubelet tell it.

The operator's reasons and sentences stand in `trainplane.operator.events`, which the SDK does not import; a test holds
these against those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api import names

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.api.tree import Tree

from trainplane.client.backends.local.moments import stamp

IGNORED: Final = "Ignored"
"""The reason of events about what a machine without a cluster has no use for."""
COMPONENT: Final = "trainplane-local"


class EventContent(NamedTuple):
    """The type, reason and message of an Event."""

    type: str
    reason: str
    message: str


def created(name: str, pods: int, *, suspended: bool) -> EventContent:
    """Tell that the pods are planned."""
    held = ", held back by spec.suspend" if suspended else ""
    return EventContent("Normal", "JobSetCreated", f"created JobSet {name} for {pods} pod{'s' * (pods != 1)}{held}")


SUSPENDED: Final = EventContent("Normal", "Suspended", "suspended: pods are stopped or not started")
RESUMED: Final = EventContent("Normal", "Resumed", "resumed: pods may start")
STARTED: Final = EventContent("Normal", "Started", "pods are ready: training runs")


def over(condition: Tree) -> EventContent:
    """Tell that a job is over, and why."""
    complete = condition["type"] == names.COMPLETE
    return EventContent(
        "Normal" if complete else "Warning",
        "Completed" if complete else "Failed",
        f"{condition['reason']}: {condition['message']}",
    )


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
