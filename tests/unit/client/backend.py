"""A backend in memory, for tests of what stands on one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainplane.client.errors import NotFoundError
from trainplane.client.types.jobs import Cause, Event, LogLine, Step, TrainJob
from trainplane.client.types.overview import Overview
from trainplane.client.types.runtimes import Runtime, RuntimeKind, RuntimeTrainer, TrainerType

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from trainplane.api.tree import Tree
    from trainplane.client.backends.backend import BackendKind
    from trainplane.explain.facts import Facts

CREATED_AT = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)


def a_runtime(**changes: Any) -> Runtime:
    base: dict[str, Any] = {
        "name": "torch-distributed",
        "trainer": RuntimeTrainer(TrainerType.CUSTOM_TRAINER, "torch", "torch:1", 1),
        "kind": RuntimeKind.CLUSTER_TRAINING_RUNTIME,
    }
    return Runtime(**base | changes)


def a_job(status: str = "Created", **changes: Any) -> TrainJob:
    base: dict[str, Any] = {
        "name": "job",
        "runtime": a_runtime(),
        "steps": [Step("node-0", "Running", "job-node-0-0-x")],
        "num_nodes": 1,
        "creation_timestamp": CREATED_AT,
        "status": status,
        "namespace": "team",
    }
    return TrainJob(**base | changes)


def failed(**changes: Any) -> TrainJob:
    return a_job("Failed", cause=Cause("Error", "the container ended with 3", "node-0", 3), **changes)


class FakeBackend:
    """Plays a list of changes of one job; after the last one the job stays as it is, or is deleted."""

    def __init__(self, *changes: TrainJob, deleted: bool = False, lines: Sequence[LogLine] = ()) -> None:
        self.changes = list(changes)
        self.deleted = deleted
        self.lines = list(lines)
        self.calls: list[tuple[Any, ...]] = []
        self.open_watches = 0
        self.closed = False
        self.answer: Tree | None = None
        self.events: list[Event] = []
        self.facts: Facts | None = None
        self.runtime: Tree | None = None
        self.documents: dict[str, Tree] = {}
        self.overview = Overview()

    @property
    def kind(self) -> BackendKind:
        return "kubernetes"

    async def list_runtimes(self) -> list[Runtime]:
        return [a_runtime()]

    async def get_runtime(self, name: str) -> Runtime:
        return a_runtime(name=name)

    async def runtime_document(self, job: Tree) -> Tree:
        if self.runtime is None:
            raise NotFoundError(f"there is no runtime {job['spec']['runtimeRef']['name']}")
        return self.runtime

    async def get_document(self, name: str) -> Tree:
        if name not in self.documents:
            raise NotFoundError(f"there is no TrainJob {name}")
        return self.documents[name]

    async def restart_job(self, name: str) -> None:
        self.calls.append(("restart_job", name))

    async def submit(self, job: Tree) -> str:
        self.calls.append(("submit", job))
        return str(job["metadata"]["name"])

    async def list_jobs(self, runtime: str | None = None) -> list[TrainJob]:
        self.calls.append(("list_jobs", runtime))
        return self.changes[-1:]

    async def get_job(self, name: str) -> TrainJob:
        if not self.changes:
            raise NotFoundError(f"there is no TrainJob {name}")
        return self.changes[-1]

    async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        self.open_watches += 1
        try:
            if not self.changes:
                raise NotFoundError(f"there is no TrainJob {name}")
            for change in self.changes:
                yield change
                await asyncio.sleep(0)
            if not self.deleted:
                await asyncio.Event().wait()
        finally:
            self.open_watches -= 1

    async def read_logs(
        self,
        name: str,
        steps: Sequence[str] | None,
        *,
        follow: bool,
        tail: int | None = None,
        since: datetime | None = None,
        previous: bool = False,
    ) -> AsyncGenerator[LogLine, None]:
        del since, previous
        self.calls.append(("read_logs", name, steps, follow, tail))
        for line in self.lines[-tail:] if tail else self.lines:
            if steps is None or line.step in steps:
                yield line

    async def list_events(self, name: str) -> list[Event]:
        self.calls.append(("list_events", name))
        return self.events

    async def patch_job(self, name: str, patch: Tree) -> None:
        self.calls.append(("patch_job", name, patch))

    async def scale_job(self, name: str, num_nodes: int) -> None:
        self.calls.append(("scale_job", name, num_nodes))

    async def delete_job(self, name: str) -> None:
        self.calls.append(("delete_job", name))

    async def collect(self, name: str) -> Facts:
        self.calls.append(("collect", name))
        if self.facts is None:
            raise NotFoundError(f"nothing is known of TrainJob {name}")
        return self.facts

    async def explain_queue(self, name: str) -> Tree | None:
        self.calls.append(("explain_queue", name))
        return self.answer

    async def survey(self, *, whole: bool = True) -> Overview:
        self.calls.append(("survey", whole))
        return self.overview

    async def close(self) -> None:
        self.closed = True
