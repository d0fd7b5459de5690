"""The plain form of `watch`: a line for each change, for pipes, logs and CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.client.display.live import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.client.types.observation import Observation


class Changes:
    """Tells what is new of a TrainJob since it was told last."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Use a monotonic clock: of a job of many nodes counts are told every other second at most."""
        self._lines = Lines(None, clock)
        self._told: dict[str, str] = {}

    def news(self, seen: Observation) -> list[str]:
        """Return a line for each change."""
        queue, told = seen.queue, seen.explanation
        others = {
            "waits": queue.summary if queue else "",
            "why": told.summary if told else "",
            "do": told.remedy if told else "",
            "deleted": f"TrainJob {seen.job.name} was deleted" if seen.is_deleted else "",
            **{f"{what} cannot be read": why for what, why in seen.unread.items()},
        }
        new = {what: text for what, text in others.items() if text and self._told.get(what) != text}
        self._told |= new
        return [*self._lines.news(seen.job), *(f"{what}: {text}" for what, text in new.items())]
