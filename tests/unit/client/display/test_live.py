"""What is shown during a wait: on a terminal, in a notebook, and nowhere else."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.backend import CREATED_AT, FakeBackend, a_job, failed
from tests.unit.client.display.examples import FAILED, LARGE, RUNNING, STARTING, node
from tests.unit.client.display.markup import read
from tests.unit.interrupts import interrupt_once_waited_for
from trainplane.client.client import TrainerClient
from trainplane.client.display import live
from trainplane.client.display.live import Card, Lines, Silence, attend, choose_screen, follow
from trainplane.client.errors import InvalidError, JobFailedError
from trainplane.client.types.jobs import Progress, TrainJob
from trainplane.kube.loopthread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

CREATED = a_job("Created", name="mnist", num_nodes=2, steps=[])


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notebook:
    """Keeps what is shown, and what replaced it."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.put_times = 0

    def put(self, html: str) -> Callable[[str], None]:
        self.put_times += 1
        self.frames.append(html)
        return self.frames.append


class TestLines:
    def show(self, *jobs: TrainJob, seconds: float = 3) -> list[str]:
        out, clock = io.StringIO(), Clock()
        lines = Lines(out, clock)
        for job in jobs:
            lines.show(job)
            clock.now += seconds
        return out.getvalue().splitlines()

    def test_a_line_for_each_change_of_status_or_step(self) -> None:
        pending = replace(CREATED, steps=[node(0, "Pending")])
        running = replace(CREATED, status="Running", steps=[node(0), node(1)])
        done = replace(running, status="Complete")
        assert self.show(CREATED, CREATED, pending, running, running, done) == [
            "[   0 s] TrainJob mnist: Created, 0 of 2 nodes run",
            "[   6 s] node-0: Pending on machine-0",
            "[   9 s] node-0: Running on machine-0",
            "[   9 s] node-1: Running on machine-1",
            "[   9 s] TrainJob mnist: Running, 2 of 2 nodes run",
            "[  15 s] TrainJob mnist: Complete",
        ]

    def test_what_is_wrong_with_a_step_is_said_once(self) -> None:
        said = self.show(STARTING, STARTING)
        assert said == [
            "[   0 s] node-0: Running on machine-0",
            "[   0 s] node-1: Pending on machine-1, ImagePullBackOff: there is no such image",
            "[   0 s] TrainJob mnist: Created, 1 of 4 nodes run",
        ]

    def test_a_new_cause_is_a_change(self) -> None:
        held = replace(CREATED, status="Suspended")
        why = replace(held, cause=FAILED.cause)
        assert [line.count("OOMKilled") for line in self.show(held, why)] == [0, 1]

    def test_progress_is_said_each_ten_percent(self) -> None:
        changes = [replace(CREATED, progress=Progress(percent)) for percent in (0, 4, 9, 10, 19, 34, 30, 100)]
        assert [line.partition("] ")[2] for line in self.show(*changes)[1:]] == [
            "10 % done",
            "34 % done",
            "100 % done",
        ]

    def test_many_steps_are_counted_and_not_too_often(self) -> None:
        more = replace(LARGE, steps=[node(i) for i in range(300)])
        said = self.show(LARGE, more, LARGE, more, LARGE, seconds=1)
        assert [line.partition("] ")[2] for line in said] == [
            "300 steps: 297 Running, 3 Pending",
            "TrainJob large: Created, 297 of 300 nodes run",
            "300 steps: 300 Running",
        ]


class TestCard:
    def test_one_card_is_updated_in_place(self) -> None:
        notebook, moments = Notebook(), iter(CREATED_AT + timedelta(seconds=s) for s in (0, 0, 5, 9))
        card = Card(notebook.put, lambda: next(moments))
        for job in (CREATED, CREATED, CREATED, RUNNING):
            card.show(job)
        assert notebook.put_times == 1
        texts = [read(frame).text for frame in notebook.frames]
        assert len(texts) == 3, "what looks the same is not sent again"
        assert "0 s ago" in texts[0]
        assert "5 s ago" in texts[1]
        assert "45 % done" in texts[2]

    def test_it_asks_for_time_to_pass(self) -> None:
        assert Card(Notebook().put, lambda: CREATED_AT).tick == 1


class TestChoice:
    @pytest.fixture
    def kernel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = ModuleType("IPython")
        module.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined] # what a kernel has
        monkeypatch.setitem(sys.modules, "IPython", module)

    @pytest.fixture
    def plain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "IPython", raising=False)

    @pytest.mark.usefixtures("plain")
    def test_a_terminal_gets_lines_and_a_pipe_nothing(self) -> None:
        assert isinstance(choose_screen({}, Terminal()), Lines)
        assert isinstance(choose_screen({}, io.StringIO()), Silence)

    @pytest.mark.usefixtures("kernel")
    def test_a_kernel_gets_a_card(self) -> None:
        assert isinstance(choose_screen({}, io.StringIO()), Card)
        assert isinstance(choose_screen({}, Terminal()), Card)

    def test_ipython_in_a_terminal_is_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = ModuleType("IPython")
        module.get_ipython = SimpleNamespace  # type: ignore[attr-defined] # a shell without a kernel
        monkeypatch.setitem(sys.modules, "IPython", module)
        assert isinstance(choose_screen({}, Terminal()), Lines)

    @pytest.mark.usefixtures("kernel")
    @pytest.mark.parametrize(("wish", "screen"), [("off", Silence), ("text", Lines), ("notebook", Card)])
    def test_the_variable_decides(self, wish: str, screen: type) -> None:
        assert isinstance(choose_screen({"TRAINPLANE_PROGRESS": wish}, Terminal()), screen)

    def test_another_word_is_refused(self) -> None:
        with pytest.raises(InvalidError, match="TRAINPLANE_PROGRESS must be off, text or notebook, and is 'loud'"):
            choose_screen({"TRAINPLANE_PROGRESS": "loud"}, Terminal())

    def test_a_notebook_without_ipython_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "IPython.display", None)
        with pytest.raises(InvalidError, match="needs IPython"):
            live.put_in_notebook("<b></b>")

    def test_ipython_shows_and_replaces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: list[Any] = []
        module = ModuleType("IPython.display")
        module.HTML = str  # type: ignore[attr-defined] # as IPython has it

        def display(html: str, *, display_id: bool) -> SimpleNamespace:
            shown.append((html, display_id))
            return SimpleNamespace(update=shown.append)

        module.display = display  # type: ignore[attr-defined] # as IPython has it
        monkeypatch.setitem(sys.modules, "IPython.display", module)
        live.put_in_notebook("<b>1</b>")("<b>2</b>")
        assert shown == [("<b>1</b>", True), "<b>2</b>"]


class TestFollow:
    """Each change once, ticks between them, and the end of the wait."""

    @staticmethod
    def playing(*jobs: TrainJob, then: BaseException | None = None) -> Callable[..., Coroutine[Any, Any, TrainJob]]:
        async def wait(tell: Callable[[TrainJob], None]) -> TrainJob:
            for job in jobs:
                tell(job)
                await asyncio.sleep(0)
            if then:
                raise then
            return jobs[-1]

        return wait

    async def test_changes_come_in_order_and_then_the_end(self) -> None:
        assert [job async for job in follow(self.playing(CREATED, RUNNING), None)] == [CREATED, RUNNING]

    async def test_changes_come_before_the_failure(self) -> None:
        changes = follow(self.playing(CREATED, then=ValueError("lost")), None)
        assert await anext(changes) is CREATED
        with pytest.raises(ValueError, match="lost"):
            await anext(changes)

    async def test_it_ticks_while_nothing_happens(self) -> None:
        go = asyncio.Event()

        async def wait(tell: Callable[[TrainJob], None]) -> TrainJob:
            await go.wait()
            tell(RUNNING)
            return RUNNING

        seen = []
        async for job in follow(wait, 0.001):
            seen.append(job)
            if len(seen) == 3:
                go.set()
        assert seen[:3] == [None] * 3
        assert seen[-1] is RUNNING

    async def test_leaving_ends_the_wait(self) -> None:
        ended: list[str] = []

        async def wait(tell: Callable[[TrainJob], None]) -> TrainJob:
            tell(CREATED)
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append("watch closed")
            return CREATED

        changes = follow(wait, None)
        assert await anext(changes) is CREATED
        await changes.aclose()
        assert ended == ["watch closed"]


class TestClient:
    @pytest.fixture
    def client(self) -> Iterator[TrainerClient]:
        running = replace(CREATED, status="Running", steps=[node(0), node(1)])
        with TrainerClient(backend=FakeBackend(CREATED, running, replace(running, status="Complete"))) as made:
            yield made

    def test_a_terminal_is_told(self, client: TrainerClient, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRAINPLANE_PROGRESS", "text")
        out = io.StringIO()
        monkeypatch.setattr(sys, "stderr", out)
        assert client.wait_for_job_status("mnist", timeout=300).status == "Complete"
        assert [line.partition("] ")[2] for line in out.getvalue().splitlines()] == [
            "TrainJob mnist: Created, 0 of 2 nodes run",
            "node-0: Running on machine-0",
            "node-1: Running on machine-1",
            "TrainJob mnist: Running, 2 of 2 nodes run",
            "TrainJob mnist: Complete",
        ]

    def test_a_pipe_is_not(self, client: TrainerClient, capsys: pytest.CaptureFixture[str]) -> None:
        client.wait_for_job_status("mnist")
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("positional", [True, False])
    def test_callbacks_run_here_and_may_use_the_client(self, client: TrainerClient, positional: bool) -> None:
        seen: list[tuple[str, str, int | None]] = []

        def callback(job: TrainJob) -> None:
            seen.append((job.status, client.get_job("mnist").name, threading.current_thread().ident))

        if positional:
            client.wait_for_job_status("mnist", {"Complete"}, 30, 2, [callback])
        else:
            client.wait_for_job_status(name="mnist", callbacks=[callback])
        here = threading.get_ident()
        assert seen == [(status, "mnist", here) for status in ("Created", "Running", "Complete")]

    def test_a_callback_that_fails_ends_the_wait(self) -> None:
        backend = FakeBackend(CREATED)

        def fail(job: TrainJob) -> None:
            raise LookupError(job.name)

        with TrainerClient(backend=backend) as client:
            with pytest.raises(LookupError, match="mnist"):
                client.wait_for_job_status("mnist", callbacks=[fail])
            assert backend.open_watches == 0

    def test_a_failed_job_is_shown_before_the_error(self) -> None:
        notebook = Notebook()
        with TrainerClient(backend=FakeBackend(CREATED, failed(name="mnist"))) as client:
            wait = client.asynchronous.wait_for_job_status
            with pytest.raises(JobFailedError, match="ended with 3"):
                attend(client._loop, wait, ["mnist"], {}, Card(notebook.put, lambda: CREATED_AT))
        assert "Failed" in read(notebook.frames[-1]).text
        assert "the container ended with 3" in read(notebook.frames[-1]).text

    def test_wrong_arguments_are_named(self, client: TrainerClient) -> None:
        with pytest.raises(TypeError, match="name"):
            client.wait_for_job_status()  # type: ignore[call-arg] # what a user may do


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_comes_when_the_streams_end_is_over() -> None:
    ended: list[str] = []

    async def stream() -> Any:
        try:
            yield 1
            await interrupt_once_waited_for()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append("closed")

    loop = LoopThread("test")
    numbers = loop.iterate(stream())
    assert next(numbers) == 1
    with pytest.raises(KeyboardInterrupt):
        next(numbers)
    assert ended == ["closed"]
    loop.close()
