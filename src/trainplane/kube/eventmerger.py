"""Events of an object's ordinary course, merged: steps that follow each other closely are told as one Event.

An Event is a write like any other, and an object that goes its way as it should causes half a dozen of them within
seconds: they would cost an API server more than the work itself. So good news waits a little for more of the same
object, and goes out as one Event: the reason of the last step, the words of all, when the first came and when the last.
What went wrong (`Warning`) never waits, and what came before it goes out with it; what is known to be the last step
ends the wait.

News that waits when a process is killed is lost; one that is told to end writes it (`flush`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainplane.kube.clock import Clock
    from trainplane.kube.events import EventRecorder, EventType, ObjectReference

LOOK_SECONDS: Final = 0.5
"""Between two looks for news that has waited long enough."""
MOST_STEPS: Final = 12
"""Steps of one object that wait; one more ends the wait."""


class Recorder(Protocol):
    """Takes news of objects: `EventRecorder`, or an `EventMerger` before it."""

    def record(
        self, regarding: ObjectReference, type_: EventType, reason: str, message: str, *, action: str = ""
    ) -> None:
        """Note that something happened to an object."""


@dataclass(slots=True)
class _Course:
    """Steps of one object that wait: until when, their words, and when the first and the last came."""

    until: float
    first: datetime
    reason: str
    messages: list[str]
    last: float


@dataclass(slots=True)
class EventMerger:
    """Merges good news before it is recorded.

    Attributes:
        recorder: writes what comes out.
        clock: measures the wait.
        seconds: how long a step waits for the next, and what waits with it; 10 is less than people take to ask. 0
            merges nothing.
        longer: the same for steps by reason that are told by their object's state as well, so that nobody misses them.
        most: objects whose news may wait; beyond, news is recorded as it comes.
        last: reasons after which none follows.
    """

    recorder: EventRecorder
    clock: Clock
    seconds: float = 10.0
    most: int = 8192
    longer: Mapping[str, float] = field(default_factory=dict)
    last: frozenset[str] = frozenset()
    _courses: dict[ObjectReference, _Course] = field(default_factory=dict)

    def record(
        self, regarding: ObjectReference, type_: EventType, reason: str, message: str, *, action: str = ""
    ) -> None:
        """Note that something happened to an object; good news without an action waits for more."""
        course = self._courses.get(regarding)
        held = self.seconds > 0 and type_ == "Normal" and not action
        if not held or (course is None and len(self._courses) >= self.most):
            if course is not None:
                self._release(regarding)
            self.recorder.record(regarding, type_, reason, message, action=action)
            return
        now = self.clock.monotonic()
        until = now + self.longer.get(reason, self.seconds)
        if course is None:
            course = self._courses[regarding] = _Course(until, self.clock.now(), reason, [message], now)
        else:
            later = round(now - course.last)
            course.messages.append(f"{later} s later: {message}" if later else message)
            course.reason, course.last, course.until = reason, now, min(course.until, until)
        if reason in self.last or len(course.messages) >= MOST_STEPS:
            self._release(regarding)

    async def run(self) -> None:
        """Record what has waited long enough, until cancelled."""
        while True:
            await self.clock.sleep(LOOK_SECONDS)
            self.flush(until=self.clock.monotonic())

    def flush(self, *, until: float = float("inf")) -> None:
        """Record what waits until a moment that has come; without one, all."""
        for regarding in [one for one, course in self._courses.items() if course.until <= until]:
            self._release(regarding)

    def _release(self, regarding: ObjectReference) -> None:
        course = self._courses.pop(regarding)
        self.recorder.record(regarding, "Normal", course.reason, "; ".join(course.messages), since=course.first)
