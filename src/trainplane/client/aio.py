"""The SDK for code with an event loop; `client.TrainerClient` is the same without `await`."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING

from trainplane.client.display.listing import Listing
from trainplane.client.errors import InvalidError, TrainplaneError
from trainplane.client.opening import open_backend
from trainplane.client.types.descriptions import Description
from trainplane.client.types.jobs import COMPLETE, FINISHED, SUSPENDED
from trainplane.client.types.runtimes import Runtime, RuntimeKind, TrainerType

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Any, Self

    from trainplane.client.backends.backend import Backend
    from trainplane.client.opening import BackendConfig
    from trainplane.client.types.descriptions import QueueAnswer
    from trainplane.client.types.initializers import Initializer
    from trainplane.client.types.jobs import Event, LogLine, TrainJob
    from trainplane.client.types.observation import Observation
    from trainplane.client.types.outputs import Output
    from trainplane.client.types.overview import Overview
    from trainplane.client.types.renderings import Comparison, RenderedJob
    from trainplane.client.types.trainers import Trainer
    from trainplane.explain.explanation import Explanation

ALL_STEPS = "all"
"""The step that means every one of them, each line with its step in front."""


def default_runtime() -> str:
    """Return the runtime of jobs that name none."""
    return os.environ.get("DEFAULT_TRAINING_RUNTIME", "torch-distributed")


class AsyncTrainerClient:
    """From a Python function to a distributed run. Use within one event loop, `async with`.

    Every method stands in `TrainerClient` under the same name, without `await`.
    """

    def __init__(self, backend_config: BackendConfig | None = None, *, backend: Backend | None = None) -> None:
        """Choose where jobs run: the cluster that kubectl would use here, or what `backend_config` says.

        `backend` brings one that is there already; then the configuration is not looked at.

        Raises:
            TrainplaneError: the configuration cannot be used; nothing was sent yet.
        """
        self.backend = backend or open_backend(backend_config)

    async def list_runtimes(self) -> list[Runtime]:
        """Return the runtimes that jobs can be run on; a namespace's own hides the cluster's of the same name.

        One that cannot be read is left out, and does not spoil the others.
        """
        return Listing(await self.backend.list_runtimes(), "runtimes")

    async def get_runtime(self, name: str) -> Runtime:
        """Return a runtime, the namespace's own before the cluster's.

        Raises:
            NotFoundError: neither has it.
        """
        return await self.backend.get_runtime(name)

    async def get_runtime_packages(self, runtime: Runtime) -> None:
        """Print Python's version, the installed packages and the GPUs of a node of this runtime.

        Runs a TrainJob of one node for that, and deletes it.

        Raises:
            InvalidError: the runtime takes no code of yours.
        """
        if runtime.kind is RuntimeKind.UNKNOWN:
            runtime = await self.get_runtime(runtime.name)
        if runtime.trainer.trainer_type is TrainerType.BUILTIN_TRAINER:
            raise InvalidError(f"runtime {runtime.name} runs its own trainer: it has no packages to show")
        from trainplane.client.packages import show_packages  # noqa: PLC0415 rare

        await show_packages(self.backend, runtime)

    async def train(
        self,
        runtime: str | Runtime | None = None,
        initializer: Initializer | None = None,
        trainer: Trainer | None = None,
        options: Sequence[Callable[..., None]] | None = None,
        *,
        output: Output | None = None,
    ) -> str:
        """Submit a TrainJob and return its name: one request.

        Args:
            runtime: A runtime or its name; `torch-distributed` if you do not say.
            initializer: What is fetched before training starts.
            trainer: A function, script, image or torchtune's settings; None runs what the runtime has.
            options: From `trainplane.options`: name, labels, queue, patches, ...
            output: Where what is trained goes; a TrainJob without it keeps what its volumes keep.

        Raises:
            InvalidError: an argument cannot mean anything, or the code cannot be shipped.
            RefusedError: the cluster refused the TrainJob, with its reasons.
        """
        from trainplane.client.submission import compose, draw_name  # noqa: PLC0415 packaging code is much to import

        runtime = runtime or default_runtime()
        document = compose(
            runtime,
            initializer,
            trainer,
            options or (),
            output=output,
            backend=self.backend.kind,
            name=lambda: draw_name(runtime, trainer),
        )
        return await self.backend.submit(document)

    async def submit_job(
        self, document: Mapping[str, Any], options: Sequence[Callable[..., None]] | None = None
    ) -> str:
        """Submit a TrainJob that is written already, as from a YAML file, and return its name.

        Args:
            document: apiVersion, kind, metadata and spec; it is not changed. Without a name, one is drawn.
            options: From `trainplane.options`; they come last and so have the last word.

        Raises:
            InvalidError: it is no TrainJob.
            RefusedError: the cluster refused it, with its reasons.
        """
        from trainplane.client.submission import complete  # noqa: PLC0415 packaging code is much to import

        return await self.backend.submit(complete(document, options or (), backend=self.backend.kind))

    async def list_jobs(self, runtime: str | Runtime | None = None) -> list[TrainJob]:
        """Return the TrainJobs, oldest first, or those of a runtime: two requests, however many there are."""
        name = runtime.name if isinstance(runtime, Runtime) else runtime
        return Listing(await self.backend.list_jobs(name), "TrainJobs")

    async def get_job(self, name: str) -> TrainJob:
        """Return a TrainJob as it is now.

        Raises:
            NotFoundError: there is none of that name.
        """
        return await self.backend.get_job(name)

    async def get_job_document(self, name: str) -> dict[str, Any]:
        """Return a TrainJob as its API server has it: metadata, spec and status.

        Raises:
            NotFoundError: there is none of that name.
        """
        return await self.backend.get_document(name)

    async def get_job_logs(
        self, name: str, step: str = "node-0", follow: bool | None = False
    ) -> AsyncGenerator[str, None]:
        """Iterate over the lines that a step printed.

        Args:
            name: The TrainJob.
            step: Such as `node-0` or `dataset-initializer`; `all` merges every step in the order of time, each line
                with its step in front.
            follow: Go on until the job has finished; a pod that is not there yet is waited for.

        Raises:
            NotFoundError: there is no such TrainJob or step.
        """
        stream = self.stream_job_logs(name, None if step == ALL_STEPS else [step], follow=bool(follow))
        async with aclosing(stream) as lines:
            async for line in lines:
                yield str(line) if step == ALL_STEPS else line.text

    async def stream_job_logs(
        self,
        name: str,
        steps: Sequence[str] | None = None,
        *,
        follow: bool = True,
        tail: int | None = None,
        since: datetime | None = None,
        previous: bool = False,
    ) -> AsyncGenerator[LogLine, None]:
        """Iterate over what the steps printed, merged in the order of time.

        Args:
            name: The TrainJob.
            steps: Which; all if you do not say.
            follow: Go on until the job has finished, through restarts and new pods. A line waits for steps that may
                still bring an earlier one, at most 3 s for one that prints and 15 s for one that is being connected
                again: only what comes later than that is out of order.
            tail: Begin with the last so many lines of each step.
            since: Leave out what was printed before; a time with its zone.
            previous: Of each step the run before the present one, where it was started again; with `follow=False`.

        Raises:
            NotFoundError: there is no such TrainJob or step.
            InvalidError: `since` has no zone, or what is over is to be followed.
        """
        if since is not None and since.tzinfo is None:
            raise InvalidError(f"since needs a time zone, as in datetime.now(UTC), and is {since.isoformat()}")
        if previous and follow:
            raise InvalidError("previous reads a run that is over: say follow=False with it")
        line = None
        stream = self.backend.read_logs(name, steps, follow=follow, tail=tail, since=since, previous=previous)
        async with aclosing(stream) as lines:
            async for line in lines:
                yield line
        if line is None and not (follow or since or previous) and tail != 0:
            from trainplane.client.waiting import say_why_silent  # noqa: PLC0415 asyncio

            await say_why_silent(self.backend, name)

    async def get_job_events(self, name: str) -> list[Event]:
        """Return what happened to a TrainJob and to what it is made of, in the order of time."""
        return Listing(await self.backend.list_events(name), "events")

    async def wait_for_job_status(
        self,
        name: str,
        status: Collection[str] = frozenset({COMPLETE}),
        timeout: float = 600,  # noqa: ASYNC109 the name that the kubeflow SDK gave it
        polling_interval: float = 2,
        callbacks: Sequence[Callable[[TrainJob], None]] | None = None,
        *,
        give_up_after: float | None = 120,
    ) -> TrainJob:
        """Return the TrainJob as soon as it has one of the statuses, or has had it.

        A status that it passed on the way counts, so that a short job is not missed: one that is Complete was Running.
        Look at the status of what is returned.

        Args:
            name: The TrainJob.
            status: Of Created, Suspended, Running, Complete, Failed.
            timeout: Seconds.
            polling_interval: Accepted for code that was written for polling; a watch tells the moment.
            callbacks: Called with the TrainJob at first and after each change.
            give_up_after: Seconds for which the job may wait for what will not come by itself: an image that its
                registry has not got or whose name is none, a missing Secret or ConfigMap. None waits to the timeout.

        Raises:
            JobFailedError: it failed, and you did not ask for that: with the first step that failed and its last lines.
            JobTimeoutError: it is still somewhere else; the message says where.
            JobStuckError: it waits for what will not come by itself; the message says what, and what to do.
            JobDeletedError: it was deleted meanwhile.
        """
        from trainplane.client.waiting import wait  # noqa: PLC0415 asyncio

        if polling_interval <= 0 or polling_interval > timeout:
            raise InvalidError(f"polling_interval must be more than 0 and at most timeout, and is {polling_interval:g}")
        if give_up_after is not None and give_up_after < 0:
            raise InvalidError(f"give_up_after must be 0 or more seconds, or None, and is {give_up_after:g}")
        return await wait(self.backend, name, status, timeout, callbacks or (), stuck_seconds=give_up_after)

    async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        """Iterate over the TrainJob as it is, then after each change, until it has finished or is deleted."""
        async with aclosing(self.backend.watch_job(name)) as changes:
            async for job in changes:
                yield job
                if job.status in FINISHED:
                    return

    async def follow_job(self, name: str) -> AsyncGenerator[TrainJob | LogLine | TrainplaneError, None]:
        """Iterate over all that is new of a TrainJob until it has finished or is deleted: changes and lines.

        A line is of any step; the last change comes behind the last line. Where lines cannot be read, the error that
        says why comes in their place, once, and the changes go on.

        Raises:
            NotFoundError: there is none of that name.
        """
        from trainplane.client.following import follow  # noqa: PLC0415 asyncio

        async with aclosing(follow(self.backend, name)) as news:
            async for one in news:
                yield one

    async def observe_job(self, name: str) -> AsyncGenerator[Observation, None]:
        """Iterate over all that is seen of a TrainJob, after each change of any part, until it is over or deleted.

        Beside what `watch_job` tells: points of its metrics over time, the last line of steps, why it waits or stands.
        A part that cannot be read is named in `unread`, and the others go on.

        Raises:
            NotFoundError: there is none of that name.
        """
        from trainplane.client.observing import observe  # noqa: PLC0415 asyncio

        async with aclosing(observe(self.backend, name)) as observations:
            async for observation in observations:
                yield observation

    async def explain_queue(self, name: str) -> QueueAnswer | None:
        """Return why a TrainJob is queued and what would let it start; None where nobody can say.

        The hub's queue API answers; `describe_job` has it too, of a job that is held.
        """
        from trainplane.client.reading.queues import read_answer  # noqa: PLC0415 rare

        told = await self.backend.explain_queue(name)
        return read_answer(told) if told else None

    async def describe_job(self, name: str) -> Description:
        """Return all that can be told of a TrainJob: state, steps, why, queue, events. `print` it."""
        from trainplane.client.together import together  # noqa: PLC0415 asyncio

        job, events = await together(self.backend.get_job(name), self.backend.list_events(name))
        return Description(job, events, await self.explain_queue(name) if job.status == SUSPENDED else None)

    async def explain_job(self, name: str) -> Explanation:
        """Return what is the matter with a TrainJob: the first fault, its evidence, what to do. `print` it.

        Looks at everything: the TrainJob and all that it is made of, events, the last lines of all steps.

        Raises:
            NotFoundError: there is none of that name.
        """
        from datetime import UTC, datetime  # noqa: PLC0415 rare

        from trainplane.explain.explain import explain  # noqa: PLC0415 rare

        return explain(await self.backend.collect(name), datetime.now(UTC))

    async def get_overview(self, *, whole: bool = True) -> Overview:
        """Return the cluster or hub at a glance: jobs by phase, queues with their quota, workers, devices.

        What you may not read is named in `unread`, and the rest is there.

        Args:
            whole: Count TrainJobs of all namespaces; of one's own where that is not allowed.

        Raises:
            UnsupportedError: jobs run on this machine.
        """
        return await self.backend.survey(whole=whole)

    async def suspend_job(self, name: str) -> None:
        """Hold a TrainJob: its pods end, its place and its history stay. `resume_job` starts it again.

        Raises:
            UnsupportedError: Kueue has it: its queue decides.
            RefusedError: it is over.
        """
        from trainplane.client.holding import refuse_held  # noqa: PLC0415 rare

        await refuse_held(self.backend, name, "suspended")
        await self.backend.patch_job(name, {"spec": {"suspend": True}})

    async def resume_job(self, name: str) -> None:
        """Let a suspended TrainJob go on.

        Raises:
            UnsupportedError: Kueue has it: it starts when there is quota.
            RefusedError: it is over.
        """
        from trainplane.client.holding import refuse_held  # noqa: PLC0415 rare

        await refuse_held(self.backend, name, "resumed")
        await self.backend.patch_job(name, {"spec": {"suspend": False}})

    async def scale_job(self, name: str, num_nodes: int) -> None:
        """Let a TrainJob go on with another number of nodes: it starts again, from its last checkpoint if it has one.

        The API keeps `spec.trainer` as it was created, so on a cluster the TrainJob is deleted and created again under
        its name: the pods' logs so far go with it. A local job keeps them. One that has that number of nodes already is
        left alone.

        Raises:
            InvalidError: the number is less than one.
            RefusedError: it is over, or the cluster does not take it, with its reason; the TrainJob is then as it was.
        """
        if num_nodes < 1:
            raise InvalidError(f"num_nodes must be 1 or more, and is {num_nodes}")
        await self.backend.scale_job(name, num_nodes)

    async def retry_job(self, name: str, new_name: str | None = None, *, replace: bool = False) -> str:
        """Train again what is over, as it was submitted, and return the name of the new TrainJob.

        A TrainJob that is over never runs again: this is another one, on the runtime as it is now. It goes on from its
        last checkpoint if its training finds one.

        Args:
            name: The TrainJob.
            new_name: What the new one is called; `fit-2`, `fit-3`, ... after `fit` if you do not say.
            replace: Delete the TrainJob, with its logs, and submit it again under its own name.

        Raises:
            NotFoundError: there is none of that name.
            RefusedError: it is not over, or the cluster does not take it again; then nothing was deleted.
        """
        if replace:
            if new_name not in {None, name}:
                raise InvalidError(f"new_name is {new_name!r}, and with replace the name stays {name}: leave one out")
            await self.backend.restart_job(name)
            return name
        from trainplane.client.retrying import next_try  # noqa: PLC0415 rare

        return await self.backend.submit(await next_try(self.backend, name, new_name))

    async def render_job(self, job: str | Mapping[str, Any], runtime: Mapping[str, Any] | None = None) -> RenderedJob:
        """Return what a TrainJob becomes, with where each field of that comes from. Nothing is written.

        Args:
            job: The name of one that exists, or a document that may be submitted.
            runtime: The document of a runtime in place of the one that the TrainJob names.

        Raises:
            NotFoundError: there is no such TrainJob or runtime.
            RefusedError: a cluster would refuse it; the message has all reasons.
        """
        from trainplane.client.rehearsing import rehearse  # noqa: PLC0415 the renderer

        return await rehearse(self.backend, job, runtime)

    async def compare_job(self, document: Mapping[str, Any]) -> Comparison:
        """Return what a document would change of the TrainJob of its name, and of what is made of it.

        Nothing is written. Fields that the document does not name stay as they are.

        Raises:
            RefusedError: a cluster would refuse the document whatever is there.
        """
        from trainplane.client.rehearsing import compare_with_stored  # noqa: PLC0415 the renderer

        return await compare_with_stored(self.backend, document)

    async def download_output(
        self, name: str, folder: str | os.PathLike[str], env: Mapping[str, str] | None = None, *, path: str = ""
    ) -> Path:
        """Bring the output of a TrainJob to a folder, compare it with what was sent, and return where it lies.

        What is there already is not fetched again. Nothing is written outside the folder.

        Args:
            name: The TrainJob.
            folder: Where to; made if it is not there.
            env: Credentials and settings for the store, under the names of a Secret's keys; what is not here is taken
                from the environment.
            path: A file or a folder of the output, to bring no more than that.

        Raises:
            InvalidError: it has no output.
            RefusedError: its output is not there yet, or could not be sent.
            TrainplaneError: it cannot be fetched, or is not what was sent. Needs `trainplane[initializers]`.
        """
        from pathlib import Path  # noqa: PLC0415 rare

        from trainplane.client.downloads import Download, choose  # noqa: PLC0415 rare

        output = choose(name, (await self.backend.get_job(name)).outputs)
        return await Download(output, Path(folder), env or {}, path.strip("/")).run()

    async def delete_job(self, name: str) -> None:
        """Delete a TrainJob with its pods and logs.

        Raises:
            NotFoundError: there is none of that name.
        """
        await self.backend.delete_job(name)

    async def close(self) -> None:
        """Close connections. Jobs go on."""
        await self.backend.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
