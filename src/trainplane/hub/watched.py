"""The objects that say who a hub's workers are, mirrored: while nothing changes, nobody asks for them.

`Workers` reads them whenever it is asked for a worker, and the hub server looks after every worker every few seconds:
with 200 workers, 80 requests a second for what changes once in a month. `Watched` stands where `Workers` reads, and
answers from mirrors. What is not mirrored it asks the API server for: everything before the first list, Kueue's kinds
where there is no Kueue, and Secrets where the server may only `get` them; those it remembers for a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.hub.kubeconfigs import KUBECONFIG_KEY
from trainplane.kube.access import Remembered
from trainplane.kube.codec import MALFORMED, decoder
from trainplane.kube.errors import NotFoundError
from trainplane.kube.projection import Projection
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import Key
from trainplane.kube.store import Store
from trainplane.resources import MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS, SECRETS

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.projection import ObjectHeader
    from trainplane.kube.resource import Resource

UNWATCHED_SECONDS: Final = 30.0
"""Seconds that a Secret counts which may be read and not be watched: so late are rotated credentials used."""
_UNWATCHED: Final = 4096


class Watched:
    """Reads for `Workers`. Run its `reflectors`; until then it asks for everything."""

    def __init__(self, client: Client, clock: Clock, *, namespace: str) -> None:
        self._client = client
        secrets = Store(SECRETS, Projection(transform=_kubeconfig))
        self._mirrors = {
            SECRETS: Reflector(client, SECRETS, secrets, clock=clock, namespace=namespace),
            **{
                resource: Reflector(client, resource, Store(resource), clock=clock)
                for resource in (MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS)
            },
        }
        self._unwatched = Remembered[dict[str, Any]](clock, UNWATCHED_SECONDS, _UNWATCHED)

    @property
    def reflectors(self) -> list[Reflector]:
        """What keeps the mirrors."""
        return list(self._mirrors.values())

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Tree:
        """Return an object; raises NotFoundError, and KubeError where the API server has to be asked."""
        store = self._store(resource)
        if store is not None:
            found = store.decode(Key(namespace or "", name), dict)
            if found is None:
                raise NotFoundError(f"there is no {resource.kind} {name}")
            return found
        known = self._unwatched.get((resource, namespace, name))
        if known is None:
            known = await self._client.get(resource, name, namespace)
            if resource == SECRETS:
                self._unwatched.put((resource, namespace, name), known)
        return known

    async def list_all(self, resource: Resource) -> list[Tree]:
        """Return all objects; raises KubeError where the API server has to be asked."""
        store = self._store(resource)
        if store is None:
            return await self._client.list_all(resource)
        return [found for key in store if (found := store.decode(key, dict)) is not None]

    def _store(self, resource: Resource) -> Store | None:
        mirror = self._mirrors.get(resource)
        return mirror.store if mirror is not None and mirror.synced.is_set() else None


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


def _kubeconfig(header: ObjectHeader) -> Tree:
    """Return what is stored of a Secret: a kubeconfig, and of all else that it is there. It may be anybody's."""
    try:
        data = decoder(_Secret).decode(header.raw).data or {}
    except MALFORMED:
        data = {}
    metadata = {"name": header.key.name, "namespace": header.key.namespace}
    return {"metadata": metadata, "data": {key: data[key] if key == KUBECONFIG_KEY else "" for key in data}}
