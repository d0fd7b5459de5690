"""The sender: follow the folder while training goes on, send what is left at its end, and say how it went."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainplane.initializers import schemes
from trainplane.initializers.console import Console
from trainplane.initializers.errors import (
    ChangedError,
    DeniedError,
    ExpiredError,
    InitializerError,
    InvalidError,
    NoSpaceError,
    NotFoundError,
    OccupiedError,
    UnreachableError,
    VolumeError,
)
from trainplane.initializers.journal import State
from trainplane.initializers.lock import held
from trainplane.initializers.outputs.folder import OutputFolder
from trainplane.initializers.outputs.ledger import Ledger
from trainplane.initializers.outputs.manifest import data_beside
from trainplane.initializers.outputs.sender import Sender, fingerprint_of
from trainplane.initializers.outputs.training import Training
from trainplane.initializers.program import Waiting, named
from trainplane.initializers.progress import Progress, readable
from trainplane.initializers.request import number, read_request
from trainplane.initializers.secrets import Secrets, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.initializers.destination import Outgoing
    from trainplane.initializers.outputs.manifest import Manifest
    from trainplane.initializers.request import Request

_MAX_PROVENANCE: Final = 65_536
_LONGEST_LOOK: Final = 10.0
"""Seconds between two looks at the folder."""
_REMEDIES: Final[dict[type[InitializerError], str]] = {
    NotFoundError: "check the annotation trainplane.dev/output, letter by letter, and make the bucket or repository",
    DeniedError: "name a Secret whose credentials may write there in the annotation trainplane.dev/output-secret",
    ExpiredError: "put a fresh token into the Secret that the annotation trainplane.dev/output-secret names",
    NoSpaceError: "ask for a larger claim, or write less to the output folder",
    OccupiedError: "give each job a path of its own in the annotation trainplane.dev/output",
    ChangedError: "see that nothing writes to the output folder after training has ended",
    UnreachableError: "check name, network policy and proxy from this namespace, then run the job again",
    VolumeError: "check the claim's access mode, owner and state",
}
"""What to do about an error in this direction, where the error itself knows nothing better."""


@dataclass(frozen=True)
class Order:
    """What is to be sent, and when."""

    request: Request
    provenance: Mapping[str, Any]
    settle_seconds: int = 30
    """How long nothing may change in a checkpoint before it is taken for whole."""
    wait_seconds: int = 600
    """How long the operator may be away."""
    now: bool = False
    """Send what is there, without waiting for an end of training."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def identity(self) -> str:
        """What a ledger is for: this job and this destination."""
        decisive = [self.request.uri, self.request.env.get("ENDPOINT", ""), self.provenance.get("uid", "")]
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


def read_order(env: Mapping[str, str], folder: Path | None, *, now: bool) -> Order:
    """Return what the environment asks for; an `InvalidError` names the variable that cannot mean anything."""
    place = folder or (Path(env["OUTPUT_DIR"]) if env.get("OUTPUT_DIR") else None)
    request = read_request("output", env, place)
    text = env.get("OUTPUT_PROVENANCE", "") or "{}"
    try:
        provenance = json.loads(text) if len(text) <= _MAX_PROVENANCE else None
    except ValueError:
        provenance = None
    if not isinstance(provenance, dict):
        raise InvalidError(f"OUTPUT_PROVENANCE must be an object in JSON of at most {_MAX_PROVENANCE} characters")
    times = {
        name: number(request.env, variable, 86_400)
        for name, variable in (("settle_seconds", "SETTLE_SECONDS"), ("wait_seconds", "OUTPUT_WAIT_SECONDS"))
        if variable in request.env
    }
    return Order(request, provenance, now=now, env=env, **times)


def run(env: Mapping[str, str], folder: Path | None = None, console: Console | None = None, *, now: bool) -> int:
    """Send the output; return the exit code, which is 0 however it ended: another would have all trained again."""
    console = console or Console(Secrets(env))
    # Libraries log requests with headers and signed URLs.
    logging.disable(logging.CRITICAL)
    if env.get("JOB_COMPLETION_INDEX", "0").strip() not in ("", "0"):
        console.say("the output is sent by the first pod of the step")
        if not now:
            _wait(env, console)
        return 0
    try:
        order = read_order(env, folder, now=now)
        order = replace(order, request=replace(order.request, learn=console.learn))
        written = _follow(order, console)
    except Exception as error:  # noqa: BLE001 whatever it is, the termination message must say so, without secrets
        failure = named(error)
        if not now and not isinstance(failure, UnreachableError):
            _wait(env, console)
        console.conclude(
            {
                "output": "unsent",
                "cause": failure.cause,
                "uri": shown(env.get("OUTPUT_URI", ""))[:1024],
                "message": str(failure),
                "remedy": remedy_of(failure),
            }
        )
        return 0
    if written is None:
        console.conclude({"output": "none", "message": "training failed"})
        return 0
    console.conclude(
        {
            "output": "sent",
            "uri": shown(order.request.uri),
            "files": written.files,
            "bytes": written.size,
            "digest": written.digest,
        }
    )
    return 0


def _wait(env: Mapping[str, str], console: Console) -> None:
    """Wait for the end of training: a pod one of whose containers has ended is not ready, and Kueue may count that."""
    try:
        training = Training(env, Order.wait_seconds, console.learn)
        end = asyncio.run(training.end(console.say))
    except Exception as error:  # noqa: BLE001 whatever it is, it is not this pod's to send
        console.say(f"not waiting for the end of training: {named(error)}")
    else:
        console.say(f"training {end}: nothing to do")


def remedy_of(failure: InitializerError) -> str:
    """Return what to do: what the error itself says, or what its kind means in this direction."""
    own = failure.remedy != type(failure).remedy
    return failure.remedy if own else _REMEDIES.get(type(failure), failure.remedy)


def _follow(order: Order, console: Console) -> Manifest | None:
    """Return what was sent, None if training failed."""
    request = order.request
    console.say(f"output: {request.folder} to {shown(request.uri)}")
    with ExitStack() as stack:
        state = State(request.folder)
        with suppress(OSError, VolumeError):
            # A folder that only training may write to has no second sender that could be kept away.
            state.prepare()
            waiting = Waiting(console, "another sender is at work on this folder: waiting until it is done")
            stack.enter_context(held(state.lock, waiting))
        ledger = stack.enter_context(Ledger(request.folder, order.identity, console.say))
        return asyncio.run(_run(order, ledger, console))


async def _run(order: Order, ledger: Ledger, console: Console) -> Manifest | None:
    request = order.request
    destination = schemes.open_destination(request)
    progress = Progress(console, verb="sent")
    provenance = {**order.provenance}
    try:
        folder = OutputFolder(request.folder, request.limits.max_files, destination.refuses)
        provenance["data"] = await asyncio.to_thread(data_beside, request.folder)
        about = shown(request.uri).rstrip("/"), provenance
        sender = Sender(folder, destination, ledger, request.limits, progress, about=about)
        if not order.now:
            training = Training(order.env, order.wait_seconds, request.learn)
            if await _until_the_end(training, Follower(folder, sender, order.settle_seconds, console)) == "failed":
                return None
        written = await sender.final()
        progress.end()
    finally:
        await destination.close()
    return written


async def _until_the_end(training: Training, follower: Follower) -> str:
    """Follow until training has ended; a checkpoint that is on its way then still gets there."""
    ended = asyncio.Event()
    following = asyncio.create_task(follower.run(ended))
    try:
        end = await training.end(follower.trouble)
        ended.set()
        if end == "succeeded":
            await following
        return end
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


class Follower:
    """Sends checkpoints as they come to rest."""

    def __init__(self, folder: OutputFolder, sender: Sender, settle_seconds: float, console: Console) -> None:
        self._folder = folder
        self._sender = sender
        self._settle = settle_seconds
        self._console = console
        self._rest: dict[str, tuple[str, float]] = {}
        """Checkpoint → how it was when it last changed, and when that was."""
        self._sent: dict[str, tuple[str, int]] = {}
        """Checkpoint → how it was when it was sent, and how often that was."""
        self._said = ""

    async def run(self, ended: asyncio.Event) -> None:
        """Look and send until training has ended. What fails is tried again at the next look, and at the end."""
        while not ended.is_set():
            try:
                found = await asyncio.to_thread(self._folder.look)
                for name, files in found.checkpoints().items():
                    if not ended.is_set() and self._settled(name, files, time.monotonic()):
                        await self._sender.checkpoint(name, files)
                        self._note(name, files)
            except Exception as error:  # noqa: BLE001 a checkpoint that cannot be sent now is no reason to give up
                self.trouble(f"{named(error).cause}: {error}; it is tried again")
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), min(self._settle / 2, _LONGEST_LOOK))

    def _settled(self, name: str, files: Sequence[Outgoing], now: float) -> bool:
        """Return whether a checkpoint is at rest, and new; one that changes again and again is sent less and less."""
        fingerprint = fingerprint_of(files)
        sent, times = self._sent.get(name, ("", 0))
        if sent == fingerprint:
            return False
        known, since = self._rest.get(name, ("", now))
        if known != fingerprint:
            self._rest[name] = fingerprint, now
            return False
        return now - since >= self._settle * (1 << min(times, 10))

    def _note(self, name: str, files: Sequence[Outgoing]) -> None:
        times = self._sent.get(name, ("", 0))[1]
        self._sent[name] = fingerprint_of(files), times + 1
        size = readable(sum(file.size for file in files))
        self._console.say(f"checkpoint {name!r} is sent: {len(files)} files, {size}")

    def trouble(self, reason: str) -> None:
        """Say what is wrong, once."""
        if reason != self._said:
            self._said = reason
            self._console.say(reason)
