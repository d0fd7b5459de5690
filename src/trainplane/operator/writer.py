"""The operator's writes, each made only while this process leads.

A leader that was paused may wake when another has taken over. Leadership is therefore asked for right before a write
goes out, each time it does: also when it waited for its turn, and when the server said to come back later. Answers are
read only as far as anybody looks at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.kube.client import MERGE_PATCH
from trainplane.kube.lease import LeadershipLostError
from trainplane.operator.stores import Written

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Key, Resource


def always() -> bool:
    """Lead: there is no other replica."""
    return True


class Writer:
    """Writes as field manager `trainer`, or raises LeadershipLostError."""

    def __init__(self, client: Client, leads: Callable[[], bool] = always) -> None:
        self._client = client.permitted(self._check)
        self._leads = leads

    async def create(self, resource: Resource, obj: Tree) -> Written:
        """Create an object; raises AlreadyExistsError."""
        return await self._client.create(resource, obj, field_manager=names.FIELD_MANAGER, type_=Written)

    async def apply(self, resource: Resource, obj: Tree) -> Written:
        """Make an object hold these fields, whoever held them before."""
        return await self._client.apply(resource, obj, field_manager=names.FIELD_MANAGER, force=True, type_=Written)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Tree,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
    ) -> Written:
        """Change an object, or its status."""
        return await self._client.patch(
            resource,
            key.name,
            patch,
            key.namespace or None,
            content_type=content_type,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
            type_=Written,
        )

    async def delete(self, resource: Resource, key: Key, uid: str) -> None:
        """Delete just this object and what it owns; raises NotFoundError."""
        await self._client.delete(resource, key.name, key.namespace or None, preconditions_uid=uid, type_=bytes)

    def _check(self) -> None:
        if not self._leads():
            raise LeadershipLostError("this process no longer leads: nothing is written")
