"""Pods that are waiting to be judged whose they are, each namespace's in its turn.

To judge asks the cluster (`owners`), and a tenant can make any number of pods that have to be judged. So namespaces
take turns: ten thousand pods of one hold up one pod of another by one question.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.kube.resource import Key

log = logging.getLogger(__name__)


class Claims:
    """What waits. `run` judges one after the other; run it more than once to judge several at a time."""

    def __init__(self, judge: Callable[[Key], Awaitable[bool]]) -> None:
        self._judge = judge
        """Judges a pod; says whether it could."""
        self._waiting: dict[str, dict[Key, None]] = {}
        self._again: dict[Key, None] = {}
        self._news = asyncio.Event()

    def add(self, key: Key) -> None:
        """Let a pod be judged."""
        self._waiting.setdefault(key.namespace, {})[key] = None
        self._news.set()

    def retry(self) -> None:
        """Judge again what could not be judged: the cluster answers."""
        again, self._again = self._again, {}
        for key in again:
            self.add(key)

    async def run(self) -> NoReturn:
        """Judge until cancelled."""
        while True:
            await self._news.wait()
            if not self._waiting:
                self._news.clear()
                continue
            key = self._next()
            try:
                if not await self._judge(key):
                    self._again[key] = None
            except Exception:  # a bug must not end the judging of all others
                log.exception("pod cannot be judged", extra={"pod": str(key)})

    def _next(self) -> Key:
        """Return the pod that has waited longest in the namespace whose turn it is; that comes last now."""
        namespace = next(iter(self._waiting))
        keys = self._waiting.pop(namespace)
        key = next(iter(keys))
        del keys[key]
        if keys:
            self._waiting[namespace] = keys
        return key
