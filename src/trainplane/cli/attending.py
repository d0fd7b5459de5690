"""What `trainplane run` shows from submission to end, and what becomes of the job when Ctrl-C is pressed.

Lines of the job go to standard output, all that is said about it to standard error: a pipe gets what was printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from contextlib import aclosing
from enum import Enum
from typing import TYPE_CHECKING, Final

from trainplane.cli.explain import show
from trainplane.cli.logs import Shown
from trainplane.cli.output import Output
from trainplane.client.display.live import Lines
from trainplane.client.types.jobs import COMPLETE, FAILED, LogLine, TrainJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from trainplane.client.aio import AsyncTrainerClient

INTERRUPTED: Final = 128 + signal.SIGINT


class Choice(Enum):
    """What Ctrl-C is to do, by the letter that chooses it."""

    DETACH = "d"
    SUSPEND = "s"
    DELETE = "x"
    GO_ON = "c"


QUESTION: Final = "[d] detach, [s] suspend it, [x] delete it, [c] continue to watch? "


async def attend(client: AsyncTrainerClient, name: str, words: str) -> int:
    """Show how a TrainJob gets on and what it prints, and return the exit code that its end means.

    Ctrl-C asks what to do, on a terminal; elsewhere, or pressed again, it leaves the job to itself. `words` are what
    commands need to find the job again.
    """
    showing = asyncio.create_task(_show(client, name))
    try:
        with _interrupts() as interrupted:
            while not showing.done():
                waiting = asyncio.create_task(interrupted.wait())
                await asyncio.wait({showing, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if not interrupted.is_set() or showing.done():
                    continue
                interrupted.clear()
                choice = ask(name, sys.stdin, sys.stderr)  # the loop stands meanwhile, and nothing is printed
                if choice is not Choice.GO_ON:
                    await _end(showing)
                    return await _leave(client, name, choice, words)
        return await showing
    finally:
        await _end(showing)


async def _end(task: asyncio.Task[int]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _show(client: AsyncTrainerClient, name: str) -> int:
    """Print all that is new of a TrainJob to its end, and why it failed; return the exit code."""
    said, printed = Output(sys.stderr), Shown(Output(sys.stdout))
    lines, last = Lines(sys.stderr), None
    async with aclosing(client.follow_job(name)) as news:
        async for one in news:
            if isinstance(one, LogLine):
                printed.line(one)
                sys.stdout.flush()
            elif isinstance(one, TrainJob):
                last = one
                for line in lines.stamped(one):
                    said.line(line)
            else:
                said.line(f"its lines cannot be shown: {one}", colour="yellow")
    if last is not None and last.status == COMPLETE:
        return 0
    if last is not None and last.status == FAILED:
        show(await client.explain_job(name), said)
    else:
        said.line(f"TrainJob {name} was deleted before its end")
    return 1


async def _leave(client: AsyncTrainerClient, name: str, choice: Choice, words: str) -> int:
    """Do what was chosen, and say how to come back."""
    said = Output(sys.stderr)
    if choice is Choice.DELETE:
        await client.delete_job(name)
        said.line(f"TrainJob {name} is deleted")
    elif choice is Choice.SUSPEND:
        await client.suspend_job(name)
        said.line(f"TrainJob {name} is suspended. It goes on with: trainplane resume {name}{words}")
    else:
        said.line(f"TrainJob {name} goes on without you. {how_to_return(name, words)}")
    return INTERRUPTED


def how_to_return(name: str, words: str) -> str:
    """Return how to see a TrainJob again that was left to itself."""
    return f"See it: trainplane logs --follow {name}{words}; end it: trainplane delete {name}{words}"


def ask(name: str, typed: TextIO, shown: TextIO) -> Choice:
    """Ask what to do with a TrainJob; no answer, and Ctrl-C once more, leave it to itself."""
    if not (typed.isatty() and shown.isatty()):
        return Choice.DETACH
    before = _handle(signal.default_int_handler)
    try:
        while True:
            shown.write(f"\nTrainJob {name} goes on.\n{QUESTION}")
            shown.flush()
            answer = typed.readline()
            with contextlib.suppress(ValueError):
                return Choice(answer.strip().lower() or Choice.DETACH.value)
    except KeyboardInterrupt:
        shown.write("\n")
        return Choice.DETACH
    finally:
        _handle(before)


@contextlib.contextmanager
def _interrupts() -> Iterator[asyncio.Event]:
    """Yield an event that Ctrl-C sets, in place of what it does else."""
    loop, interrupted = asyncio.get_running_loop(), asyncio.Event()
    before = _handle(lambda *_: loop.call_soon_threadsafe(interrupted.set))
    try:
        yield interrupted
    finally:
        _handle(before)


def _handle(handler: signal._HANDLER) -> signal._HANDLER:
    """Let Ctrl-C call another handler and return the one before; only a main thread is interrupted."""
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGINT, handler)
