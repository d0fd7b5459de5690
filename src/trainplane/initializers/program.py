"""The program: read the environment, take the lock, fetch what is missing, and say how it went."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trainplane.initializers import schemes
from trainplane.initializers.console import Console
from trainplane.initializers.errors import BrokenError, InitializerError, NoSpaceError, UnreachableError, VolumeError
from trainplane.initializers.journal import Journal, State
from trainplane.initializers.lock import held
from trainplane.initializers.progress import Progress
from trainplane.initializers.request import read_request
from trainplane.initializers.secrets import Secrets, shown
from trainplane.initializers.selection import select
from trainplane.initializers.source import PauseError
from trainplane.initializers.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trainplane.initializers.request import Request
    from trainplane.initializers.source import File, Source

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SAY_WAITING_SECONDS: Final = 30


def run(what: str, env: Mapping[str, str], folder: Path | None = None, console: Console | None = None) -> int:
    """Bring the data; return the exit code."""
    console = console or Console(Secrets(env))
    # Libraries log requests with headers and signed URLs.
    logging.disable(logging.CRITICAL)
    try:
        _fetch(replace(read_request(what, env, folder), learn=console.learn), console)
    except Exception as error:  # noqa: BLE001 whatever it is, the termination message must say so, without secrets
        failure = named(error)
        console.fail(failure)
        return failure.exit_code
    return 0


def _fetch(request: Request, console: Console) -> None:
    console.say(f"{request.what}: {shown(request.uri)} to {request.folder}")
    state = State(request.folder)
    if _there(request, state, console):
        # Without a write: the claim may be mounted to be read only.
        return
    state.prepare()
    with held(state.lock, Waiting(console, "another job fetches to this folder: waiting until it is done")):
        if not _there(request, state, console):
            asyncio.run(_bring(request, state, console))


def _there(request: Request, state: State, console: Console) -> bool:
    """Return whether all of it is there already."""
    marker = state.whole(request)
    if marker is None:
        return False
    console.say(f"all {marker['files']} files are there: nothing to do")
    return True


async def _bring(request: Request, state: State, console: Console) -> None:
    source = schemes.open_source(request)
    progress = Progress(console)
    try:
        files = await _listed(source, request, progress)
        with Journal(state, request) as journal:
            await Transfer(source, state, journal, request.limits, progress).run(files)
            state.finish(request, journal.files, source.revision)
    finally:
        await source.close()
    progress.end()


async def _listed(source: Source, request: Request, progress: Progress) -> list[File]:
    """List the source, trying again while it asks for patience."""
    end = time.monotonic() + request.limits.retry_seconds
    pause = 0.1
    while True:
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + end - time.monotonic()):
                return await select(source, request)
        except PauseError as error:
            progress.trouble(str(error))
            await asyncio.sleep(min(max(error.after, pause), max(end - time.monotonic(), 0)))
            if time.monotonic() >= end:
                raise error.final(request.limits.retry_seconds) from None
            pause = min(pause * 2, 30)
        except TimeoutError:
            raise UnreachableError(f"the list of files did not end in {request.limits.retry_seconds} s") from None


def named(error: Exception) -> InitializerError:
    """Return any error as one of ours."""
    if isinstance(error, InitializerError):
        return error
    if isinstance(error, OSError) and error.errno in _FULL:
        return NoSpaceError(f"the volume is full: {error.strerror}")
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        return VolumeError(f"the volume refused{where}: {error.strerror or type(error).__name__}")
    if isinstance(error, ImportError):
        return BrokenError(f"this image lacks {error.name}", "use an image with trainplane[initializers]")
    return BrokenError(f"{type(error).__name__}: {str(error)[:500]}")


class Waiting:
    """Says now and then that another job is at work on the same folder."""

    def __init__(self, console: Console, words: str) -> None:
        self._console = console
        self._words = words
        self._said = -_SAY_WAITING_SECONDS

    def __call__(self, seconds: float) -> None:
        """Take in how long it was so far."""
        if seconds - self._said >= _SAY_WAITING_SECONDS:
            self._said = int(seconds)
            self._console.say(self._words)
