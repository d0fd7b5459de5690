"""The pods of one cluster that say that they belong to jobs, mirrored, and which of them do.

What a pod says of itself is not believed: `accepted` holds those that were judged (`owners`), by uid.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api import names
from trainplane.hub.errors import PodRefusedError
from trainplane.hub.kinds import KINDS, TRAIN_JOB
from trainplane.hub.logarchive.owners import Owners
from trainplane.hub.logarchive.pod import Pod, parse
from trainplane.hub.logarchive.testimony import Copies
from trainplane.kube.errors import ForbiddenError, KubeError, UnauthorizedError
from trainplane.kube.limiter import LimiterSettings
from trainplane.kube.observer import Unobserved
from trainplane.kube.projection import Index, Projection
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import PODS
from trainplane.kube.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainplane.hub.kinds import JobKind
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.projection import Entry, ObjectHeader
    from trainplane.kube.resource import Key, Resource
    from trainplane.kube.store import Change

PROBE_SECONDS: Final = 5.0
"""Seconds within which a cluster must answer to count as reachable."""
PROBE_INTERVAL: Final = 60.0
"""Seconds between two questions whether a cluster answers, while its watch does not fail: only a server that holds
connections and says nothing is found by them."""
OPENING: Final = LimiterSettings(initial=2, most=16)
"""Logs of a cluster that are being opened at once. After a start a hub opens those of all its workers together, each
with a handshake: were they many at a time, all would be late and begin anew."""
_BY_JOB: Final = "job"


class _Meta(msgspec.Struct):
    namespace: str = ""
    labels: dict[str, str] = {}


class _Labelled(msgspec.Struct):
    metadata: _Meta


class _Refused(msgspec.Struct):
    refused: str = ""


class Mirror:
    """The pods of a cluster; `name` is empty for the hub itself."""

    def __init__(
        self,
        name: str,
        client: Client,
        changed: Callable[[str, Change], None],
        told: Callable[[Key], None],
        clock: Clock,
        *,
        streams: int,
        kinds: Iterable[JobKind] = (TRAIN_JOB,),
    ) -> None:
        self.name = name
        self.client = client
        self.logs = client.apart(OPENING, streams=streams)
        """For logs alone: however many streams there are or wait to open, no watch and no question waits for them."""
        self.owners = Owners(client)
        self.accepted: dict[str, str] = {}
        """By the uid of a pod: the uid of the job whose it is."""
        self.silence: str | None = None
        """Why the cluster cannot be reached, None when it can."""
        self.refusal: str | None = None
        """Why its pods cannot be seen although it answers: a role that is missing there."""
        self.blindness: str | None = None
        """Why it cannot be seen whose they are: a role that is missing there."""
        self.former: Mirror | None = None
        """By the credentials before these: what it saw last is shown until this one has seen all pods."""
        self.is_doubted = True
        """Whether something did not work that needs the cluster: then it is asked at the next look."""
        self._probed = clock.monotonic()
        self.copies = Copies(client, told, clock) if name else None
        """What MultiKueue's copies of TrainJobs tell there; None for the hub itself, whose jobs are no copies."""
        labels = dict.fromkeys(kind.pod_label for kind in kinds)
        self._stores = {label: Store(PODS, Projection(transform=_stored), {_BY_JOB: _index(label)}) for label in labels}
        """By the label with which pods say whose they are: no selector asks for one label or another."""
        self._clock = clock
        self._watches = {label: _Watch(self, store, clock) for label, store in self._stores.items()}
        self.reflectors = [
            Reflector(
                client,
                PODS,
                store,
                [lambda change: changed(name, change)],
                clock,
                labels=label,
                observer=self._watches[label],
            )
            for label, store in self._stores.items()
        ]

    @property
    def is_hub(self) -> bool:
        """Whether it is the hub itself, and no worker."""
        return not self.name

    @property
    def problem(self) -> str | None:
        """What keeps the hub from seeing what happens there, None if nothing does."""
        return self.silence or self.refusal or self.blindness

    @property
    def is_current(self) -> bool:
        """Whether its pods are there, and not only were when they were last seen.

        A cluster that answers again is not seen again before its watches have brought something.
        """
        behind = self.former is not None or any(watch.is_behind for watch in self._watches.values())
        return self.problem is None and not behind

    def pod(self, key: Key) -> Pod | None:
        """Return a pod, None if it is gone; raises PodRefusedError."""
        entry = next((found for store in self._stores.values() if (found := store.entry(key)) is not None), None)
        return None if entry is None else pod_of(entry)

    def keys(self, namespace: str, job: str, kind: str = names.TRAIN_JOB) -> list[Key]:
        """Return the pods that may say that they are of a job; what they say of its kind they are asked."""
        return sorted(self._stores[KINDS[kind].pod_label].by_index(_BY_JOB, f"{namespace}/{job}"))

    def pods(self, namespace: str, job: str, uid: str, kind: str = names.TRAIN_JOB) -> list[Pod]:
        """Return the pods that are a job's."""
        if self.former is not None:
            return self.former.pods(namespace, job, uid, kind)
        found = []
        for key in self.keys(namespace, job, kind):
            with contextlib.suppress(PodRefusedError):
                pod = self.pod(key)
                if pod is not None and self.accepted.get(pod.uid) == uid:
                    found.append(pod)
        return found

    @property
    def is_synced(self) -> bool:
        """Whether all pods have been seen."""
        return all(reflector.synced.is_set() for reflector in self.reflectors)

    def uids(self) -> frozenset[str]:
        """Return the uids of all pods."""
        stored = (store.uid(key) for store in self._stores.values() for key in store)
        return frozenset(uid for uid in stored if uid is not None)

    def follow_on(self, former: Mirror | None) -> None:
        """Take another's place: until this one is synced, show what that one, or the one before it, saw last."""
        self.former = former if former is None or former.is_synced else former.former

    async def probe(self) -> bool:
        """Find out whether the cluster answers, by its version, if there is reason to ask; say whether it does again.

        A watch that goes on is an answer, so a fleet that is well is hardly asked.
        """
        now = self._clock.monotonic()
        if not self.is_doubted and self.silence is None and now - self._probed < PROBE_INTERVAL:
            return False
        before, self.is_doubted, self._probed = self.silence, False, now
        try:
            async with self._clock.timeout(PROBE_SECONDS):
                await self.client.version()
        except (KubeError, TimeoutError) as error:
            self.silence = f"cannot be reached: {str(error) or f'no answer within {PROBE_SECONDS:g} s'}"
            return False
        self.silence = None
        return before is not None


class _Watch(Unobserved):
    """Hears when a cluster does not let us see its pods, and since when a store may be behind."""

    def __init__(self, mirror: Mirror, store: Store, clock: Clock) -> None:
        self._mirror = mirror
        self._store = store
        self._clock = clock
        self._failed_at = float("-inf")

    @property
    def is_behind(self) -> bool:
        """Whether nothing was heard since something failed."""
        return self._store.heard_at < self._failed_at

    def listed(self, resource: Resource, *, objects: int, seconds: float) -> None:  # noqa: ARG002 an Observer's
        self._mirror.refusal = None
        self._failed_at = float("-inf")

    def stream_failed(self, resource: Resource, error: Exception) -> None:  # noqa: ARG002 an Observer's
        self._mirror.is_doubted = True
        self._failed_at = self._clock.monotonic()
        if is_refusal(error):
            self._mirror.refusal = f"does not let MultiKueue's user see pods: {error}"


def is_refusal(error: Exception) -> bool:
    """Return whether an error is that we may not, and not that it did not work."""
    return isinstance(error, ForbiddenError | UnauthorizedError)


def pod_of(entry: Entry) -> Pod:
    """Return the pod that a mirror stores; raises PodRefusedError with what kept it from being one."""
    refused = entry.decode(_Refused).refused
    if refused:
        raise PodRefusedError(refused)
    return entry.decode(Pod)


def _stored(header: ObjectHeader) -> Any:
    """Return what is stored of a pod: what is kept of it, or why it is none."""
    try:
        return parse(header.raw)
    except PodRefusedError as error:
        metadata = {"name": header.key.name, "namespace": header.key.namespace, "uid": header.uid}
        return {"metadata": metadata, "refused": str(error)}


def _index(label: str) -> Index[_Labelled]:
    """Find pods by the job that a label names."""
    return Index(_Labelled, lambda found: [f"{found.metadata.namespace}/{found.metadata.labels.get(label, '')}"])
