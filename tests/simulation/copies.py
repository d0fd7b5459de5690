"""Fills a storage with copies of TrainJobs that lived, and of all that they own: a cluster of many, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.engines import OWNED
from tests.simulation.queues import is_finished

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.apiserver import Record
    from trainplane.kube.testing.storage import Collection, Tree

AT_ONCE = 1000
"""Copies after which the history of their making is forgotten."""


class Pattern:
    """A TrainJob and what it owns, as text: names and uids are the only things in it that differ from copy to copy."""

    def __init__(self, storage: Record, job: Tree) -> None:
        self._name, self._namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        self._kinds: list[Collection] = [TRAINJOBS]
        family = [job]
        for one in family:
            for collection, key in storage.owned.get(one["metadata"]["uid"], ()):
                if collection in OWNED:
                    self._kinds.append(collection)
                    family.append(storage.objects[collection][key])
        self._uids = [one["metadata"]["uid"] for one in family]
        self._text = msgspec.json.encode(family).decode()

    def copy(self, storage: Record, number: int, namespace: str) -> None:
        """Store a copy."""
        text = self._text.replace(f'"namespace":"{self._namespace}"', f'"namespace":"{namespace}"')
        text = text.replace(self._name, f"job-{number:06d}")
        for uid in self._uids:
            text = text.replace(uid, f"{uid[:-6]}{number:06d}")
        for collection, obj in zip(self._kinds, msgspec.json.decode(text), strict=True):
            storage.put(collection, obj)


def fill(storage: Record, homes: Iterable[tuple[int, str, bool]]) -> None:
    """Store a copy for each number, namespace and whether it waits, of the TrainJob that does as well.

    Nobody is told: who would act on them has done so with the first ones.
    """
    patterns = {not is_finished(job): Pattern(storage, job) for job in storage.objects[TRAINJOBS].values()}
    listeners, storage.listeners = storage.listeners, []
    for count, (number, namespace, waits) in enumerate(homes):
        patterns[waits].copy(storage, number, namespace)
        if count % AT_ONCE == 0:
            storage.compact()
    storage.compact()
    storage.listeners = listeners
