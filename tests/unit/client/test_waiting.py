"""Waiting: over when it is there, and never for what cannot come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.backend import FakeBackend, a_job, failed
from trainplane.client.errors import (
    InvalidError,
    JobDeletedError,
    JobFailedError,
    JobStuckError,
    JobTimeoutError,
    NotFoundError,
    TrainplaneError,
)
from trainplane.client.types.jobs import Cause, LogLine, Step
from trainplane.client.waiting import Patience, is_stuck, settled, wait, where

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


async def test_the_wait_ends_with_the_change_that_brings_the_status_and_closes_the_watch() -> None:
    backend = FakeBackend(a_job("Created"), a_job("Running"), a_job("Complete"))
    seen: list[str] = []
    job = await wait(backend, "job", {"Complete"}, 60, [lambda change: seen.append(change.status)])
    assert (job.status, seen, backend.open_watches) == ("Complete", ["Created", "Running", "Complete"], 0)


async def test_a_failure_is_raised_with_the_first_fault_and_its_last_lines() -> None:
    lines = [LogLine("node-0", f"line {n}") for n in range(30)]
    backend = FakeBackend(a_job("Running"), failed(), lines=lines)
    with pytest.raises(JobFailedError) as caught:
        await wait(backend, "job", {"Complete"}, 60)
    assert caught.value.cause.step == "node-0"
    assert caught.value.cause.log_tail == tuple(f"line {n}" for n in range(20, 30))
    text = str(caught.value)
    assert text.startswith("TrainJob job failed: Error in node-0 (exit code 3): the container ended with 3\n")
    assert text.endswith("  line 29")
    assert isinstance(caught.value, RuntimeError), "as code for the kubeflow SDK catches it"


async def test_what_was_wrong_while_pods_could_tell_it_is_told_when_they_are_gone() -> None:
    crashing = a_job("Created", cause=Cause("Error", "the program ended with exit code 3.", "node-1", 3))
    gone = a_job("Failed", steps=[], cause=Cause("FailedJobs", "Job job-node-0 failed."))
    backend = FakeBackend(a_job("Running"), crashing, gone, lines=[LogLine("node-1", "ValueError: no data")])
    with pytest.raises(JobFailedError) as caught:
        await wait(backend, "job", {"Complete"}, 60)
    cause = caught.value.cause
    assert (cause.step, cause.exit_code, cause.log_tail) == ("node-1", 3, ("ValueError: no data",))
    assert cause.message == "the program ended with exit code 3. In the end: Job job-node-0 failed."


async def test_last_lines_that_could_not_be_read_at_the_first_crash_are_read_at_the_next() -> None:
    class Restarting(FakeBackend):
        reads = 0

        async def read_logs(self, *args: Any, **options: Any) -> AsyncGenerator[LogLine, None]:
            self.reads += 1
            if self.reads == 1:
                raise NotFoundError("the container is being made again")
            async for line in super().read_logs(*args, **options):
                yield line

    crashing = a_job("Created", cause=Cause("Error", "exit code 3.", "node-1", 3))
    gone = a_job("Failed", steps=[], cause=Cause("FailedJobs", "Job job-node-0 failed."))
    backend = Restarting(crashing, crashing, crashing, gone, lines=[LogLine("node-1", "ValueError: no data")])
    with pytest.raises(JobFailedError) as caught:
        await wait(backend, "job", {"Complete"}, 60)
    assert (caught.value.cause.log_tail, backend.reads) == (("ValueError: no data",), 2)


async def test_a_failure_that_was_asked_for_is_a_result() -> None:
    assert (await wait(FakeBackend(failed()), "job", {"Complete", "Failed"}, 60)).status == "Failed"


async def test_a_timeout_says_where_the_job_stands() -> None:
    stuck = a_job("Created", steps=[Step("node-0", "Pending", "p", reason="ImagePullBackOff")])
    backend = FakeBackend(stuck)
    with pytest.raises(JobTimeoutError, match=r"not Complete after 0\.05 s: it is Created: node-0 ImagePullBackOff"):
        await wait(backend, "job", {"Complete"}, 0.05)
    assert backend.open_watches == 0
    with pytest.raises(TimeoutError):
        await wait(backend, "job", {"Running"}, 0.05)


async def test_what_is_gone_or_never_was_is_said() -> None:
    with pytest.raises(JobDeletedError, match="was deleted while"):
        await wait(FakeBackend(a_job("Running"), deleted=True), "job", {"Complete"}, 60)
    with pytest.raises(NotFoundError):
        await wait(FakeBackend(), "job", {"Complete"}, 60)


async def test_nobody_waits_for_what_cannot_come_any_more() -> None:
    with pytest.raises(TrainplaneError, match="is Complete and will not become Failed"):
        await wait(FakeBackend(a_job("Complete")), "job", {"Failed"}, 60)


@pytest.mark.parametrize(
    ("status", "wanted", "over"),
    [
        ("Running", {"Created"}, True),
        ("Suspended", {"Created"}, True),
        ("Complete", {"Running"}, True),
        ("Created", {"Running"}, False),
        ("Suspended", {"Running"}, False),
        ("Failed", {"Created"}, False),
        ("Complete", {"Failed"}, False),
    ],
)
def test_a_status_that_was_passed_on_the_way_counts(status: str, wanted: set[str], over: bool) -> None:
    assert settled(status, wanted) is over


@pytest.mark.parametrize(("wanted", "seconds"), [({"Done"}, 5), (set(), 5), ({"Complete"}, 0)])
async def test_what_can_never_be_waited_for_is_refused(wanted: set[str], seconds: float) -> None:
    with pytest.raises(InvalidError):
        await wait(FakeBackend(a_job()), "job", wanted, seconds)


def test_where_a_job_stands_is_said_in_words() -> None:
    assert "is the cluster reachable" in where(None)
    assert where(a_job("Created", steps=[])) == "it is Created, with no pods yet"
    held = a_job("Suspended", cause=Cause("Suspended", "no quota"))
    assert where(held) == "it is Suspended (Suspended: no quota)"


def stuck(reason: str = "CreateContainerConfigError", message: str = 'secret "token" not found') -> Any:
    return a_job("Created", cause=Cause(reason, message, "node-0"))


async def test_what_will_not_come_by_itself_is_given_up() -> None:
    backend = FakeBackend(stuck())
    with pytest.raises(
        JobStuckError, match=r'will not become Complete by itself: .*secret "token" not found'
    ) as caught:
        await wait(backend, "job", {"Complete"}, 60, stuck_seconds=0.05)
    assert isinstance(caught.value, TimeoutError), "as code for the kubeflow SDK catches it"
    assert not caught.value.retryable
    assert backend.open_watches == 0


async def test_it_is_not_where_it_comes_in_time_or_the_timeout_is_sooner_or_nobody_wants_it() -> None:
    healed = FakeBackend(stuck(), a_job("Running"), a_job("Complete"))
    assert (await wait(healed, "job", {"Complete"}, 60, stuck_seconds=30)).status == "Complete"
    for seconds in (30, None):
        with pytest.raises(JobTimeoutError) as caught:
            await wait(FakeBackend(stuck()), "job", {"Complete"}, 0.05, stuck_seconds=seconds)
        assert not isinstance(caught.value, JobStuckError)


def test_time_counts_from_when_it_stuck_and_anew_when_it_sticks_again() -> None:
    time = 0.0
    patience = Patience(lambda: time, 600, 120)
    assert patience.until(stuck()) == 120
    time = 100
    assert patience.until(stuck()) == 120
    assert patience.until(a_job("Created")) == 600
    assert patience.until(stuck()) == 220
    assert patience.is_lost
    time = 550
    assert patience.until(a_job("Running")) == 600
    assert patience.until(stuck()) == 600
    assert not patience.is_lost, "the timeout comes first"


@pytest.mark.parametrize(
    ("reason", "message", "is_one"),
    [
        ("InvalidImageName", 'couldn\'t parse image name "A B"', True),
        ("CreateContainerConfigError", 'secret "token" not found', True),
        ("ImagePullBackOff", "manifest unknown", True),
        ("ErrImagePull", "docker.io/x/y:z: not found", True),
        ("ImagePullBackOff", "429 too many requests", False),
        ("Unschedulable", "0/3 nodes are available", False),
        ("CrashLoopBackOff", "back-off 40s", False),
    ],
)
def test_what_may_pass_is_waited_for(reason: str, message: str, *, is_one: bool) -> None:
    assert is_stuck(stuck(reason, message)) is is_one


async def test_two_sentences_are_two() -> None:
    crashing = a_job("Created", cause=Cause("Error", "it ended with an error: see its log", "node-1", 3))
    gone = a_job("Failed", steps=[], cause=Cause("FailedJobs", "Job job-node-0 failed."))
    with pytest.raises(JobFailedError, match=r"see its log\. In the end: Job job-node-0 failed\."):
        await wait(FakeBackend(crashing, gone), "job", {"Complete"}, 60)
