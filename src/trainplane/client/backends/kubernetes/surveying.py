"""A cluster or a hub at a glance: four to six lists at once, each under the caller's own rights.

A list that is refused, or that the cluster does not serve, is told in `Overview.unread`, and the rest is shown. Who may
not list TrainJobs of all namespaces gets those of one. Lists are cut at MOST objects, and that is told, too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.client.backends.kubernetes.failures import is_unknown_resource, translate
from trainplane.client.reading.overview import (
    count_jobs,
    has_devices,
    read_concerns,
    read_devices_of,
    read_phase,
    read_queue,
    read_worker,
)
from trainplane.client.types.overview import Overview
from trainplane.explain.standing import is_dispatched
from trainplane.kube.codec import decode
from trainplane.kube.errors import ForbiddenError, KubeError
from trainplane.resources import (
    CLUSTER_QUEUES,
    HUB_TRAIN_JOBS,
    MULTIKUEUE_CLUSTERS,
    NODES,
    PODS,
    TRAIN_JOBS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource

MOST: Final = 20_000
"""Objects of a list that are looked at."""
_ALIVE: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Survey:
    """One look at a cluster. `namespace` is where TrainJobs are counted if those of all cannot be."""

    def __init__(self, client: Client, namespace: str, *, whole: bool = True) -> None:
        self._client = client
        self._namespace = namespace
        self._whole = whole
        self._unread: dict[str, str] = {}

    async def look(self) -> Overview:
        """Return what there is to see.

        Raises:
            TrainplaneError: not even TrainJobs of the namespace can be read.
        """
        (namespace, jobs), queues, workers, nodes = await asyncio.gather(
            self._jobs(),
            self._list(CLUSTER_QUEUES, "queues", "Kueue is not installed here"),
            self._list(MULTIKUEUE_CLUSTERS, "workers"),
            self._list(NODES, "devices"),
        )
        remote = any(map(is_dispatched, jobs))
        views, pods = await asyncio.gather(
            self._list(HUB_TRAIN_JOBS, "jobs of workers", "the hub view is not installed here", namespace=namespace)
            if remote
            else _none(),
            self._list(PODS, "use of devices", fields=_ALIVE) if has_devices(nodes or ()) else _none(),
        )
        by_job = {_key(view): view for view in views or ()}
        told = [(job, read_phase(job, by_job.get(_key(job)))) for job in jobs]
        placed = count_jobs(views or ())
        return Overview(
            jobs=Counter(phase for _, phase in told),
            namespace=namespace,
            concerns=read_concerns(told),
            queues=tuple(sorted(map(read_queue, queues or ()), key=lambda queue: queue.name)),
            workers=tuple(
                read_worker(one, None if views is None else placed[str(trees.get(one, "metadata", "name"))])
                for one in sorted(workers or (), key=_key)
            ),
            devices=read_devices_of(nodes or (), pods or ()) if pods is not None else (),
            unread=dict(sorted(self._unread.items())),  # they were asked at once, and answered in any order
        )

    async def _jobs(self) -> tuple[str | None, Sequence[Tree]]:
        """Return TrainJobs, and the namespace that they are all of."""
        try:
            if self._whole:
                try:
                    return None, await self._pages(TRAIN_JOBS, "jobs", None)
                except ForbiddenError:
                    self._unread["jobs"] = f"you may not list TrainJobs of all namespaces: only {self._namespace}'s"
            return self._namespace, await self._pages(TRAIN_JOBS, "jobs", self._namespace)
        except KubeError as error:
            raise translate(error, "TrainJobs cannot be listed") from error

    async def _list(
        self,
        resource: Resource,
        what: str,
        absent: str = "",
        *,
        namespace: str | None = None,
        fields: str | None = None,
    ) -> list[Tree] | None:
        """Return a list; None where it cannot be read, which is told, but for what need not be there at all."""
        try:
            return await self._pages(resource, what, namespace, fields)
        except KubeError as error:
            if not is_unknown_resource(error):
                refused = isinstance(error, ForbiddenError)
                self._unread[what] = f"you may not list {resource.plural}" if refused else str(error)
            elif absent:
                self._unread[what] = absent
            return None

    async def _pages(
        self, resource: Resource, what: str, namespace: str | None, fields: str | None = None
    ) -> list[Tree]:
        found: list[Tree] = []
        async for page in self._client.list_pages(resource, namespace, fields=fields):
            found += [decode(item, dict) for item in page.items[: MOST - len(found)]]
            if len(found) >= MOST:
                self._unread[what] = f"there are more than {MOST}: only the first are counted"
                break
        return found


def _key(tree: Tree) -> tuple[str, str]:
    return str(trees.get(tree, "metadata", "namespace") or ""), str(trees.get(tree, "metadata", "name") or "")


async def _none() -> None:
    return None
