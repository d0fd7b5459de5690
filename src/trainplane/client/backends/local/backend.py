"""What the two local backends have in common: everything but how a container is started and ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.client.anew import refuse_unfinished, retried
from trainplane.client.backends.local import orphans, runtimes, values, volumes
from trainplane.client.backends.local.admission import admit
from trainplane.client.backends.local.folder import JobFolder
from trainplane.client.backends.local.keys import make_kept
from trainplane.client.backends.local.launching import launch
from trainplane.client.backends.local.logs import LogReader
from trainplane.client.backends.local.moments import now, stamp
from trainplane.client.backends.local.pods import pod_at
from trainplane.client.backends.local.rendering import render
from trainplane.client.backends.local.supervisor import name_steps
from trainplane.client.errors import InvalidError, NotFoundError, RefusedError, TrainplaneError, UnsupportedError
from trainplane.client.reading.events import read_events
from trainplane.client.reading.jobs import count_nodes, read_job
from trainplane.client.reading.runtimes import read_runtime
from trainplane.client.reading.timeline import read_timeline
from trainplane.client.types.jobs import FAILED
from trainplane.explain.facts import Facts, Line
from trainplane.explain.logs import SEARCHED_LINES
from trainplane.lifecycle.conditions import conditions_of, is_finished

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from trainplane.api.tree import Tree
    from trainplane.client.backends.backend import BackendKind
    from trainplane.client.backends.local.rendering import Rendered
    from trainplane.client.backends.local.runner import Runner
    from trainplane.client.types.backends import TrainingRuntimeSource
    from trainplane.client.types.jobs import Event, LogLine, TrainJob
    from trainplane.client.types.overview import Overview
    from trainplane.client.types.runtimes import Runtime

LOOK_SECONDS: Final = 0.1
"""Between two looks at a job's folder, while somebody watches it."""


class LocalBackend:
    """Jobs of this machine. Each has a supervisor, so they go on without this process, and another finds them."""

    kind: BackendKind

    def __init__(self, state: Path, sources: TrainingRuntimeSource, secrets: Mapping[str, Mapping[str, str]]) -> None:
        """Keep jobs below `state`."""
        self._jobs = state / self.kind / "jobs"
        self._sources = sources
        self._secrets = secrets

    # -- what a backend of a kind brings

    def _settings(self, uid: str) -> Tree:
        """Return what the runner of a job must know."""
        raise NotImplementedError

    def _runner(self, folder: JobFolder) -> Runner:
        """Return the runner of a job."""
        raise NotImplementedError

    def _adapt(self, runtime: Tree) -> Tree:
        """Return a runtime as this backend uses it."""
        return runtime

    # -- runtimes

    async def list_runtimes(self) -> list[Runtime]:
        """Return the runtimes that local jobs can be run on."""
        found = await asyncio.to_thread(runtimes.load_all, self._sources.sources)
        listed = []
        for _, document in sorted(found.items()):
            with contextlib.suppress(InvalidError):
                listed.append(read_runtime(document))
        return listed

    async def get_runtime(self, name: str) -> Runtime:
        """Return a runtime; raises NotFoundError."""
        return read_runtime(await asyncio.to_thread(runtimes.load, name, self._sources.sources))

    async def runtime_document(self, job: Tree) -> Tree:
        """Return the runtime that a TrainJob's document names; raises NotFoundError."""
        return self._adapt(await asyncio.to_thread(self._load_runtime, job))

    def _load_runtime(self, job: Tree) -> Tree:
        return runtimes.load(trees.get(job, "spec", "runtimeRef", "name") or "", self._sources.sources)

    # -- making and changing

    async def submit(self, job: Tree) -> str:
        """Start a TrainJob and return its name.

        Raises:
            NotFoundError: there is no such runtime.
            RefusedError: a cluster would refuse it too, or there is one of that name.
            InvalidError: it asks for what cannot be had here.
        """
        return await asyncio.to_thread(self._submit, job)

    def _submit(self, job: Tree) -> str:
        name = job["metadata"]["name"]
        runtime = self._adapt(self._load_runtime(job))
        uid = str(uuid.uuid4())
        job = {**job, "metadata": {**job["metadata"], "uid": uid, "creationTimestamp": stamp(now())}}
        job.pop("status", None)
        admitted = admit(job, runtime)
        job = admitted.tree
        rendered = render(job, runtime)
        kept = [make_kept(entry) for entry in rendered.kept]
        self._rehearse(rendered, kept)
        settings = {"kind": self.kind, "uid": uid, **self._settings(uid)}
        documents = {
            "trainjob": job,
            "runtime": runtime,
            "settings": settings,
            "objects": {"items": kept},
            "steps": {"items": list(name_steps(rendered.plan, job).values())},
            "warnings": {"items": list(admitted.warnings)},
        }
        path = self._jobs / name
        try:
            folder, lock = JobFolder.create(path, documents)
        except FileExistsError as error:
            raise RefusedError(
                f"there is a TrainJob {name} already: delete it first, or choose another name"
            ) from error
        except PermissionError as error:
            raise InvalidError(
                f"state: {self._jobs} is not yours alone, or cannot be written, and jobs keep their secrets there: "
                f"take it from others (chmod go-w), or give another folder"
            ) from error
        try:
            self._runner(folder).judge(rendered.plan)
            launch(folder, lock, self._wanted_secrets(rendered))
        except TrainplaneError:
            folder.remove()
            raise
        finally:
            os.close(lock)
        return str(name)

    def _rehearse(self, rendered: Rendered, kept: Sequence[Tree]) -> None:
        """Look up what all pods refer to, so that what is missing is said now and not in a pod."""
        sources = values.Sources.of([*rendered.objects, *kept], self._secrets)
        for job in rendered.plan.jobs:
            place = next(job.places, None)
            if place is None:
                continue
            pod = pod_at(rendered.plan, place, suffix="", attempt=0, now="", address="", machine="")
            there = volumes.volumes_of(pod, self._jobs, rendered.plan.claims, sources)
            spec = job.template.get("spec") or {}
            for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
                where = f"job {job.name}, container {container['name']}"
                values.variables(container, pod, sources, where)
                volumes.mounts_of(container, there, where)

    def _wanted_secrets(self, rendered: Rendered) -> dict[str, Mapping[str, str]]:
        """Return those secrets that the pods may refer to: no others leave this process."""
        told = str([job.template for job in rendered.plan.jobs])
        return {name: data for name, data in self._secrets.items() if repr(name) in told}

    async def patch_job(self, name: str, patch: Tree) -> None:
        """Merge-patch a TrainJob: suspend, resume."""

        def judge(job: Tree, changed: Tree, runtime: Tree) -> Tree:
            return admit(changed, runtime, stored=job).tree

        await asyncio.to_thread(self._change, self._folder(name), patch, judge)

    async def scale_job(self, name: str, num_nodes: int) -> None:
        """Let a TrainJob go on with another number of nodes: all pods begin anew, unless it has that number."""

        def judge(job: Tree, changed: Tree, runtime: Tree) -> Tree:
            if is_finished(conditions_of(job)):
                raise RefusedError(
                    f"TrainJob {name} is over and cannot be scaled: submit it again with {num_nodes} nodes"
                )
            if count_nodes(job, (), read_runtime(runtime)) == num_nodes:
                return job
            return admit(changed, runtime).tree  # a cluster creates it anew

        patch = {"spec": {"trainer": {"numNodes": num_nodes}}}
        await asyncio.to_thread(self._change, self._folder(name), patch, judge)

    def _change(self, folder: JobFolder, patch: Tree, judge: Callable[[Tree, Tree, Tree], Tree]) -> None:
        with folder.locked():
            job = self._document(folder, bury=False)
            if job is None:
                raise NotFoundError(f"there is no TrainJob {folder.name}")
            runtime = folder.read("runtime") or {}
            changed = trees.merge(job, patch)
            changed.pop("status", None)
            changed = judge(job, changed, runtime)
            rendered = render(changed, runtime)
            self._rehearse(rendered, (folder.read("objects") or {}).get("items") or [])
            self._runner(folder).judge(rendered.plan)
            if changed["spec"] != job["spec"]:
                folder.write("trainjob", changed)
        folder.ring()

    async def restart_job(self, name: str) -> None:
        """Delete a TrainJob that is over and start it again under its name; its logs so far go with it."""
        job = await self.get_document(name)
        refuse_unfinished(job)
        again = retried(job, name)
        admit(again, await self.runtime_document(again))
        await self.delete_job(name)
        await self.submit(again)

    async def delete_job(self, name: str) -> None:
        """Delete a TrainJob with its processes, containers, files and logs; returns when they are gone."""
        folder = self._folder(name)
        with folder.locked():
            job = folder.read("trainjob")
            if job is None:
                raise NotFoundError(f"there is no TrainJob {name}")
            folder.write("trainjob", trees.put(job, "metadata", "deletionTimestamp", value=stamp(now())))
        with folder.watched() as is_supervised:
            folder.ring()
            while is_supervised():  # noqa: ASYNC110 it is another process that ends
                await asyncio.sleep(LOOK_SECONDS)
        if folder.exists():
            await asyncio.to_thread(orphans.end, folder, self._runner(folder))
            folder.remove()

    # -- reading

    async def list_jobs(self, runtime: str | None = None) -> list[TrainJob]:
        """Return the TrainJobs, oldest first, or those of a runtime."""
        read = [self._read(folder) for folder in JobFolder.all_in(self._jobs)]
        jobs = [job for job in read if job and runtime in {None, job.runtime.name}]
        return sorted(jobs, key=lambda job: job.creation_timestamp)

    async def get_job(self, name: str) -> TrainJob:
        """Return a TrainJob; raises NotFoundError."""
        folder = self._folder(name)
        job = self._read(folder)
        if job is not None and job.status == FAILED:
            job = self._read(folder, await asyncio.to_thread(_last_lines, folder))
        if job is None:
            raise NotFoundError(f"there is no TrainJob {name}")
        document = folder.read_job()
        job.timeline = () if document is None else read_timeline(Facts(document, folder.read_pods()))
        return job

    async def get_document(self, name: str) -> Tree:
        """Return the TrainJob's document."""
        job = self._document(self._folder(name))
        if job is None:
            raise NotFoundError(f"there is no TrainJob {name}")
        return job

    async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        """Yield the TrainJob as it is, then after each change, for as long as it exists."""
        folder, seen = self._folder(name), None
        while True:
            version = (*folder.version(), folder.is_supervised())
            if version != seen:
                seen = version
                job = self._read(folder)
                if job is None:
                    return
                yield job
            else:
                await asyncio.sleep(LOOK_SECONDS)

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
        """Yield what steps printed, in the order of time; see `Backend.read_logs`."""
        if previous:
            raise UnsupportedError("the log of a local job goes through its restarts: leave `previous` out")
        folder = self._folder(name)
        known = (folder.read("steps") or {}).get("items") or []
        for step in steps or ():
            if step not in known:
                raise NotFoundError(f"TrainJob {name} has no step {step!r}; it has {', '.join(known)}")
        reader = LogReader(folder.log, steps, since)
        try:
            for line in reader.read_last(tail) if tail is not None else ():
                yield line
            while True:
                over = not follow or not self._goes_on(folder)
                for line in reader.read():
                    yield line
                if over:
                    return
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            reader.close()

    async def list_events(self, name: str) -> list[Event]:
        """Return what happened to a TrainJob and its pods, in the order of time."""
        folder = self._folder(name)
        self._read(folder)
        return read_events(folder.read_events())

    async def collect(self, name: str) -> Facts:
        """Return all that is known of a TrainJob, with the last lines of its steps."""
        folder, job = self._folder(name), await self.get_document(name)
        logs = await asyncio.to_thread(_last_lines, folder)
        return Facts(job, folder.read_pods(), folder.read_events(), logs=logs)

    async def explain_queue(self, name: str) -> Tree | None:
        """Return None: nothing is queued here."""
        self._folder(name)
        return None

    async def survey(self, *, whole: bool = True) -> Overview:
        """Refuse: this machine has no queues and no workers."""
        del whole
        raise UnsupportedError("an overview is of a cluster: list_jobs() has the TrainJobs of this machine")

    async def close(self) -> None:
        """Hold nothing. Jobs go on."""

    # -- folders

    def _folder(self, name: str) -> JobFolder:
        folder = JobFolder(self._jobs / name)
        if not name or "/" in name or name.startswith(".") or not folder.exists():
            raise NotFoundError(f"there is no TrainJob {name} on the {self.kind} backend of this machine")
        return folder

    def _read(self, folder: JobFolder, logs: Mapping[str, Sequence[Line]] | None = None) -> TrainJob | None:
        job = self._document(folder)
        if job is None:
            return None
        runtime = folder.read("runtime")
        return read_job(
            job,
            folder.read_pods(),
            runtime=read_runtime(runtime) if runtime else None,
            events=folder.read_events(),
            logs=logs,
        )

    def _document(self, folder: JobFolder, *, bury: bool = True) -> Tree | None:
        """Return the TrainJob; one that runs without a supervisor is found to have failed."""
        supervised = folder.is_supervised()
        job = folder.read_job()
        if job is None or supervised or is_finished(conditions_of(job)) or not bury:
            return job
        if not folder.is_supervised():
            orphans.bury(folder, self._runner(folder))
        return folder.read_job()

    def _goes_on(self, folder: JobFolder) -> bool:
        return self._document(folder) is not None and folder.is_supervised()


def _last_lines(folder: JobFolder) -> dict[str, list[Line]]:
    """Return the end of each step's log."""
    reader = LogReader(folder.log, None)
    told: dict[str, list[Line]] = {}
    try:
        for line in reader.read_last(SEARCHED_LINES):
            told.setdefault(line.step, []).append(Line(line.text, line.time))
    finally:
        reader.close()
    return told
