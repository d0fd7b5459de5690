"""What a person sees while `TrainerClient.wait_for_job_status` waits.

In a notebook one card that is updated in place, on a terminal a line for each change, and nothing in pipes and CI.
TRAINPLANE_PROGRESS chooses: `off`, `text` or `notebook`.

The waiting is done on the client's loop; what is shown, and the callbacks of the user, run in the thread that called:
a notebook puts output under the cell of the thread that made it, and a callback may use the client.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from trainplane.client.display.cards import job_card
from trainplane.client.display.facts import duration, percent, progress, tally
from trainplane.client.display.text import say_job, say_step
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence

    from trainplane.client.types.jobs import TrainJob
    from trainplane.kube.loopthread import LoopThread

VARIABLE: Final = "TRAINPLANE_PROGRESS"
MANY: Final = 8
"""Steps beyond which lines tell numbers and not names."""
MANY_SECONDS: Final = 2.0
"""How often at most such a line is written."""
PERCENTS: Final = 10
"""How far a training gets on between two lines about it."""


class Screen(Protocol):
    """Where progress is shown."""

    tick: float | None
    """Seconds after which it wants to be called again without a change; None: never."""

    def show(self, job: TrainJob) -> None:
        """Show a TrainJob as it is now."""


class Lines:
    """A line for each change: for terminals and logs."""

    tick: float | None = None

    def __init__(self, out: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `out`, with the seconds since now in front; who takes `news` needs none."""
        self._out = out
        self._clock = clock
        self._began = clock()
        self._status: tuple[str, str] | None = None
        self._steps: dict[str, str] = {}
        self._counted = float("-inf")
        self._tenth = 0

    def news(self, job: TrainJob) -> list[str]:
        """Return a line for each thing that is new since the last call."""
        return [*self._new_steps(job), *self._new_percents(job), *self._new_status(job)]

    def stamped(self, job: TrainJob) -> list[str]:
        """Return what `news` does, with the time since the beginning in front."""
        passed = f"[{duration(self._clock() - self._began):>6}]"
        return [f"{passed} {line}" for line in self.news(job)]

    def show(self, job: TrainJob) -> None:
        """Write what is new."""
        for line in self.stamped(job):
            print(line, file=self._out, flush=True)

    def _new_status(self, job: TrainJob) -> list[str]:
        status = (job.status, job.cause.reason if job.cause else "")
        if status == self._status:
            return []
        self._status = status
        return [say_job(job)]

    def _new_steps(self, job: TrainJob) -> list[str]:
        told = {step.name: say_step(step) for step in job.steps}
        new = [line for name, line in told.items() if self._steps.get(name) != line]
        if len(told) > MANY and new:
            if self._clock() - self._counted < MANY_SECONDS:
                return []
            self._counted = self._clock()
            new = [f"{len(told)} steps: {tally(step.status or 'Unknown' for step in job.steps)}"]
        self._steps = told
        return new

    def _new_percents(self, job: TrainJob) -> list[str]:
        tenth = (percent(job) or 0) // PERCENTS
        if tenth <= self._tenth:
            return []
        self._tenth = tenth
        return [progress(job)]


class Card:
    """One card that changes in place: for notebooks."""

    tick: float | None = 1.0

    def __init__(self, put: Callable[[str], Callable[[str], None]], now: Callable[[], datetime]) -> None:
        """Show by `put`, which takes HTML and returns what replaces it."""
        self._put = put
        self._now = now
        self._replace: Callable[[str], None] | None = None
        self._shown = ""

    def show(self, job: TrainJob) -> None:
        """Show the card, if it differs from what is shown."""
        html = job_card(job, self._now())
        if html == self._shown:
            return
        self._shown = html
        if self._replace is None:
            self._replace = self._put(html)
        else:
            self._replace(html)


class Silence:
    """Shows nothing."""

    tick: float | None = None

    def show(self, job: TrainJob) -> None:
        """Do nothing."""


def choose_screen(environ: Mapping[str, str] | None = None, out: TextIO | None = None) -> Screen:
    """Return where progress is shown here.

    Raises:
        InvalidError: TRAINPLANE_PROGRESS asks for what there is not.
    """
    wish = (os.environ if environ is None else environ).get(VARIABLE, "")
    out = out or sys.stderr
    if wish not in {"", "off", "text", "notebook"}:
        raise InvalidError(f"{VARIABLE} must be off, text or notebook, and is {wish!r}")
    if wish == "notebook" or (not wish and in_notebook()):
        return Card(put_in_notebook, lambda: datetime.now(UTC))
    if wish == "text" or (not wish and out is not None and out.isatty()):
        return Lines(out)
    return Silence()


def in_notebook() -> bool:
    """Return whether this is a kernel, with a person at a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def put_in_notebook(html: str) -> Callable[[str], None]:
    """Show HTML below the cell and return what replaces it.

    Raises:
        InvalidError: this Python has no IPython.
    """
    try:
        display: Any = importlib.import_module("IPython.display")
    except ImportError as error:
        raise InvalidError(f"{VARIABLE}=notebook needs IPython, which is not installed here") from error
    handle: Any = display.display(display.HTML(html), display_id=True)
    return lambda newer: handle and handle.update(display.HTML(newer))


async def follow(
    wait: Callable[[Callable[[TrainJob], None]], Coroutine[Any, Any, TrainJob]], tick: float | None
) -> AsyncGenerator[TrainJob | None, None]:
    """Yield each change that a wait sees, and None after `tick` seconds without one; end and fail as the wait does."""
    news: asyncio.Queue[TrainJob | None] = asyncio.Queue()
    waiting = asyncio.ensure_future(wait(news.put_nowait))
    waiting.add_done_callback(lambda _: news.put_nowait(None))
    try:
        while True:
            try:
                async with asyncio.timeout(tick):
                    job = await news.get()
            except TimeoutError:
                yield None
                continue
            if job is None:
                await waiting
                return
            yield job
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def attend(
    loop: LoopThread,
    wait: Callable[..., Coroutine[Any, Any, TrainJob]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    screen: Screen | None = None,
) -> TrainJob:
    """Run a wait on a loop and return the TrainJob; show its changes, and tell the callbacks among its arguments."""
    given = inspect.signature(wait).bind(*args, **kwargs).arguments
    callbacks = given.pop("callbacks", None) or ()
    screen = screen or choose_screen()
    changes = loop.iterate(follow(lambda tell: wait(**given, callbacks=[tell]), screen.tick))
    job: TrainJob | None = None
    with closing(changes):
        for change in changes:
            if change is not None:
                job = change
                for callback in callbacks:
                    callback(job)
            if job is not None:
                screen.show(job)
    if job is None:
        raise AssertionError("a wait that returns has seen the TrainJob")
    return job
