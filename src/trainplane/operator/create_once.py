"""Creates objects that are made once and never changed, because they hold something random: SSH keys, a certificate.

Whoever made such a Secret knows what is in it, and a Secret of another TrainJob goes when that one goes. So only one
that this TrainJob controls is used. That it does is the word of whoever wrote the Secret; who may write Secrets in a
namespace can as well read those that we make, and is trusted with them (docs/architecture/operator.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trainplane.kube.errors import AlreadyExistsError, NotFoundError
from trainplane.operator.errors import EarlierSelfError, ForeignObjectError
from trainplane.operator.ownership import check_owner, owned_by
from trainplane.operator.stores import Meta  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.resources import resource_of

if TYPE_CHECKING:
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.operator.writer import Writer
    from trainplane.render.plan import CreateOnce


class Found(msgspec.Struct, frozen=True):
    """What we read of an object that is kept: whose it is and which keys it has, never what is in them."""

    metadata: Meta
    data: dict[str, msgspec.Raw] | None = None


class OnceCreator:
    """Makes what is not there, and judges what is."""

    def __init__(self, client: Client, writer: Writer) -> None:
        self._client = client
        self._writer = writer

    async def keep(self, job: ObjectMeta, kept: CreateOnce, *, is_new: bool) -> None:
        """See to it that a TrainJob has an object of its own; `is_new` is a guess that it has none yet.

        Raises:
            EarlierSelfError: one of an earlier TrainJob of this name is not gone yet.
            ForeignObjectError: the name is taken by somebody else's, or it lacks what pods read.
        """
        if is_new and await self._create(job, kept):
            return
        try:
            found = await self._client.get(resource_of(_identity(kept)), kept.name, job.namespace, type_=Found)
        except NotFoundError:
            if is_new or not await self._create(job, kept):
                raise EarlierSelfError(f"{kept.kind} {kept.name} came and went just now") from None
            return
        check_owner(kept.kind, found.metadata, job)
        if found.metadata.deletion_timestamp is not None:
            raise EarlierSelfError(f"{kept.kind} {kept.name} is about to be removed")
        missing = [key for key in kept.keys if key not in (found.data or {})]
        if missing:
            raise ForeignObjectError(
                f"{kept.kind} {kept.name} lacks {', '.join(missing)}, which this TrainJob's pods read: delete it, and "
                "it is made anew"
            )

    async def _create(self, job: ObjectMeta, kept: CreateOnce) -> bool:
        """Draw and create the object; False if there is one."""
        identity, content = _identity(kept), kept.make()
        meta = {
            **content.get("metadata", {}),
            "name": kept.name,
            "namespace": job.namespace,
            "ownerReferences": [owned_by(job)],
        }
        try:
            await self._writer.create(resource_of(identity), {**content, **identity, "metadata": meta})
        except AlreadyExistsError:
            return False
        return True


def _identity(kept: CreateOnce) -> Tree:
    return {"apiVersion": kept.api_version, "kind": kept.kind}
