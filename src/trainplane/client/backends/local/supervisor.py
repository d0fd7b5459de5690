"""The supervisor of one local job: operator, JobSet, Job controller and kubelet in one process.

It is started by the client, outlives it, and ends when the job is over or deleted. It reads what is wanted from the
job's folder and writes there what is (`folder`); `jobset_policy` decides what to do next, and pods run in `podrun`.

    read      the TrainJob: to be deleted? other words in its spec? suspended?
    decide    start pods, begin anew, or the job is over
    write     the status, and the news that it brings
    wait      for a byte in the pipe, a pod that changed, or the deadline
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets as random
import signal
import socket
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.trainjob import TrainJob, TrainJobStatus
from trainplane.client.backends.local import events, jobset_policy
from trainplane.client.backends.local.logs import LogWriter
from trainplane.client.backends.local.moments import now, stamp
from trainplane.client.backends.local.podrun import PodContext, PodRun
from trainplane.client.backends.local.pods import pod_at
from trainplane.client.backends.local.rendering import render
from trainplane.client.backends.local.runner import Timing
from trainplane.client.backends.local.values import Sources
from trainplane.client.backends.local.witness import Witness
from trainplane.explain.places import is_training, name_places
from trainplane.lifecycle import deadline
from trainplane.lifecycle.events import EventContent, created, of_change
from trainplane.lifecycle.status import JobSetStatus, observe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.api.meta import Condition
    from trainplane.api.podindex import PodIndex
    from trainplane.api.trainjob import JobStatus
    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.folder import JobFolder
    from trainplane.client.backends.local.pods import LocalJobSet
    from trainplane.client.backends.local.rendering import Rendered
    from trainplane.client.backends.local.runner import Runner

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Of which names of pods end in five: Kubernetes' own, which make no words."""


def name_steps(plan: LocalJobSet, job: Tree) -> dict[PodIndex, str]:
    """Return what each place of a plan is called."""
    pods = [pod_at(plan, place, suffix="", attempt=0, now="", address="", machine="") for place in plan.places]
    called = name_places(pods, job)
    return {place: called[place] for place in plan.places}


class Supervisor:
    """Runs one job."""

    def __init__(
        self,
        folder: JobFolder,
        runner: Runner,
        secrets: Mapping[str, Mapping[str, str]],
        timing: Timing | None = None,
    ) -> None:
        """Take over a job whose folder is made and that nobody else runs."""
        self.folder = folder
        self.runner = runner
        self._secrets = secrets
        self._timing = timing or Timing()
        self._job: Tree = {}
        self._status = document.view(folder.read("status") or {}, TrainJobStatus)
        self._runs: dict[PodIndex, PodRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failures: Counter[tuple[str, int]] = Counter()
        self._restarts = 0
        self._counted = 0
        self._records: Tree = {}
        self._news = 0
        self._changed = asyncio.Event()
        self._told_to_stop = False
        self._witness = Witness(folder.log)

    async def run(self) -> None:
        """Run the job until it is over or deleted."""
        self._log = LogWriter(self.folder.log)
        pipe = os.open(self.folder.wake, os.O_RDWR | os.O_NONBLOCK)
        loop = asyncio.get_running_loop()
        loop.add_reader(pipe, self._heard, pipe)
        loop.add_signal_handler(signal.SIGTERM, self._stop_soon)
        try:
            self._job = self._read_job()
            self._render()
            while not await self._step():
                await self._wait()
        finally:
            loop.remove_reader(pipe)
            os.close(pipe)
            self._log.close()

    # -- one round

    async def _step(self) -> bool:
        """Do what there is to do now; return whether the job is done with."""
        self._changed.clear()
        job = self._read_job()
        if trees.get(job, "metadata", "deletionTimestamp"):
            await self._delete()
            return True
        if job["spec"] != self._job["spec"]:
            if {**job["spec"], "suspend": None} != {**self._job["spec"], "suspend": None}:
                await self._stop_pods(list(self._runs), drop=True)
                self._failures.clear()
            self._job = job
            self._render()
        if trees.get(job, "spec", "suspend"):
            await self._stop_pods(list(self._runs), drop=True)
            self._failures.clear()
            self._write(self._jobs_status())
            return False
        return await self._go_on()

    async def _go_on(self) -> bool:
        end = self._end_from_outside()
        decision = jobset_policy.Decision(condition=end) if end else self._decide()
        if decision.restart:
            await self._begin_anew(counts=decision.counts)
            return False
        if decision.condition:
            await self._finish(decision.condition)
            return True
        if decision.start and not self._runs:
            await self.runner.prepare(self._plan)
        for place in decision.start:
            self._start(place)
        self._write(self._jobs_status())
        return False

    def _end_from_outside(self) -> Condition | None:
        if self._told_to_stop:
            message = "the job's supervisor was told to stop (SIGTERM), and stopped its pods"
            return jobset_policy.failed_by(jobset_policy.SUPERVISOR_ENDED, message)
        left = self._seconds_left()
        if left is None or left > 0:
            return None
        return jobset_policy.failed_by(names.REASON_DEADLINE_EXCEEDED, deadline.message(self._train_job()))

    def _seconds_left(self) -> float | None:
        return deadline.seconds_left(self._train_job(), self._status.conditions, now())

    def _train_job(self) -> TrainJob:
        """Return the TrainJob as it is wanted, with the status that it has."""
        return msgspec.structs.replace(document.view(self._job, TrainJob), status=self._status)

    def _decide(self) -> jobset_policy.Decision:
        return jobset_policy.decide(self._plan, self._states(), self._failures, self._counted)

    def _states(self) -> list[jobset_policy.PodState]:
        return [jobset_policy.PodState(place, run.phase, run.is_ready) for place, run in self._runs.items()]

    def _jobs_status(self) -> list[JobStatus]:
        states, suspended = self._states(), bool(trees.get(self._job, "spec", "suspend"))
        standings = (jobset_policy.Standing.of(job, states, self._failures) for job in self._plan.jobs)
        return [standing.status(suspended=suspended) for standing in standings]

    async def _wait(self) -> None:
        """Wait until there may be something to do."""
        left = self._seconds_left()
        seconds = None if left is None else max(0.0, left)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    # -- what is wanted

    def _read_job(self) -> Tree:
        return self.folder.read("trainjob") or {"metadata": {"deletionTimestamp": stamp(now())}}

    def _render(self) -> None:
        """Make the plan of the TrainJob as it is now."""
        runtime = self.folder.read("runtime") or {}
        kept = (self.folder.read("objects") or {}).get("items") or []
        rendered: Rendered = render(self._job, runtime)
        first = not hasattr(self, "_plan")
        self._plan = rendered.plan
        self._sources = Sources.of([*rendered.objects, *kept], self._secrets)
        self._steps = name_steps(self._plan, self._job)
        self.folder.write("steps", {"items": list(self._steps.values())})
        if first:
            suspended = bool(trees.get(self._job, "spec", "suspend"))
            self._record_event(created(self._plan.name, len(self._steps), suspended=suspended))
            warnings = (self.folder.read("warnings") or {}).get("items") or []
            warned = (EventContent("Warning", "Warning", text) for text in warnings)
            for told in (*warned, *rendered.ignored, *self.runner.judge(self._plan)):
                self._record_event(told)

    # -- pods

    def _start(self, place: PodIndex) -> None:
        suffix = "".join(random.choice(SUFFIX_LETTERS) for _ in range(5))
        pod = pod_at(
            self._plan,
            place,
            suffix=suffix,
            attempt=self._restarts,
            now=stamp(now()),
            address=self.runner.address(place),
            machine=socket.gethostname(),
        )
        run = PodRun(pod, place, self._steps[place], self._around())
        self._runs[place] = run
        self._record_event(EventContent("Normal", "Scheduled", f"assigned to {socket.gethostname()}"), pod)
        self._tasks[run.name] = asyncio.ensure_future(run.run())
        self._tasks[run.name].add_done_callback(lambda _: self._changed.set())

    def _around(self) -> PodContext:
        return PodContext(
            self.folder,
            self._plan,
            self.runner,
            self._sources,
            self._log,
            self._timing,
            save=self._save,
            tell=self._record_event,
            may_retry=self._may_retry,
            record=self._record,
        )

    def _save(self, pod: Tree) -> None:
        self.folder.write(f"pods/{pod['metadata']['name']}", pod)
        self.folder.touch()
        self._changed.set()

    def _may_retry(self, place: PodIndex, code: int | None) -> bool:
        """Count a failure of a Job; return whether it may go on, after a container that ended with a code, if any."""
        job, mine = self._plan.job(place.replicated_job), (place.replicated_job, place.job_index)
        is_final = code is not None and job.is_final(code)
        self._failures[mine] += job.retries + 1 if is_final else 1
        return self._failures[mine] <= job.retries

    def _record(self, identity: str, record: Tree | None) -> None:
        if record is None:
            self._records.pop(identity, None)
        else:
            self._records[identity] = record
        self.folder.write("records", self._records)

    async def _stop_pods(self, places: Sequence[PodIndex], *, drop: bool) -> None:
        """End pods, and wait for that; `drop` removes them, as a cluster does with pods of a Job that is stopped."""
        runs = [self._runs[place] for place in places if place in self._runs]
        await asyncio.gather(*(run.stop() for run in runs))
        await asyncio.gather(*(self._tasks.pop(run.name) for run in runs if run.name in self._tasks))
        for run in runs if drop else ():
            del self._runs[run.place]
            self.folder.drop_pod(run.name)
        if runs:
            self.folder.touch()

    async def _begin_anew(self, *, counts: bool) -> None:
        self._status = self._testified(self._status)
        self._restarts += 1
        self._counted += counts
        self._record_event(events.restarted(self._restarts))
        await self._stop_pods(list(self._runs), drop=True)
        self._failures.clear()
        self._changed.set()

    # -- the end

    async def _finish(self, end: Condition) -> None:
        """Write that the job is over, then end what still runs: success of some may be the success of all."""
        self._write(self._jobs_status(), end)
        active = [place for place, run in self._runs.items() if run.phase in {"Pending", "Running"}]
        drop = end.type == names.JOBSET_COMPLETED or end.reason == names.REASON_DEADLINE_EXCEEDED
        await self._stop_pods(active, drop=drop)
        self._write(self._jobs_status())
        await self.runner.clean()

    async def _delete(self) -> None:
        await self._stop_pods(list(self._runs), drop=True)
        await self.runner.clean()
        self.folder.remove()

    def _write(self, jobs: list[JobStatus], end: Condition | None = None) -> None:
        """Write the status if it changed, and tell what that means."""
        jobset = JobSetStatus(conditions=[end] if end else None, replicated_jobs_status=jobs)
        after = self._testified(observe(self._train_job(), jobset, now()))
        if after == self._status:
            return
        for told in of_change(self._status, after):
            self._record_event(told)
        self._status = after
        self.folder.write("status", document.to_tree(after))
        self.folder.touch()

    def _testified(self, status: TrainJobStatus) -> TrainJobStatus:
        """Return a status with what the pods of the present attempt add to it."""
        pods = {self._steps[place]: run.pod for place, run in self._runs.items()}
        wanted = sum(map(is_training, self._steps))
        return self._witness.testify(self._train_job(), status, pods, wanted, now())

    def _record_event(self, told: EventContent, about: Tree | None = None) -> None:
        self._news += 1
        self.folder.append_event(events.event(told, about or self._job, self._news, now()))

    # -- what comes from outside

    def _heard(self, pipe: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(pipe, 4096)
        self._changed.set()

    def _stop_soon(self) -> None:
        self._told_to_stop = True
        self._changed.set()
