"""All that a cluster and its hub tell of one TrainJob, for whoever explains it.

What the caller may not read, or what is not installed, is named and left out: a tenant who sees pods and events gets
most of the answer.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.kubernetes.wanted import Wanted
from trainplane.client.errors import TrainplaneError
from trainplane.explain.facts import MOST_LOGS, Facts, Line
from trainplane.explain.logs import SEARCHED_LINES
from trainplane.explain.pods import end_of, former_end_of, name_of, phase_of
from trainplane.kube.errors import KubeError
from trainplane.resources import JOB_SETS, JOBS, NODES, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from trainplane.api.tree import Tree
    from trainplane.client.backends.kubernetes.logs import Reading

MOST_NODES = 16
"""Machines that are asked about."""
MOST_CANDIDATES = 100
"""Machines that are looked at where a pod waits for one: a megabyte or two."""


@dataclass
class Collector:
    """One look at a TrainJob."""

    reading: Reading
    unread: list[str] = field(default_factory=list)

    async def collect(
        self, job: Tree, pods: Sequence[Tree], *, events: Sequence[Tree], view: Tree | None, queue: Tree | None
    ) -> Facts:
        """Return the facts; all that is given was read already."""
        client, namespace, name = self.reading.client, self.reading.namespace, name_of(job)
        queued = trees.text(job, "metadata", "labels", names.LABEL_QUEUE)
        owner = {names.LABEL_JOB_UID: str(trees.get(job, "metadata", "uid"))}
        jobset, jobs, workloads, logs, nodes = await asyncio.gather(
            self._try("jobsets", client.get(JOB_SETS, name, namespace)),
            self._try("jobs", client.list_all(JOBS, namespace, labels={names.LABEL_JOBSET_NAME: name}, limit=0)),
            self._try("workloads", client.list_all(WORKLOADS, namespace, labels=owner, limit=0)) if queued else _none(),
            self.read_logs(job, pods),
            self._nodes(pods) if view is None else _none(),
        )
        return Facts(
            job,
            pods,
            events,
            jobset=jobset,
            jobs=jobs or (),
            workload=workloads[0] if workloads else None,
            nodes=nodes or [],
            view=view,
            queue=queue,
            logs=logs,
            unread=sorted(set(self.unread)),
        )

    async def read_logs(self, job: Tree, pods: Sequence[Tree]) -> dict[str, list[Line]]:
        """Return the end of each step's log: of those first that ended badly, and of no more than MOST_LOGS."""
        chosen = sorted(pods, key=lambda pod: end_of(pod) is None and former_end_of(pod) is None)[:MOST_LOGS]
        told: dict[str, list[Line]] = {}
        try:
            async for line in self.reading.now(job, chosen, Wanted(None, SEARCHED_LINES)):
                told.setdefault(line.step, []).append(Line(line.text, line.time))
        except (TrainplaneError, KubeError) as error:
            self.unread.append(f"logs: {error}")
        return told

    async def _nodes(self, pods: Sequence[Tree]) -> list[Tree]:
        """Return the nodes that pods are on; if one waits for a node, the first of all instead."""
        client = self.reading.client
        if any(phase_of(pod) == "Pending" and not trees.text(pod, "spec", "nodeName") for pod in pods):
            return await self._try("nodes", self._candidates()) or []
        machines = sorted({node for pod in pods if (node := trees.text(pod, "spec", "nodeName"))})[:MOST_NODES]
        found = await asyncio.gather(*(self._try("nodes", client.get(NODES, node)) for node in machines))
        return [node for node in found if node]

    async def _candidates(self) -> list[Tree]:
        async with aclosing(self.reading.client.list_pages(NODES, limit=MOST_CANDIDATES)) as pages:
            async for page in pages:
                return [msgspec.json.decode(item) for item in page.items]
        return []

    async def _try(self, what: str, answer: Awaitable[Any]) -> Any:
        try:
            return await answer
        except KubeError as error:
            self.unread.append(f"{what}: {error}")
            return None


async def _none() -> None:
    return None
