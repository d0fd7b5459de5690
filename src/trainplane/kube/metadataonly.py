"""Lists and watches that bring of each object its metadata alone.

The API server cuts objects down before it sends them (`PartialObjectMetadata`): no data of a ConfigMap or a Secret
comes over the wire, and none is in memory here. It asks for the same rights as a watch of whole objects: RBAC knows no
lesser ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.client import Client
    from trainplane.kube.codec import Page, WatchEvent
    from trainplane.kube.resource import Resource

OBJECT: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class MetadataOnly:
    """A `reflector.Cluster` over a client's connections."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list_pages(self, resource: Resource, namespace: str | None = None, **options: Any) -> AsyncIterator[Page]:
        """Return the pages of a list."""
        return self._client.list_pages(resource, namespace, accept=LIST, **options)

    def watch(self, resource: Resource, namespace: str | None = None, **options: Any) -> AsyncIterator[WatchEvent]:
        """Return the events of a watch."""
        return self._client.watch(resource, namespace, accept=OBJECT, **options)
