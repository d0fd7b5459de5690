"""The authorities by which pods know the status server: in every namespace that needs them, and never old ones.

They stand in one ConfigMap of each namespace with TrainJobs, which kubelets copy into pods: one for each TrainJob would
be a write for each, and thousands when there is a new authority. It is there before the first pods, and stays when the
last is gone. Who may write ConfigMaps in a namespace may break what its own pods trust, and nobody else's; so it is
written anew now and then, and a namespace is never believed to have it for long.

A new authority is published for ten minutes before it signs (`kube.pki`); within that time the leader writes it to the
namespaces where TrainJobs run.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.meta import is_true
from trainplane.kube.errors import ForbiddenError, KubeError, NotFoundError
from trainplane.kube.lease import LeadershipLostError
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.kube.clock import Clock
    from trainplane.operator.apply import Writer
    from trainplane.operator.stores import SeenJobSet, Stores

log = logging.getLogger(__name__)

INTERVAL: Final = 5.0
"""Seconds between looks; the new authority has ten minutes to reach the pods, and kubelets take about one."""
PAUSE: Final = 0.02
"""Seconds between two writes: a thousand namespaces have theirs in some twenty seconds, and nobody feels it."""
BELIEVED_SECONDS: Final = 600.0
"""How long a namespace is believed to have what was written to it."""


class Authority:
    """Follows the authorities, and brings them to the namespaces of TrainJobs.

    Args:
        read: returns the authorities of now, PEM; empty while they are not known.
        leads: whether this replica is the one to write.
        writer: writes.
        stores: the mirrors.
        clock: paces.
    """

    def __init__(
        self, read: Callable[[], bytes], leads: Callable[[], bool], writer: Writer, stores: Stores, clock: Clock
    ) -> None:
        self._read = read
        self._leads = leads
        self._writer = writer
        self._stores = stores
        self._clock = clock
        self._text = ""
        self._brought = ""
        self._have: dict[str, tuple[str, float]] = {}
        """By namespace: what was written there, and when."""
        self._writes: dict[str, asyncio.Lock] = {}

    async def ensure(self, namespace: str) -> None:
        """See that a namespace has the authorities, before TrainJobs there have pods.

        Nobody's training waits for it: what could not be written is tried again, and pods start without.
        """
        text = self._text or self._look()
        if not text or self._has(namespace, text):
            return
        async with self._writes.setdefault(namespace, asyncio.Lock()):  # a burst of TrainJobs is one write
            if self._has(namespace, text):
                return
            try:
                await self._write(namespace, text)
            except LeadershipLostError:
                raise
            except KubeError as error:
                self._brought = ""
                log.warning("authorities not brought", extra={"namespace": namespace, "error": repr(error)})
        self._writes.pop(namespace, None)

    def _has(self, namespace: str, text: str) -> bool:
        written, at = self._have.get(namespace, ("", 0.0))
        return written == text and self._clock.monotonic() - at < BELIEVED_SECONDS

    async def run(self) -> None:
        """Look until cancelled. What could not be written is tried again."""
        while True:
            text = self._look()
            if not self._leads():
                self._brought = ""
                self._have.clear()
            elif text and text != self._brought:
                await self._bring(text)
            await self._clock.sleep(INTERVAL)

    async def _bring(self, text: str) -> None:
        """Write the authorities to the namespaces where TrainJobs run."""
        namespaces = sorted({key.namespace for key in self._stores.job_sets if _runs(self._stores.job_set(key))})
        missed = 0
        for namespace in namespaces:
            if self._have.get(namespace, ("", 0.0))[0] == text:
                continue
            try:
                await self._write(namespace, text)
            except (NotFoundError, ForbiddenError):
                pass  # a namespace that goes, with all that is in it
            except LeadershipLostError:
                return
            except KubeError as error:
                missed += 1
                log.warning("authorities not brought", extra={"namespace": namespace, "error": repr(error)})
            await self._clock.sleep(PAUSE)
        if not missed:
            self._brought = text

    async def _write(self, namespace: str, text: str) -> None:
        await self._writer.apply(CONFIG_MAPS, config_map(namespace, text))
        self._have[namespace] = (text, self._clock.monotonic())

    def _look(self) -> str:
        """Return the authorities of now, or those last known: a file may be swapped at this moment."""
        self._text = self._read().decode(errors="replace") or self._text
        return self._text


def _runs(jobset: SeenJobSet | None) -> bool:
    if jobset is None or not jobset.reports:
        return False
    conditions = jobset.status.conditions or ()
    return not (is_true(conditions, names.JOBSET_COMPLETED) or is_true(conditions, names.JOBSET_FAILED))


def config_map(namespace: str, text: str) -> dict[str, object]:
    """Return the ConfigMap of a namespace."""
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {"name": names.STATUS_CA_CONFIG_MAP, "namespace": namespace},
        "data": {names.STATUS_CA_KEY: text},
    }
