"""What is counted of jobs of the older kinds, under the names and labels of training-operator: dashboards stay.

    training_operator_jobs_{created,deleted,successful,failed,restarted}_total{job_namespace, framework}

A job is counted when the write of its status says so for the first time, so one that is taken over is not counted anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree

_COUNTED: Final = {
    names.CREATED: "created",
    names.SUCCEEDED: "successful",
    names.FAILED: "failed",
    names.RESTARTING: "restarted",
}
"""What each condition means for the counts when it comes true."""
_EVENTS: Final = ("created", "deleted", "successful", "failed", "restarted")


class JobMetrics:
    """Counts what becomes of jobs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter  # noqa: PLC0415 slow to import

        self._counters = {
            event: Counter(
                f"training_operator_jobs_{event}_total",
                f"Jobs of the older kinds that were {event}.",
                ("job_namespace", "framework"),
                registry=registry,
            )
            for event in _EVENTS
        }

    def deleted(self, kind: Kind, namespace: str) -> None:
        """Count a job that is gone."""
        self._counters["deleted"].labels(namespace, kind.container).inc()

    def changed(self, kind: Kind, job: Tree, after: Tree) -> None:
        """Count what a change of a job's status says for the first time."""
        namespace = trees.text(job, "metadata", "namespace") or ""
        was = _true(trees.entries(job, "status", "conditions"))
        for condition in _true(trees.entries(after, "conditions")) - was:
            event = _COUNTED.get(condition[0])
            if event:
                self._counters[event].labels(namespace, kind.container).inc()


def _true(conditions: list[Tree]) -> set[tuple[str, str]]:
    """Return the conditions that hold; a restart counts each time, as its condition is renewed with each."""
    return {
        (str(one.get("type")), str(one.get("lastUpdateTime")) if one.get("type") == names.RESTARTING else "")
        for one in conditions
        if one.get("status") == "True"
    }
