"""Dispatched TrainJobs through the hub's aggregated API: no kubeconfig of a worker is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.client.backends.kubernetes.failures import is_unknown_resource, translate
from trainplane.client.errors import UnsupportedError
from trainplane.client.together import together
from trainplane.kube.codec import key_of
from trainplane.kube.errors import ApiError, KubeError, NotFoundError
from trainplane.kube.resource import Key
from trainplane.resources import HUB_TRAIN_JOBS

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client

MISSING: Final = (
    "it runs on a worker cluster, and this hub does not show workers' pods and logs: ask an admin to install the hub "
    "view (manifests/hub, docs/hub.md)"
)


class Hub:
    """The hub view of one namespace. A hub without one answers None to everything but `need`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.namespace = namespace

    async def view(self, name: str) -> Tree | None:
        """Return the view of a TrainJob."""
        return await self._ask(name)

    async def views(self, namespace: str | None) -> dict[Key, Tree]:
        """Return the views of all TrainJobs of a namespace, or of all."""
        try:
            found = await self._client.list_all(HUB_TRAIN_JOBS, namespace, limit=0)
        except ApiError:
            return {}
        keys = map(key_of, found)
        return {Key(namespace or key.namespace, key.name): view for key, view in zip(keys, found, strict=True)}

    async def pods(self, name: str) -> list[Tree] | None:
        """Return the pods of a TrainJob, also those that are gone, as last seen."""
        return _items(await self._ask(name, "pods"))

    async def look(self, name: str) -> tuple[Tree | None, list[Tree]]:
        """Return view and pods of a TrainJob, as far as they can be had."""
        view, pods = await together(self.view(name), self.pods(name))
        return view, pods or []

    async def events(self, name: str) -> list[Tree] | None:
        """Return the events of a TrainJob, of hub and worker."""
        return _items(await self._ask(name, "events"))

    async def queue(self, name: str) -> Tree | None:
        """Return why a TrainJob waits, and what would let it start."""
        return await self._ask(name, "queue")

    async def need(self, name: str) -> None:
        """See that there is a hub view that shows a TrainJob's pods; raises what stands in the way."""
        try:
            await self._client.get(HUB_TRAIN_JOBS, name, self.namespace, subresource="pods", type_=bytes)
        except KubeError as error:
            if is_unknown_resource(error):
                raise UnsupportedError(f"TrainJob {name}: {MISSING}") from error
            raise translate(error, f"logs of TrainJob {name} cannot be read") from error

    def log_path(self, name: str) -> str:
        """Return where the logs of a TrainJob are."""
        return HUB_TRAIN_JOBS.path(self.namespace, name, "log")

    async def _ask(self, name: str, part: str | None = None) -> Tree | None:
        """Return a part of the view; None where the hub has none, is not there now, or does not let us."""
        try:
            found: Tree = await self._client.get(HUB_TRAIN_JOBS, name, self.namespace, subresource=part)
        except NotFoundError:
            return None
        except ApiError:
            return None
        return found


def _items(tree: Tree | None) -> list[Any] | None:
    return None if tree is None else list(tree.get("items") or [])
