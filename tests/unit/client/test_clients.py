"""The client in both forms, on a backend in memory."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.backend import CREATED_AT, FakeBackend, a_job
from tests.unit.interrupts import interrupt_once_waited_for
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.client import TrainerClient
from trainplane.client.display.interrupted import interrupted
from trainplane.client.errors import InvalidError, RefusedError, UnsupportedError
from trainplane.client.opening import open_backend
from trainplane.client.types.jobs import Cause, Event, LogLine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from trainplane.client.types.jobs import TrainJob


def methods(kind: type) -> dict[str, inspect.Signature]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(one) for name, one in found if not name.startswith("_")}


def test_every_call_has_its_twin_with_the_same_arguments_and_words() -> None:
    blocking, asynchronous = methods(TrainerClient), methods(AsyncTrainerClient)
    assert blocking.keys() == asynchronous.keys()
    for name, signature in asynchronous.items():
        assert blocking[name].parameters == signature.parameters, name
        if name != "close":
            assert getattr(TrainerClient, name).__doc__ == getattr(AsyncTrainerClient, name).__doc__, name
        assert getattr(TrainerClient, name).__doc__, name


@pytest.fixture
def backend() -> FakeBackend:
    lines = [LogLine("node-0", "a"), LogLine("node-1", "b"), LogLine("node-0", "c")]
    return FakeBackend(a_job("Created"), a_job("Running"), a_job("Complete"), lines=lines)


@pytest.fixture
def client(backend: FakeBackend) -> Iterator[TrainerClient]:
    with TrainerClient(backend=backend) as made:
        yield made


class Interrupting(FakeBackend):
    """Presses Ctrl-C when its reader waits for the second change."""

    async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        async with aclosing(super().watch_job(name)) as changes:
            yield await anext(changes)
            await interrupt_once_waited_for()
            async for change in changes:
                yield change


class TestBlocking:
    def test_calls_iterators_and_waits(self, client: TrainerClient) -> None:
        assert client.get_job("job").status == "Complete"
        assert [job.status for job in client.watch_job("job")] == ["Created", "Running", "Complete"]
        assert client.wait_for_job_status("job").status == "Complete"
        assert list(client.get_job_logs("job")) == ["a", "c"]
        assert list(client.get_job_logs("job", step="all")) == ["[node-0] a", "[node-1] b", "[node-0] c"]

    def test_leaving_an_iterator_closes_its_stream(self, client: TrainerClient, backend: FakeBackend) -> None:
        changes = client.watch_job("job")
        next(changes)
        assert backend.open_watches == 1
        changes.close()
        assert backend.open_watches == 0

    async def test_it_works_inside_a_running_loop_as_in_a_notebook(self, client: TrainerClient) -> None:
        assert client.get_job("job").name == "job"

    @pytest.mark.usefixtures("interruptible")
    def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(self, capsys: pytest.CaptureFixture[str]) -> None:
        backend = Interrupting(a_job("Running"))
        with TrainerClient(backend=backend) as client:
            with pytest.raises(KeyboardInterrupt):
                client.wait_for_job_status("job")
            assert backend.open_watches == 0
            assert client.get_job("job").status == "Running"
        said = capsys.readouterr().err
        assert "TrainJob job goes on without you" in said
        assert "client.wait_for_job_status('job')" in said
        assert not [call for call in backend.calls if call[0] == "delete_job"]

    def test_ctrl_c_that_nobody_catches_shows_no_traceback(self) -> None:
        code = (
            "import signal\n"
            "from tests.unit.client.backend import a_job\n"
            "from tests.unit.client.test_clients import Interrupting\n"
            "from trainplane import TrainerClient\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell started with &\n"
            "TrainerClient(backend=Interrupting(a_job('Running'))).wait_for_job_status('job')\n"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == -signal.SIGINT, "it still ends as interrupted programs do"
        assert "goes on without you" in ran.stderr
        assert "Traceback" not in ran.stderr

    def test_other_errors_after_it_are_shown_as_ever(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: list[BaseException] = []
        monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: shown.append(error))
        other = ValueError()
        made = interrupted()
        assert vars(made)["_render_traceback_"]() == [], "IPython asks this"
        sys.excepthook(ValueError, other, None)
        assert shown == [other]
        sys.excepthook(KeyboardInterrupt, made, None)
        assert shown == [other, made], "it was set for one"

    def test_closing_closes_the_backend_and_twice_is_fine(self, backend: FakeBackend) -> None:
        client = TrainerClient(backend=backend)
        client.close()
        client.close()
        assert backend.closed
        with pytest.raises(RuntimeError, match="this TrainerClient is closed"):
            client.get_job("job")

    def test_a_client_that_nobody_holds_closes_itself(self, backend: FakeBackend) -> None:
        client = TrainerClient(backend=backend)
        del client
        assert backend.closed


class TestAsynchronous:
    async def test_suspend_and_resume_patch_and_scale_asks_the_backend(self, backend: FakeBackend) -> None:
        backend.changes.pop()
        async with AsyncTrainerClient(backend=backend) as client:
            await client.suspend_job("job")
            await client.resume_job("job")
            await client.scale_job("job", 3)
            with pytest.raises(InvalidError, match="num_nodes must be 1 or more"):
                await client.scale_job("job", 0)
        assert backend.calls == [
            ("patch_job", "job", {"spec": {"suspend": True}}),
            ("patch_job", "job", {"spec": {"suspend": False}}),
            ("scale_job", "job", 3),
        ]
        assert backend.closed

    @pytest.mark.parametrize("status", ["Complete", "Failed"])
    async def test_what_is_over_is_neither_suspended_nor_resumed(self, status: str) -> None:
        backend = FakeBackend(a_job(status))
        client = AsyncTrainerClient(backend=backend)
        for call, verb in ((client.suspend_job, "suspended"), (client.resume_job, "resumed")):
            with pytest.raises(RefusedError, match=f"job is {status} and cannot be {verb}: .* submit it again"):
                await call("job")
        assert backend.calls == []

    async def test_what_kueue_has_is_not_suspended_by_hand(self) -> None:
        backend = FakeBackend(a_job("Running", queue="team-queue"))
        client = AsyncTrainerClient(backend=backend)
        for call in (client.suspend_job, client.resume_job):
            with pytest.raises(UnsupportedError, match="queue team-queue decides"):
                await call("job")
        assert backend.calls == []

    async def test_a_description_tells_state_steps_queue_and_events(self) -> None:
        held = a_job("Suspended", queue="q", cause=Cause("Suspended", "it waits for quota"))
        backend = FakeBackend(held)
        backend.answer = {
            "summary": "It needs 8 GPUs, and 5 are free.",
            "position": 1,
            "suggestions": [{"what": "With 2 nodes it would start.", "do": "scale", "now": True}],
        }
        backend.events = [Event("TrainJob", "job", "made", "JobSetCreated", CREATED_AT)]
        told = await AsyncTrainerClient(backend=backend).describe_job("job")
        assert told.queue is not None
        assert told.queue.position == 1
        text = str(told)
        for part in (
            "TrainJob job: Suspended",
            "it waits for quota",
            "5 are free",
            "- now: With 2 nodes",
            "JobSetCreated",
        ):
            assert part in text

    async def test_logs_ask_for_one_step_or_all(self, backend: FakeBackend) -> None:
        client = AsyncTrainerClient(backend=backend)
        assert [line.text async for line in client.stream_job_logs("job", tail=1)] == ["c"]
        assert [line async for line in client.get_job_logs("job", "node-1", follow=True)] == ["b"]
        assert backend.calls == [("read_logs", "job", None, True, 1), ("read_logs", "job", ["node-1"], True, None)]

    @pytest.mark.parametrize("follow", [False, True])
    async def test_a_job_that_printed_nothing_yet_says_why(
        self, caplog: pytest.LogCaptureFixture, *, follow: bool
    ) -> None:
        held = FakeBackend(a_job("Suspended", cause=Cause("Suspended", "it is held by spec.suspend: resume it")))
        assert [line async for line in AsyncTrainerClient(backend=held).get_job_logs("job", follow=follow)] == []
        said = "TrainJob job has printed nothing yet: it is Suspended (Suspended: it is held by spec.suspend"
        assert (said in caplog.text) is not follow

    async def test_one_that_is_over_or_gone_is_not_talked_about(self, caplog: pytest.LogCaptureFixture) -> None:
        for changes in ([a_job("Complete")], []):
            client = AsyncTrainerClient(backend=FakeBackend(*changes))
            assert [line async for line in client.get_job_logs("job")] == []
        assert caplog.text == ""

    async def test_a_runtime_may_be_given_whole_or_by_name(self, backend: FakeBackend) -> None:
        client = AsyncTrainerClient(backend=backend)
        await client.list_jobs(await client.get_runtime("jax"))
        await client.list_jobs("torch")
        assert backend.calls == [("list_jobs", "jax"), ("list_jobs", "torch")]

    async def test_polling_intervals_are_accepted_and_judged(self, backend: FakeBackend) -> None:
        client = AsyncTrainerClient(backend=backend)
        await client.wait_for_job_status("job", polling_interval=1)
        with pytest.raises(InvalidError, match="polling_interval"):
            await client.wait_for_job_status("job", timeout=1, polling_interval=2)


def test_another_configuration_is_refused_by_name() -> None:
    with pytest.raises(InvalidError, match="is a dict"):
        open_backend({})  # type: ignore[arg-type] # what a user may do
