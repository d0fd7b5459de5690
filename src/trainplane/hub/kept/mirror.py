"""The pods of one cluster that belong to JobSets, mirrored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.kube.errors import ForbiddenError, KubeError, UnauthorizedError
from trainplane.kube.observer import Unobserved
from trainplane.kube.projection import Index, Projection
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import PODS
from trainplane.kube.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Resource
    from trainplane.kube.store import Change

PROBE_SECONDS: Final = 5.0
"""Seconds within which a cluster must answer to count as reachable."""
_BY_JOB: Final = "job"


class _Meta(msgspec.Struct):
    namespace: str = ""
    labels: dict[str, str] = {}


class _Labelled(msgspec.Struct):
    metadata: _Meta


class Mirror:
    """The pods of a cluster; `name` is empty for the hub itself."""

    def __init__(self, name: str, client: Client, changed: Callable[[str, Change], None], clock: Clock) -> None:
        self.name = name
        self.client = client
        self.silence: str | None = None
        """Why the cluster cannot be reached, None when it can."""
        self.refusal: str | None = None
        """Why its pods cannot be seen although it answers: a role that is missing there."""
        of_job = Index(_Labelled, lambda found: [_job(found.metadata)])
        self._store = Store(PODS, Projection(fields=frozenset({"spec", "status"})), {_BY_JOB: of_job})
        self._clock = clock
        self.reflector = Reflector(
            client,
            PODS,
            self._store,
            [lambda change: changed(name, change)],
            clock,
            labels=names.LABEL_JOBSET_NAME,
            observer=_Refusals(self),
        )

    @property
    def problem(self) -> str | None:
        """What keeps the hub from seeing what happens there, None if nothing does."""
        return self.silence or self.refusal

    def pods(self, namespace: str, job: str) -> list[Tree]:
        """Return the pods of a JobSet, and so of the TrainJob of that name."""
        keys = sorted(self._store.by_index(_BY_JOB, f"{namespace}/{job}"))
        return [pod for key in keys if (pod := self._store.decode(key, dict)) is not None]

    def uids(self) -> frozenset[str]:
        """Return the uids of all pods."""
        return frozenset(uid for key in self._store if (uid := self._store.uid(key)) is not None)

    async def probe(self) -> bool:
        """Ask the cluster for its version; say whether it answers again after it did not."""
        before = self.silence
        try:
            async with self._clock.timeout(PROBE_SECONDS):
                await self.client.version()
        except (KubeError, TimeoutError) as error:
            self.silence = f"cannot be reached: {str(error) or f'no answer within {PROBE_SECONDS:g} s'}"
            return False
        self.silence = None
        return before is not None


class _Refusals(Unobserved):
    """Hears when a cluster does not let us see its pods."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def listed(self, resource: Resource, *, objects: int, seconds: float) -> None:  # noqa: ARG002 an Observer's
        self._mirror.refusal = None

    def stream_failed(self, resource: Resource, error: Exception) -> None:  # noqa: ARG002 an Observer's
        if isinstance(error, ForbiddenError | UnauthorizedError):
            self._mirror.refusal = f"does not let MultiKueue's user see pods: {error}"


def _job(meta: _Meta) -> str:
    return f"{meta.namespace}/{meta.labels.get(names.LABEL_JOBSET_NAME, '')}"
