"""Objects that are drawn once and never changed: SSH keys, certificates, the keys of caches.

Keys are random, so they are made once and never changed. Whoever made such a Secret knows what is in it, and a Secret
of another TrainJob goes when that one goes; so only one that this TrainJob controls is used. That it does is the word
of whoever wrote the Secret; who may write Secrets in a namespace can as well read those that we make, and is trusted
with them (docs/architecture/operator.md).

Secrets are not watched (`owned`). Pods that run have theirs mounted and do not miss one that is deleted; a pod that is
about to start does, and waits for it for ever. So when a pod has its node and has not started, and it is a while since
the Secret was seen, it is looked at once more (`KeysBelieved`). In a life without trouble pods come soon after their
keys, and nothing is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.kube.errors import AlreadyExistsError, NotFoundError
from trainplane.operator.adoption import TRAIN_JOB, check_owner, owned_by
from trainplane.operator.errors import EarlierSelfError, ForeignObjectError
from trainplane.operator.stores import Meta  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.resources import resource_of

if TYPE_CHECKING:
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key
    from trainplane.operator.adoption import OwnerKind
    from trainplane.operator.apply import Writer
    from trainplane.render.plan import CreateOnce

BELIEVED_SECONDS: Final = 60.0
"""How long keys that were seen are believed to be there while pods start; twice as long after each look that found
them: a large image may take minutes to come."""
LONGEST_SECONDS: Final = 600.0
"""The longest such time."""


class KeysBelieved:
    """When the keys of each TrainJob that has some were last seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[Key, tuple[str, float, float]] = {}

    def note(self, key: Key, uid: str, *, again: bool = False) -> None:
        """Remember that keys are there; `again`, that pods waited and they had been there all along."""
        known, _, span = self._seen.get(key, ("", 0.0, 0.0))
        longer = min(2 * span, LONGEST_SECONDS) if again and known == uid else BELIEVED_SECONDS
        self._seen[key] = uid, self._clock.monotonic() + longer, longer

    def left(self, key: Key, uid: str) -> float:
        """Return for how many seconds more keys are believed to be there; 0 if they are not."""
        known, until, _ = self._seen.get(key, ("", 0.0, 0.0))
        return max(0.0, until - self._clock.monotonic()) if known == uid else 0.0

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._seen.pop(key, None)


class Found(msgspec.Struct, frozen=True):
    """What we read of an object that is kept: whose it is and which keys it has, never what is in them."""

    metadata: Meta
    data: dict[str, msgspec.Raw] | None = None


class OnceCreator:
    """Makes what is not there, and judges what is."""

    def __init__(self, client: Client, writer: Writer, of: OwnerKind = TRAIN_JOB) -> None:
        self._client = client
        self._writer = writer
        self._of = of

    async def keep(self, job: ObjectMeta, kept: CreateOnce, *, is_new: bool) -> None:
        """See to it that a job has an object of its own; `is_new` is a guess that it has none yet.

        Raises:
            EarlierSelfError: one of an earlier job of this name is not gone yet.
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
        check_owner(kept.kind, found.metadata, job, self._of)
        if found.metadata.deletion_timestamp is not None:
            raise EarlierSelfError(f"{kept.kind} {kept.name} is about to be removed")
        missing = [key for key in kept.keys if key not in (found.data or {})]
        if missing:
            raise ForeignObjectError(
                f"{kept.kind} {kept.name} lacks {', '.join(missing)}, which this {self._of.name}'s pods read: "
                "delete it, and it is made anew"
            )

    async def _create(self, job: ObjectMeta, kept: CreateOnce) -> bool:
        """Draw and create the object; False if there is one."""
        identity, content = _identity(kept), kept.make()
        meta = {
            **content.get("metadata", {}),
            "name": kept.name,
            "namespace": job.namespace,
            "ownerReferences": [owned_by(job, self._of)],
        }
        try:
            await self._writer.create(resource_of(identity), {**content, **identity, "metadata": meta})
        except AlreadyExistsError:
            return False
        return True


def _identity(kept: CreateOnce) -> Tree:
    return {"apiVersion": kept.api_version, "kind": kept.kind}
