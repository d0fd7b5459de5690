"""`trainplane watch`: which job, and how it ends."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tests.unit.client.backend import FakeBackend, a_job, failed
from trainplane.cli.errors import CommandError
from trainplane.cli.live.screen import Screen
from trainplane.cli.output import Output
from trainplane.cli.watch import choose, print_changes, show_live
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.types.jobs import Cause, LogLine

if TYPE_CHECKING:
    from trainplane.client.types.jobs import TrainJob


def a_client(*changes: TrainJob, deleted: bool = False) -> AsyncTrainerClient:
    backend = FakeBackend(*changes, deleted=deleted, lines=[LogLine("node-0", "epoch 3")])
    return AsyncTrainerClient(backend=backend)


def test_the_one_job_that_is_not_over_is_taken() -> None:
    assert choose([a_job(name="only")]) == "only"


def test_of_several_the_person_is_asked_and_enter_takes_the_newest(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [a_job(name="old"), a_job("Running", name="new\x1b[2J")]
    assert choose(jobs, lambda _: "1") == "old"
    assert choose(jobs, lambda _: " ") == "new\x1b[2J"
    printed = capsys.readouterr().out
    assert "  1  TrainJob old: Created" in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize("answer", ["0", "3", "-1", "old", "²", "9" * 5000])
def test_an_answer_that_is_no_number_of_the_list_is_refused(answer: str) -> None:
    with pytest.raises(CommandError) as caught:
        choose([a_job(name="old"), a_job(name="new")], lambda _: answer)
    assert caught.value.remedy == "choose one from 1 to 2, or name a TrainJob"
    assert len(str(caught.value)) < 100


def test_where_nobody_can_be_asked_the_names_are_told() -> None:
    with pytest.raises(CommandError, match="2 TrainJobs are not over: old, new"):
        choose([a_job(name="old"), a_job(name="new")])
    with pytest.raises(CommandError, match="no TrainJob here is running or waiting"):
        choose([])


@pytest.mark.parametrize(
    ("last", "deleted", "code"), [(a_job("Complete"), False, 0), (failed(), False, 1), (a_job("Running"), True, 1)]
)
async def test_the_exit_code_tells_how_it_ended(last: TrainJob, deleted: bool, code: int) -> None:
    out = io.StringIO()
    assert await print_changes(a_client(a_job("Running"), last, deleted=deleted), "job", Output(out)) == code
    assert ("was deleted" in out.getvalue()) == deleted


async def test_plain_lines_have_a_time_and_nothing_of_others_that_steers() -> None:
    out = io.StringIO()
    hostile = a_job("Failed", cause=Cause("\x1b[2J", "one\ntwo", "node-0", 3))
    await print_changes(a_client(hostile), "job", Output(out))
    assert "\x1b" not in out.getvalue()
    for row in out.getvalue().splitlines():
        assert row[2] == row[5] == ":"
        assert row[8:10] == "Z "


async def test_on_a_terminal_the_last_view_stays() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24, _environ={"TERM": "xterm"})
    assert await show_live(a_client(a_job("Running"), a_job("Complete")), "job", Screen(console)) == 0
    live, _, left = out.getvalue().rpartition("\x1b[?1049l")
    assert "\x1b[?1049h" in live
    assert "Complete" in left
    assert "epoch 3" in left
