"""A pod while it runs: init containers one after the other, then all containers, each again if it may be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.client.backends.local import podstatus, values, volumes
from trainplane.client.backends.local.moments import now, stamp
from trainplane.client.backends.local.pods import ON_FAILURE, main_container
from trainplane.client.backends.local.podstatus import CONTAINERS, INIT
from trainplane.client.backends.local.runner import Exit, Launch, Timing, WaitingError
from trainplane.client.errors import TrainplaneError
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.folder import JobFolder
    from trainplane.client.backends.local.logs import LogWriter
    from trainplane.client.backends.local.pods import LocalJob, LocalJobSet
    from trainplane.client.backends.local.runner import Runner, Running
    from trainplane.client.backends.local.values import Sources
    from trainplane.client.backends.local.volumes import Volume

_CHUNK: Final = 1 << 16
_NOT_STARTED: Final = 128
"""The exit code of a container that could not be started: as containerd has it."""


@dataclass(frozen=True)
class PodContext:
    """What a pod is given by its supervisor."""

    folder: JobFolder
    plan: LocalJobSet
    runner: Runner
    sources: Sources
    log: LogWriter
    timing: Timing
    save: Callable[[Tree], None]
    """Write a Pod that changed."""
    tell: Callable[[EventContent, Tree], None]
    """Tell something about a Pod."""
    may_retry: Callable[[PodIndex, int | None], bool]
    """Count the failure of a container, and say whether it may start again."""
    record: Callable[[str, Tree | None], None]
    """Keep, or drop, what is needed to end a container."""


class PodRun:
    """One pod, from its making to its end."""

    def __init__(self, pod: Tree, place: PodIndex, step: str, around: PodContext) -> None:
        """Take the Pod document, which is written into from now on."""
        self.pod = pod
        self.place = place
        self._step = step
        self._around = around
        self._job: LocalJob = around.plan.job(place.replicated_job)
        self._running: dict[str, Running] = {}
        self._stopping = asyncio.Event()
        self._late = False
        self._main = main_container(self._spec)

    @property
    def name(self) -> str:
        """The Pod's name."""
        return str(self.pod["metadata"]["name"])

    @property
    def phase(self) -> str:
        """The Pod's phase."""
        return str(self.pod["status"]["phase"])

    @property
    def is_ready(self) -> bool:
        """Whether all its containers are ready."""
        return podstatus.is_ready(self.pod)

    @property
    def _spec(self) -> Tree:
        spec: Tree = self._job.template.get("spec") or {}
        return spec

    async def run(self) -> None:
        """Run the pod to its end. Never raises: what goes wrong is the pod's status."""
        podstatus.begin(self.pod)
        self._save()
        try:
            there = volumes.volumes_of(
                self.pod, self._around.folder.work, self._around.plan.claims, self._around.sources
            )
            volumes.make(there.values(), self._around.runner.translate)
            succeeded = await self._in_time(self._run_all(there))
        except (TrainplaneError, OSError) as error:
            self._around.tell(EventContent("Warning", "Failed", str(error)), self.pod)
            podstatus.set_phase(self.pod, podstatus.FAILED, stamp(now()), "CreateContainerError", str(error))
            self._around.may_retry(self.place, None)
        else:
            self._conclude(succeeded=succeeded)
        self._save()

    async def _in_time(self, running: Awaitable[bool]) -> bool:
        """Stop the pod if its Job allows it only so much time."""
        task = asyncio.ensure_future(running)
        if self._job.seconds is not None:
            done, _ = await asyncio.wait({task}, timeout=self._job.seconds)
            if not done:
                self._late = True
                await self.stop()
        return await task

    def _conclude(self, *, succeeded: bool) -> None:
        if self._late:
            message = f"it took longer than the {self._job.seconds} s that it may take"
            podstatus.set_phase(self.pod, podstatus.FAILED, stamp(now()), names.REASON_DEADLINE_EXCEEDED, message)
            while self._around.may_retry(self.place, None):
                pass  # a Job that is late has failed, however often its pods might be made again
        else:
            podstatus.set_phase(self.pod, podstatus.SUCCEEDED if succeeded else podstatus.FAILED, stamp(now()))

    async def stop(self) -> None:
        """Let the pod end: its containers are asked to, and ended when they do not."""
        self._stopping.set()
        said = self._spec.get("terminationGracePeriodSeconds")
        grace = self._around.timing.grace if said is None else float(said)
        for identity, running in list(self._running.items()):
            self._around.tell(
                EventContent("Normal", "Killing", f"stopping container {identity.rpartition('.')[2]}"), self.pod
            )
            await running.stop(grace)

    # -- containers

    async def _run_all(self, there: dict[str, Volume]) -> bool:
        beside: list[asyncio.Task[bool]] = []
        for container in self._spec.get("initContainers") or ():
            running = self._run_container(INIT, container, there)
            if container.get("restartPolicy") == "Always":
                beside.append(asyncio.ensure_future(running))
            elif not await running:
                return False
        try:
            entries = self._spec.get("containers") or ()
            results = await asyncio.gather(*(self._run_container(CONTAINERS, entry, there) for entry in entries))
        finally:
            if beside:
                await self.stop()
                await asyncio.gather(*beside)
        return all(results)

    async def _run_container(self, group: str, container: Tree, there: dict[str, Volume]) -> bool:
        """Run a container, again if it fails and may be started again; return whether it ended well."""
        name, delay = container["name"], self._around.timing.restart_delay
        while not self._stopping.is_set():
            exit_ = await self._run_once(group, container, there)
            if exit_ is None or self._stopping.is_set():
                return exit_ is not None and exit_.code == 0
            if exit_.code == 0:
                return True
            may = self._around.may_retry(self.place, exit_.code)
            if not may or self._job.restart_policy != ON_FAILURE:
                return False
            podstatus.set_restarting(self.pod, group, name, delay)
            self._around.tell(EventContent("Warning", "BackOff", f"container {name} failed: it starts again"), self.pod)
            self._save()
            await self._pause(delay)
            delay = min(2 * delay, self._around.timing.longest_delay)
        return False

    async def _run_once(self, group: str, container: Tree, there: dict[str, Volume]) -> Exit | None:
        """Start a container and see it to its end; None if the pod was stopped before it started."""
        name = container["name"]
        identity = f"{self.name}.{name}"
        running = await self._start(group, container, self._launch(identity, container, there))
        if running is None:
            return None
        self._running[identity] = running
        self._around.record(identity, running.record)
        probe = container.get("readinessProbe") if group == CONTAINERS else None
        if group == CONTAINERS:
            self.pod["status"]["phase"] = podstatus.RUNNING
        podstatus.set_running(self.pod, group, name, stamp(now()), ready=not probe)
        self._around.tell(EventContent("Normal", "Started", f"started container {name}"), self.pod)
        self._save()
        watching = asyncio.ensure_future(self._watch_ready(running, name, probe)) if probe else None
        pumping = asyncio.ensure_future(self._pump(running, identity))
        if self._stopping.is_set():
            await running.stop(0)
        exit_ = await running.wait()
        await pumping
        if watching:
            watching.cancel()
        del self._running[identity]
        self._around.record(identity, None)
        podstatus.set_ended(
            self.pod, group, name, stamp(now()), code=exit_.code, reason=exit_.reason, message=exit_.message
        )
        self._save()
        return exit_

    def _launch(self, identity: str, container: Tree, there: dict[str, Volume]) -> Launch:
        place = f"job {self.place.replicated_job}, container {container['name']}"
        found = values.variables(container, self.pod, self._around.sources, place)
        command, args = values.command_line(container, found)
        mounts = volumes.mounts_of(container, there, place)
        first = (self._spec.get("containers") or [container])[0]["name"]
        inside = container in (self._spec.get("containers") or ()) and container["name"] != first
        return Launch(self.pod, self.place, container, identity, command, args, found, mounts, not inside)

    async def _start(self, group: str, container: Tree, launch: Launch) -> Running | None:
        """Start a container, again and again while something is missing; None if the pod was stopped meanwhile."""
        delay, name = self._around.timing.image_delay, container["name"]
        while not self._stopping.is_set():
            try:
                return await self._unless_stopped(self._around.runner.start(launch))
            except WaitingError as error:
                podstatus.set_waiting(self.pod, group, name, error.reason, error.message)
                self._around.tell(EventContent("Warning", "Failed", f"{error.reason}: {error.message}"), self.pod)
                self._save()
                await self._pause(delay)
                delay = min(2 * delay, self._around.timing.longest_delay)
            except TrainplaneError as error:
                podstatus.set_ended(
                    self.pod, group, name, stamp(now()), code=_NOT_STARTED, reason="StartError", message=str(error)
                )
                raise
        return None

    async def _unless_stopped(self, starting: Awaitable[Running]) -> Running | None:
        task, stopping = asyncio.ensure_future(starting), asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return None
        finally:
            stopping.cancel()

    async def _pump(self, running: Running, identity: str) -> None:
        """Write what a container prints; only the lines of the container that trains are the step's."""
        shown = identity == f"{self.name}.{self._main}"
        while data := await running.output.read(_CHUNK):
            if shown:
                self._around.log.write(self._step, identity, data)
        if shown:
            self._around.log.close_stream(self._step, identity)

    async def _watch_ready(self, running: Running, name: str, probe: Tree) -> None:
        await asyncio.sleep(float(probe.get("initialDelaySeconds") or 0))
        period = float(probe.get("periodSeconds") or self._around.timing.probe_period)
        while not await running.is_ready(probe):  # noqa: ASYNC110 it is another process that becomes ready
            await asyncio.sleep(period)
        podstatus.set_ready(self.pod, name, stamp(now()))
        self._save()

    async def _pause(self, seconds: float) -> None:
        """Wait, but not when the pod is to stop."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    def _save(self) -> None:
        self._around.save(self.pod)
