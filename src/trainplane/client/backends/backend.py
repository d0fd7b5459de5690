"""What a place to run TrainJobs must be able to do.

The client turns what a user wrote into a TrainJob document and hands it over; a backend gives back types. Everything is
asynchronous and belongs to one event loop; the blocking client is a face over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.client.types.jobs import Event, LogLine, TrainJob
    from trainplane.client.types.overview import Overview
    from trainplane.client.types.runtimes import Runtime
    from trainplane.explain.facts import Facts


BackendKind: TypeAlias = Literal["kubernetes", "process", "container"]


class Backend(Protocol):
    """A place to run TrainJobs. Errors are those of `client.errors`."""

    @property
    def kind(self) -> BackendKind:
        """What it is; options say by this where they work."""

    async def list_runtimes(self) -> list[Runtime]:
        """Return the runtimes, a namespace's before the cluster's of the same name; what is malformed is left out."""

    async def get_runtime(self, name: str) -> Runtime:
        """Return a runtime; raises NotFoundError."""

    async def runtime_document(self, job: Tree) -> Tree:
        """Return the document of the runtime that a TrainJob's document names, as it is now; raises NotFoundError."""

    async def submit(self, job: Tree) -> str:
        """Create a TrainJob from its document (apiVersion, kind, metadata, spec) and return its name: one request."""

    async def list_jobs(self, runtime: str | None = None) -> list[TrainJob]:
        """Return the TrainJobs, oldest first, or those of a runtime: two requests whatever their number."""

    async def get_job(self, name: str) -> TrainJob:
        """Return a TrainJob; raises NotFoundError. A failed one carries its cause, without log lines."""

    async def get_document(self, name: str) -> Tree:
        """Return the TrainJob's document, with its status; raises NotFoundError."""

    def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        """Yield the TrainJob as it is, then after each change of it or of its pods, for as long as it exists.

        Ends when the TrainJob is deleted; goes on after it finished (the caller leaves). Survives broken connections.
        Raises NotFoundError if it is not there at the start.
        """

    def read_logs(
        self,
        name: str,
        steps: Sequence[str] | None,
        *,
        follow: bool,
        tail: int | None = None,
        since: datetime | None = None,
        previous: bool = False,
    ) -> AsyncGenerator[LogLine, None]:
        """Yield what the steps printed (None: all of them), merged in the order of time, each line once.

        With `follow` it waits for pods that are not there yet, goes on through restarts, and ends when the TrainJob has
        finished and all is read. Without, it ends at what there is. Raises NotFoundError for a TrainJob or step that
        there is not and cannot come. `since` leaves older lines out; `previous` reads of each step the run before the
        present one, and is not followed.
        """

    async def list_events(self, name: str) -> list[Event]:
        """Return what happened to the TrainJob and to what it is made of, in the order of time."""

    async def patch_job(self, name: str, patch: Tree) -> None:
        """Merge-patch the TrainJob's document: suspend, resume."""

    async def scale_job(self, name: str, num_nodes: int) -> None:
        """Let the TrainJob go on with another number of nodes, from its last checkpoint; its name stays."""

    async def restart_job(self, name: str) -> None:
        """Let a TrainJob that is over begin again under its name: it is deleted, then submitted as it was.

        Raises RefusedError for one that is not over, and where it would not be taken again; it is then as it was.
        """

    async def delete_job(self, name: str) -> None:
        """Delete the TrainJob and all that it is made of; raises NotFoundError."""

    async def collect(self, name: str) -> Facts:
        """Return all that is known of the TrainJob, with the last lines of its steps; raises NotFoundError."""

    async def explain_queue(self, name: str) -> Tree | None:
        """Return why the TrainJob is queued, as the hub's API answers; None where nobody can say."""

    async def survey(self, *, whole: bool = True) -> Overview:
        """Return the cluster at a glance; `whole`: TrainJobs of all namespaces, where the caller may list them."""

    async def close(self) -> None:
        """Give back what the backend holds. Jobs go on."""
