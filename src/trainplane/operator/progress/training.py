"""How training stands: what the sender of output in a pod is told when it asks, and waits for.

    GET …/trainjobs/NAME/training?wait=25   →   {"training": "running" | "succeeded" | "failed"}

The answer is of the very pod that the token is bound to. `failed`: one of its containers ended badly and is not started
again. `succeeded`: all have ended well; and for the first pod, which sends, so have those of the other pods of its
step, any of which may write on a volume that they share. Whether a pod of the step that failed is replaced is the Job's
to decide, so until then training runs. Senders of other pods ask too: one that ends sooner leaves its pod unready.

A question waits until the answer changes, for seconds that have a bound; so do the questions that wait: one for each
pod, and `MOST_WAITING` in all. Who finds no place is answered at once, and told when to ask again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from trainplane.kube.resource import Key
from trainplane.operator.pods import PodMirror, SeenPod

if TYPE_CHECKING:
    from trainplane.kube.store import Store
    from trainplane.operator.pods import Training

MOST_SECONDS: Final = 25.0
"""Seconds that a question waits at most: less than proxies and load balancers let a connection be silent."""
MOST_WAITING: Final = 2048
"""Questions that wait at once, half of the connections that the server takes: reports have the others."""
TOGETHER_SECONDS: Final = 0.3
"""How long news of a pod waits for more: a thousand pods end together, and each look is at all of them."""
AGAIN_SECONDS: Final = 10
"""When to ask again who found no place to wait in."""


def read_wait(query: str) -> float:
    """Return how many seconds a question wants to wait, within bounds; what is no number means not at all."""
    name, _, value = query.partition("=")
    if name != "wait" or not (value.isascii() and value.isdigit() and len(value) < 4):
        return 0.0
    return min(float(value), MOST_SECONDS)


class Trainings:
    """Answers how training stands, from the mirror of pods."""

    def __init__(self, pods: Store, *, most_waiting: int = MOST_WAITING) -> None:
        self._pods = PodMirror(pods)
        self._most = most_waiting
        self._waiting: dict[Key, dict[str, asyncio.Event]] = {}
        """By TrainJob and pod: what ends the waiting."""
        self._count = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return self._count

    def changed(self, key: Key) -> None:
        """Look again at who waits for a TrainJob whose pods changed."""
        for event in self._waiting.get(key, {}).values():
            event.set()

    def close(self) -> None:
        """Let nobody wait any longer: another replica answers."""
        self._closed = True
        for key in list(self._waiting):
            self.changed(key)

    def look(self, key: Key, jobset_uid: str, pod: str) -> Training:
        """Return how training stands for a pod; the others are looked at when its own part is done."""
        mine = self._pods.store.decode(Key(key.namespace, pod), SeenPod)
        if mine is None:
            return "running"  # it is gone from the mirror, and who asks will be
        if mine.training != "succeeded" or mine.place.completion_index:
            return mine.training
        peers = [
            one
            for one in self._pods.of(key, jobset_uid)
            if (one.step, one.attempt) == (mine.step, mine.attempt) and one.metadata.name != pod
        ]
        done = {one.place for one in peers if one.training == "succeeded"}
        return "succeeded" if done >= {one.place for one in peers} else "running"

    async def wait(self, key: Key, jobset_uid: str, pod: str, seconds: float) -> tuple[Training, bool]:
        """Return how training stands as soon as it no longer runs, or after some seconds; and whether it was waited.

        A pod that asks again ends its former question.
        """
        answer = self.look(key, jobset_uid, pod)
        mine = self._waiting.setdefault(key, {}) if seconds > 0 else {}
        if answer != "running" or self._closed or seconds <= 0:
            self._leave(key)
            return answer, True
        if pod in mine:
            mine.pop(pod).set()
        elif self._count >= self._most:
            self._leave(key)
            return answer, False
        event = mine[pod] = asyncio.Event()
        self._count += 1
        try:
            async with asyncio.timeout(min(seconds, MOST_SECONDS)):
                while answer == "running" and mine.get(pod) is event and not self._closed:
                    await event.wait()
                    event.clear()
                    if mine.get(pod) is event and not self._closed:
                        await asyncio.sleep(TOGETHER_SECONDS)
                    answer = self.look(key, jobset_uid, pod)
        except TimeoutError:
            pass
        finally:
            self._count -= 1
            if mine.get(pod) is event:
                del mine[pod]
            self._leave(key)
        return answer, True

    def _leave(self, key: Key) -> None:
        if not self._waiting.get(key, True):
            del self._waiting[key]
