"""The authorities by which pods know the status server, and how running TrainJobs hear of a new one.

Each TrainJob has them in a ConfigMap of its own, which kubelets copy into its pods. A new authority is published for
ten minutes before it signs (`kube.pki`); within that time the leader writes it to the TrainJobs that began before it
was there. Which those are follows from the authority's own age and the JobSet's, so a new leader reads nothing, and
writes nothing unless there was a new authority of late. TrainJobs whose pods have no such volume are left alone.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.kube.errors import KubeError, NotFoundError
from trainplane.kube.pki import BACKDATE, issued
from trainplane.kube.resource import Key
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainplane.kube.clock import Clock
    from trainplane.operator.apply import Writer
    from trainplane.operator.stores import SeenJobSet, Stores

log = logging.getLogger(__name__)

INTERVAL: Final = 5.0
"""Seconds between looks; the new authority has ten minutes to reach the pods, and kubelets take about one."""
PAUSE: Final = 0.02
"""Seconds between two writes: 10,000 TrainJobs have theirs in some four minutes, and nobody feels it."""
_ENDS: Final = frozenset({"Completed", "Failed"})
MARGIN: Final = BACKDATE + timedelta(minutes=10)
"""How much later than an authority's `notBefore` a TrainJob may have begun without it."""


class Authority:
    """Follows the authorities, and brings new ones to the TrainJobs that run.

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
        self._owed = False
        """Whether TrainJobs began before any authority was known: then age says nothing, and all get it."""

    def text(self) -> str:
        """Return the authorities to trust today, PEM; empty until they are known, and brought later."""
        self._text = self._text or self._read().decode(errors="replace")
        self._owed = self._owed or not self._text
        return self._text

    async def run(self) -> None:
        """Look until cancelled. What could not be written is tried again."""
        while True:
            text = self._text = self._read().decode(errors="replace") or self._text
            if text and self._leads() and text != self._brought:
                try:
                    await self.bring(text)
                    self._brought, self._owed = text, False
                except KubeError as error:
                    log.warning("authorities not brought to all TrainJobs", extra={"error": repr(error)})
            elif not self._leads():
                self._brought = ""
            await self._clock.sleep(INTERVAL)

    async def bring(self, text: str) -> None:
        """Write the authorities to TrainJobs that run and began before the newest of them was there."""
        count = 0
        for key in list(self._behind(text)):
            patch = {"data": {names.STATUS_CA_KEY: text}}
            try:
                await self._writer.patch(CONFIG_MAPS, Key(key.namespace, names.tls_config_name(key.name)), patch)
                count += 1
            except NotFoundError:
                pass  # gone with its TrainJob
            await self._clock.sleep(PAUSE)
        if count:
            log.info("authorities brought to TrainJobs", extra={"trainjobs": count})

    def _behind(self, text: str) -> Iterator[Key]:
        newest = issued(text.encode())
        for key in self._stores.job_sets:
            jobset = self._stores.job_set(key)
            if jobset is None or not jobset.reports or _is_over(jobset):
                continue
            made = jobset.meta.creation_timestamp
            if self._owed or newest is None or made is None or made <= newest + MARGIN:
                yield key


def _is_over(jobset: SeenJobSet) -> bool:
    return any(one.type in _ENDS and one.status == "True" for one in jobset.status.conditions or ())
