"""Make TrainJobs and time what becomes of them: `drive.py KUBECONFIG NAMESPACE COUNT RESULT [--bare NUMBER] [--told]`.

32 writers create TrainJobs and a controller makes their JobSets; with `--bare`, so many processes of `bare.py` with 32
writers together make all that a controller would. Then the JobSets are marked as completed and the TrainJobs'
completion is timed, and with `--told` the Event is waited for that says so of each. Whoever writes, the times are this
process's own: from the answer to a create to the change that it sees of what follows from it. Between the steps it
waits until the bench has read the clocks of the processes that it measures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.handover import hand_over
from benchmarks.operator.bare import by_writers, mark
from benchmarks.operator.jobs import LAST_WORD, Seen, SeenEvent, trainjob
from benchmarks.operator.sightings import Sightings
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.projection import METADATA, METADATA_AND_STATUS
from trainplane.kube.resource import EVENTS
from trainplane.resources import JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from typing import Protocol

    from trainplane.kube.projection import Entry

    class Hands(Protocol):
        """Who writes."""

        async def create(self) -> None:
            """Create all TrainJobs."""

        async def complete(self) -> None:
            """Mark all JobSets as completed."""

        async def tell(self) -> None:
            """Tell what is to be told of them, if that is theirs to tell."""


WRITERS = 32
PATIENCE_SECONDS = 580.0
STEPS = ("create", "complete", "tell")


class Writers:
    """The hands of who waits for a controller: it creates TrainJobs and plays JobSet."""

    def __init__(self, client: Client, namespace: str, names: list[str]) -> None:
        self._client = client
        self._namespace = namespace
        self._names = names
        self.begun: dict[str, float] = {}
        """When each answer came, on the monotonic clock."""

    async def create(self) -> None:
        """Create all TrainJobs."""

        async def one(name: str) -> None:
            await self._client.create(TRAIN_JOBS, trainjob(name, self._namespace), self._namespace, type_=bytes)
            self.begun[name] = time.monotonic()

        await by_writers(self._names, WRITERS, one)

    async def complete(self) -> None:
        """Mark all JobSets as completed."""

        async def one(name: str) -> None:
            await mark(self._client, name, self._namespace)
            self.begun[name] = time.monotonic()

        await by_writers(self._names, WRITERS, one)

    async def tell(self) -> None:
        """Leave it to the controller."""


class BareProcesses:
    """The hands of nobody: several processes of `bare.py`, which share the names."""

    def __init__(self, processes: list[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    @classmethod
    async def start(cls, kubeconfig: str, namespace: str, count: int, number: int) -> BareProcesses:
        """Start them and wait until they are ready."""
        made = []
        for first in range(number):
            words = (kubeconfig, namespace, first, number, count, -(-WRITERS // number))
            command = (sys.executable, str(Path(__file__).with_name("bare.py")), *map(str, words))
            pipe = asyncio.subprocess.PIPE
            made.append(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))
        bare = cls(made)
        await bare._hear("ready")
        return bare

    async def create(self) -> None:
        """Create all TrainJobs, snapshots and JobSets."""
        await self._do("create")

    async def complete(self) -> None:
        """Mark all JobSets and TrainJobs as completed."""
        await self._do("complete")

    async def tell(self) -> None:
        """Tell of each."""
        await self._do("tell")

    async def stop(self) -> None:
        """Let them end."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()

    async def _do(self, step: str) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.write(f"{step}\n".encode())
                await process.stdin.drain()
        await self._hear(step)

    async def _hear(self, word: str) -> None:
        for process in self._processes:
            said = b"" if process.stdout is None else await process.stdout.readline()
            if said.decode().strip() != word:
                raise RuntimeError(f"a process of bare writes said {said!r} instead of {word!r}: its log has why")


def summary(begin: float, starts: dict[str, float], ends: dict[str, float]) -> dict[str, float]:
    """Return how fast what began at `begin` was done, and how long each waited whose start is known."""
    seconds = max(ends.values()) - begin
    figures = {"jobs_per_s": len(ends) / seconds, "seconds": seconds}
    waits = sorted(max(0.0, ends[name] - starts[name]) for name in ends if name in starts)
    if waits:
        figures |= {"p50_s": waits[len(waits) // 2], "p99_s": waits[int(len(waits) * 0.99)]}
    return figures


def _made(entry: Entry) -> str | None:
    return entry.decode(Seen).metadata.name


def _complete(entry: Entry) -> str | None:
    seen = entry.decode(Seen)
    return seen.metadata.name if seen.is_complete else None


def _told(entry: Entry) -> str | None:
    event = entry.decode(SeenEvent)
    return event.involved_object.name if event.reason == LAST_WORD else None


async def main(kubeconfig: str, namespace: str, count: int, result: Path, *, bare: int, told: bool) -> None:
    """Do all steps and write what was measured after each."""
    names = [f"job-{number}" for number in range(count)]
    figures: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(load_config(kubeconfig)))
        writers = Writers(client, namespace, names)
        hands: Hands = writers
        if bare:
            processes = await BareProcesses.start(kubeconfig, namespace, count, bare)
            stack.push_async_callback(processes.stop)
            hands = processes
        made = await stack.enter_async_context(Sightings(client, JOB_SETS, namespace, _made, METADATA))
        events = await stack.enter_async_context(Sightings(client, EVENTS, namespace, _told))

        begin = time.monotonic()
        await hands.create()
        figures["create"] = summary(begin, writers.begun, await made.of(count, PATIENCE_SECONDS))
        await _report(result, "create", figures)

        done = await stack.enter_async_context(Sightings(client, TRAIN_JOBS, namespace, _complete, METADATA_AND_STATUS))
        writers.begun = {}
        begin = time.monotonic()
        await hands.complete()
        figures["complete"] = summary(begin, writers.begun, await done.of(count, PATIENCE_SECONDS))
        await _report(result, "complete", figures)

        await hands.tell()
        if told:
            await events.of(count, PATIENCE_SECONDS)
        figures["tell"] = {"events": events.changes}
        await _report(result, "tell", figures)


async def _report(result: Path, step: str, figures: dict[str, Any]) -> None:
    """Hand a step's figures over, and wait until the bench has read its clocks."""
    hand_over(result.with_suffix(f".{step}"), figures)
    go = result.with_suffix(f".{step}.go")
    while not go.exists():  # noqa: ASYNC110 a file is how the bench speaks to us
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig")
    parser.add_argument("namespace")
    parser.add_argument("count", type=int)
    parser.add_argument("result", type=Path)
    parser.add_argument("--bare", type=int, default=0)
    parser.add_argument("--told", action="store_true")
    chosen = parser.parse_args()
    uvloop.run(
        main(chosen.kubeconfig, chosen.namespace, chosen.count, chosen.result, bare=chosen.bare, told=chosen.told)
    )
