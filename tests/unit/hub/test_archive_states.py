"""The archive under any sequence of what pods and admins can do: after each step bounds hold, and shares do."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.hub.kept import parsed, pod
from tests.unit.hub.kubelet import START, line
from trainplane.hub.errors import FullError, NotKeptError
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.retention import FOLDER, NOTHING, Retention, Usage
from trainplane.hub.logarchive.volume import measure
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from trainplane.hub.logarchive.keptjob import KeptJob

NAMESPACES = ("a", "b", "c")
BOUNDS = [
    Retention(job_bytes=120_000, total_bytes=400_000, job_files=40, total_files=120),
    Retention(job_bytes=1 << 20, total_bytes=200_000),
    Retention(job_files=30, total_files=64),
]
"""Bytes of one job, of all, and files: each is what is met first."""


class Hoarders(RuleBasedStateMachine):
    """Three namespaces, of which any may be greedy."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.printed = 0
        self.numbers = 0

    @initialize(retention=st.sampled_from(BOUNDS))
    def begin(self, retention: Retention) -> None:
        self.retention = retention
        self.archive = Archive(self.folder, retention, self.clock)

    def teardown(self) -> None:
        if hasattr(self, "archive"):
            self.archive.close()
        shutil.rmtree(self.folder)

    # -- what happens ---------------------------------------------------------------------------------------------

    def before(self) -> dict[str, tuple[Usage, int]]:
        """Return what each namespace has, with the bytes of its lines."""
        usages = {name: usage for (name, _), usage in self.archive.namespaces.items()}
        lines = {name: sum(job.size for job in self.archive if job.record.namespace == name) for name in usages}
        return {name: (usages[name], lines[name]) for name in usages}

    def check_shares(self, writer: str, had: dict[str, tuple[Usage, int]]) -> None:
        """See that nobody but who wrote lost anything of a share that they were within."""
        has = self.before()
        share = self.retention.share(len({*had, *has, writer}), self.archive.set_aside.usage)
        for name, (usage, lines) in had.items():
            if name != writer and usage.within(share):
                assert has[name] == (usage, lines), f"{name} had {usage} of a share of {share}"

    @rule(namespace=st.sampled_from(NAMESPACES), pods=st.integers(1, 3))
    def submit(self, namespace: str, pods: int) -> None:
        had = self.before()
        self.numbers += 1
        with contextlib.suppress(FullError):
            job = self.archive.admit(f"job-{self.numbers}", namespace, f"x{self.numbers}", f"ns-{namespace}")
            for index in range(pods):
                self.put(job, index)
        self.check_shares(namespace, had)

    def put(self, job: KeptJob, index: int) -> None:
        self.numbers += 1
        tree = pod(f"pod-{self.numbers:04d}", index=index, created=f"2026-01-01T00:00:00.{self.numbers:06d}Z")
        with contextlib.suppress(FullError, NotKeptError):
            self.archive.put_pod(job, "worker1", parsed(tree))

    def jobs(self) -> list[KeptJob]:
        return list(self.archive)

    @precondition(lambda self: self.jobs())
    @rule(data=st.data(), index=st.integers(0, 2), count=st.integers(1, 12))
    def replace_pods(self, data: st.DataObject, index: int, count: int) -> None:
        """Pods fail and others take their place, over and over."""
        job = data.draw(st.sampled_from(self.jobs()))
        had = self.before()
        for _ in range(count):
            for kept in job.pods.values():
                kept.rest()
            self.put(job, index)
        self.check_shares(job.record.namespace, had)

    @precondition(lambda self: any(job.pods for job in self.jobs()))
    @rule(
        data=st.data(), runs=st.integers(1, 12), size=st.integers(0, 9000), lines=st.integers(1, 20), ends=st.booleans()
    )
    def print_lines(self, data: st.DataObject, runs: int, size: int, lines: int, *, ends: bool) -> None:
        """A container prints, ends and begins anew, over and over."""
        job = data.draw(st.sampled_from([job for job in self.jobs() if job.pods]))
        kept = data.draw(st.sampled_from(list(job.pods.values())))
        had = self.before()
        for _ in range(runs):
            run = max(0, kept.newest_run("node"))
            journal = kept.journal("node", run if kept.journal("node", run).ended is None else run + 1)
            self.printed += 1
            batch = [line(START + self.printed * 1000 + number, "x" * size) for number in range(lines)]
            with contextlib.suppress(FullError, NotKeptError):
                self.archive.append(job, journal, batch)
                if ends:
                    self.archive.finish(job, journal, "ended")
        self.check_shares(job.record.namespace, had)

    @precondition(lambda self: self.jobs())
    @rule(data=st.data(), deleted=st.booleans())
    def end(self, data: st.DataObject, *, deleted: bool) -> None:
        job = data.draw(st.sampled_from(self.jobs()))
        for kept in job.pods.values():
            kept.rest()
        self.archive.mark(job, finished=True, deleted=deleted)

    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        before = {job.record.uid: job.size for job in self.archive}
        self.archive.close()
        if data.draw(st.booleans()):
            self.retention = data.draw(st.sampled_from(BOUNDS))
            before = {}
        self.archive = Archive(self.folder, self.retention, self.clock)
        if before:
            assert {job.record.uid: job.size for job in self.archive} == before
        self.archive.enforce()

    # -- what holds -----------------------------------------------------------------------------------------------

    @invariant()
    def bounds_hold(self) -> None:
        if not hasattr(self, "archive"):
            return
        assert self.archive.usage.within(self.retention.total())
        for job in self.archive:
            assert job.usage.within(self.retention.job)
            assert job.usage == sum((kept.usage for kept in job.pods.values()), FOLDER + job.record_usage)

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        if not hasattr(self, "archive"):
            return
        assert self.archive.usage == sum((measure(job.folder) for job in self.archive), NOTHING)
        assert {path.name for path in (self.folder / "jobs").iterdir()} == {job.record.uid for job in self.archive}
        assert self.archive.set_aside.count == 0


TestHoarders = Hoarders.TestCase
TestHoarders.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
