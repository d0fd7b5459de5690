"""From submission to end as a person sees it, and Ctrl-C on the way."""

from __future__ import annotations

import asyncio
import io
import signal
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.backend import FakeBackend, a_job, failed
from tests.unit.client.reading.documents import condition, train_job
from tests.unit.interrupts import interrupt
from trainplane.cli import attending
from trainplane.cli.attending import Choice, ask, attend
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.types.jobs import LogLine
from trainplane.explain.facts import Facts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trainplane.client.types.jobs import TrainJob

Printed = pytest.CaptureFixture[str]


async def shown(backend: FakeBackend) -> int:
    async with asyncio.timeout(60):
        return await attend(AsyncTrainerClient(backend=backend), "job", " --namespace team")


async def test_lines_go_to_output_and_what_is_said_of_the_job_does_not(capsys: Printed) -> None:
    lines = [LogLine("node-0", "a"), LogLine("node-1", "b")]
    assert await shown(FakeBackend(a_job("Running"), a_job("Complete"), lines=lines)) == 0
    printed = capsys.readouterr()
    assert printed.out == "[node-0] a\n[node-1] b\n"
    assert "TrainJob job: Complete" in printed.err


async def test_a_failure_says_why_and_what_to_do(capsys: Printed) -> None:
    backend = FakeBackend(a_job("Running"), failed())
    backend.facts = Facts(train_job("job", conditions=[condition("Failed", "JobsFailed", "it failed")]))
    assert await shown(backend) == 1
    said = capsys.readouterr().err
    assert "✗" in said
    assert "→" in said


async def test_one_that_somebody_deletes_meanwhile(capsys: Printed) -> None:
    assert await shown(FakeBackend(a_job("Running"), deleted=True)) == 1
    assert "TrainJob job was deleted before its end" in capsys.readouterr().err


async def test_a_line_does_not_steer_the_terminal(capsys: Printed) -> None:
    lines = [LogLine("node-0", "\x1b[2J\x1b]0;owned\x07gone\x9b1m")]
    assert await shown(FakeBackend(a_job("Complete"), lines=lines)) == 0
    assert not {"\x1b", "\x07", "\x9b"} & set(capsys.readouterr().out)


class Interrupted(FakeBackend):
    """A job that runs on, whose reader presses Ctrl-C as soon as it is seen."""

    async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        del name
        self.open_watches += 1
        try:
            yield a_job("Running")
            interrupt()
            await asyncio.Event().wait()
        finally:
            self.open_watches -= 1


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Choice]:
    """What the person says, one after another."""
    given: list[Choice] = []
    monkeypatch.setattr(attending, "ask", lambda *_: given.pop(0))
    return given


class TestCtrlC:
    async def test_where_nobody_can_be_asked_the_job_goes_on_and_the_way_back_is_said(self, capsys: Printed) -> None:
        backend = Interrupted()
        before = signal.getsignal(signal.SIGINT)
        assert await shown(backend) == 130
        said = capsys.readouterr().err
        assert "TrainJob job goes on without you" in said
        assert "trainplane logs --follow job --namespace team" in said
        assert [call[0] for call in backend.calls] == ["read_logs"]
        assert signal.getsignal(signal.SIGINT) is before

    async def test_it_is_suspended_if_that_is_chosen(self, answers: list[Choice], capsys: Printed) -> None:
        backend = Interrupted(a_job("Running"))
        answers.append(Choice.SUSPEND)
        assert await shown(backend) == 130
        assert ("patch_job", "job", {"spec": {"suspend": True}}) in backend.calls
        assert "trainplane resume job --namespace team" in capsys.readouterr().err

    async def test_it_is_deleted_if_that_is_chosen(self, answers: list[Choice], capsys: Printed) -> None:
        class Deleted(Interrupted):
            async def delete_job(self, name: str) -> None:
                await super().delete_job(name)
                assert self.open_watches == 0, "nobody looks on while it goes"

        backend = Deleted()
        answers.append(Choice.DELETE)
        assert await shown(backend) == 130
        assert ("delete_job", "job") in backend.calls
        assert capsys.readouterr().err.splitlines()[-1] == "TrainJob job is deleted"

    async def test_it_is_watched_to_its_end_if_that_is_chosen(self, answers: list[Choice], capsys: Printed) -> None:
        class Goes(FakeBackend):
            async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
                del name
                yield a_job("Running")
                interrupt()
                while answers:  # noqa: ASYNC110 until it was asked
                    await asyncio.sleep(0.001)
                yield a_job("Complete")

        answers.append(Choice.GO_ON)
        assert await shown(Goes(lines=[LogLine("node-0", "once")])) == 0
        assert capsys.readouterr().out == "[node-0] once\n"


class Typed(io.StringIO):
    """A terminal at which something was typed."""

    def isatty(self) -> bool:
        return True


class TestTheQuestion:
    @pytest.mark.parametrize(
        ("typed", "choice"),
        [
            ("d\n", Choice.DETACH),
            ("\n", Choice.DETACH),
            ("", Choice.DETACH),
            ("S\n", Choice.SUSPEND),
            ("x\n", Choice.DELETE),
            ("c\n", Choice.GO_ON),
            ("what\nyes\n c \n", Choice.GO_ON),
        ],
    )
    def test_a_letter_answers_it(self, typed: str, choice: Choice) -> None:
        assert ask("job", Typed(typed), Typed()) is choice

    def test_ctrl_c_once_more_leaves_the_job_to_itself(self) -> None:
        class Pressed(Typed):
            def readline(self, *_: object) -> str:  # type: ignore[override] # what the test needs of it
                interrupt()
                return super().readline()

        before = signal.getsignal(signal.SIGINT)
        assert ask("job", Pressed("x\n"), Typed()) is Choice.DETACH
        assert signal.getsignal(signal.SIGINT) is before

    @pytest.mark.parametrize(("typed", "shown"), [(io.StringIO("x\n"), Typed()), (Typed("x\n"), io.StringIO())])
    def test_nobody_is_asked_where_nobody_sits(self, typed: io.StringIO, shown: io.StringIO) -> None:
        assert ask("job", typed, shown) is Choice.DETACH
        assert shown.getvalue() == ""
