"""Types as plain text, at any width."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest

from tests.unit.client.backend import CREATED_AT, FakeBackend, a_job, a_runtime
from tests.unit.client.display.examples import EVENTS, EVIL, FAILED, HELD, NOW, RUNNING, STARTING, TUNE, evil_job, node
from tests.unit.client.display.markup import read
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.display.facts import age, duration, moment, nodes, printable
from trainplane.client.display.listing import Listing
from trainplane.client.display.tables import Table, events_table, jobs_table, runtimes_table, steps_table
from trainplane.client.display.text import lay_out
from trainplane.client.types.jobs import Event
from trainplane.client.types.runtimes import Runtime


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h 0 min"),
        (90061, "25 h 1 min"),
        (200000, "2 d 7 h"),
    ],
)
def test_times_are_said_as_people_do(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_clock_that_is_behind_gives_no_negative_age() -> None:
    assert age(RUNNING, CREATED_AT - timedelta(minutes=1)) == 0


def test_nodes_count_what_runs_or_ran() -> None:
    assert nodes(RUNNING) == (2, 2)
    assert nodes(STARTING) == (1, 4)
    assert nodes(a_job(num_nodes=2, steps=[node(0, "Succeeded"), node(1), node(2)])) == (3, 3), "an MPI launcher"


def test_terminal_sequences_are_taken_out_and_nothing_else() -> None:
    assert printable("\x1b[1;31mred\x1b[0m\tä\n\x07!") == "red\tä\n!"


class TestLayout:
    def test_columns_stand_below_their_headers(self) -> None:
        table = Table(("name", "why"), (("a", "x"), ("long-name", "y")))
        assert lay_out(table, 80).splitlines() == ["NAME       WHY", "a          x", "long-name  y"]

    def test_the_last_column_is_wrapped_and_indented(self) -> None:
        table = Table(("name", "why"), (("job", "one two three four five six seven eight"),))
        assert lay_out(table, 32).splitlines() == [
            "NAME  WHY",
            "job   one two three four five",
            "      six seven eight",
        ]

    def test_where_too_little_is_left_it_goes_below(self) -> None:
        table = Table(("name", "why"), (("a-name-of-twenty-chars", "one two three four five six"), ("b", "")))
        assert lay_out(table, 30).splitlines() == [
            "NAME",
            "a-name-of-twenty-chars",
            "    one two three four five",
            "    six",
            "b",
        ]

    def test_a_short_last_column_stays_in_its_row(self) -> None:
        table = Table(("name", "of"), (("a-name-of-twenty-chars", "me"),))
        assert lay_out(table, 30).splitlines()[1] == "a-name-of-twenty-chars  me"

    @pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
    def test_nothing_is_cut_at_any_width(self, width: int) -> None:
        text = lay_out(jobs_table([RUNNING, FAILED, HELD], NOW), width)
        for part in ("mnist", "torch-distributed", "OOMKilled", "137", "it took more than"):
            assert all(word in text for word in part.split())

    def test_no_rows_are_no_table(self) -> None:
        assert lay_out(Table.of([]), 80) == ""

    def test_a_cell_is_one_line(self) -> None:
        assert Table.of([{"a": "x\n  y\tz", "b": "\x1b[1mq"}]).rows == (("x y z", "q"),)

    def test_columns_without_a_word_are_left_out(self) -> None:
        assert "queue" not in jobs_table([STARTING], NOW).headers
        assert "queue" in jobs_table([STARTING, RUNNING], NOW).headers


def test_rows_tell_what_people_look_for() -> None:
    tables = (
        jobs_table([RUNNING, FAILED], NOW),
        steps_table(FAILED.steps),
        runtimes_table([a_runtime(), TUNE]),
        events_table(EVENTS),
    )
    job, step, runtime, event = (dict(zip(table.headers, table.rows[-1], strict=True)) for table in tables)
    assert (job["nodes"], job["age"], job["took"]) == ("1/2", "7 min", "3 min")
    assert job["why"] == "OOMKilled in node-1 (exit code 137): it took more than 2Gi"
    assert (step["step"], step["devices"], step["why"]) == ("node-1", "4 gpu", "OOMKilled (exit code 137)")
    assert (runtime["runs"], runtime["scope"], runtime["model"]) == ("its own trainer", "namespace", "Llama-3.2-1B")
    assert (event["time"], event["type"], event["times"]) == ("08:07:00", "Warning", "7")


def test_events_of_several_days_say_the_day() -> None:
    later = Event("Pod", "p", "m", "r", CREATED_AT + timedelta(days=1))
    assert events_table([*EVENTS, later]).rows[0][0] == "2026-11-15 08:00:00"
    assert moment(later) == later.event_time


class TestSentences:
    def test_each_type_says_itself_in_a_line(self) -> None:
        assert str(RUNNING) == (
            "TrainJob mnist on east: Running, 2 of 2 nodes run, 45 % done, about 3 min left, loss 0.12"
        )
        assert str(FAILED) == "TrainJob mnist: Failed (OOMKilled in node-1 (exit code 137): it took more than 2Gi)"
        assert str(STARTING.steps[1]) == "node-1: Pending on machine-1, ImagePullBackOff: there is no such image"
        assert str(node(0, None, restarts=1)) == "node-0: Unknown on machine-0, started again"
        assert str(node(0, restarts=3)) == "node-0: Running on machine-0, started again 3 times"
        assert str(TUNE) == "torchtune: torchtune, 2 nodes with 2 gpu each, fine-tunes Llama-3.2-1B, deprecated"
        assert str(a_runtime()) == "torch-distributed: torch, 1 node"
        assert str(Runtime("mine")) == "mine: only its name is known; get_runtime('mine') finds the rest"
        assert str(EVENTS[1]) == "08:07:00 Warning FailedScheduling Pod held-node-0-0: no GPU is free (7 times)"

    def test_none_is_longer_than_a_line(self) -> None:
        assert all("\n" not in str(one) for one in (RUNNING, FAILED, HELD, TUNE, *EVENTS, *FAILED.steps))


class TestListing:
    def test_it_is_a_list_to_programs(self) -> None:
        jobs = Listing([RUNNING, FAILED], "TrainJobs")
        assert jobs == [RUNNING, FAILED]
        assert isinstance(jobs, list)
        assert repr(jobs) == str(jobs), "typed at a prompt, it is looked at"
        assert repr(list(jobs)) == repr([RUNNING, FAILED])
        assert jobs[0] is RUNNING
        assert [job.name for job in jobs[:1]] == ["mnist"]

    def test_a_part_of_it_looks_like_it(self) -> None:
        part = Listing([RUNNING, FAILED], "TrainJobs")[1:]
        assert isinstance(part, Listing)
        assert str(part).startswith("NAME")

    def test_copies_and_pickles_look_like_it(self) -> None:
        jobs = Listing([RUNNING], "TrainJobs")
        for other in (copy.copy(jobs), copy.deepcopy(jobs), pickle.loads(pickle.dumps(jobs))):  # noqa: S301 our own
            assert other == jobs
            assert other.what == "TrainJobs"

    def test_empty_it_says_of_what(self) -> None:
        assert str(Listing([], "TrainJobs")) == "no TrainJobs"
        assert read(Listing([], "events")._repr_html_()).text == "no events"

    def test_each_kind_is_a_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        for listing, column in (
            (Listing([RUNNING], "TrainJobs"), "runtime"),
            (Listing([TUNE], "runtimes"), "framework"),
            (Listing(EVENTS, "events"), "reason"),
        ):
            assert column.upper() in str(listing).splitlines()[0]
            assert column in read(listing._repr_html_()).text

    def test_it_has_the_width_of_the_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        long = Listing([Event("Pod", "p", "word " * 50, "r", CREATED_AT)], "events")
        assert max(map(len, str(long).splitlines())) <= 60

    def test_the_evil_one_is_text(self) -> None:
        listing = Listing([evil_job()], "TrainJobs")
        assert "\x1b" not in str(listing)
        assert "script" not in read(listing._repr_html_()).tags
        assert EVIL.split("&", maxsplit=1)[0] in str(listing)


async def test_the_clients_lists_can_be_looked_at() -> None:
    backend = FakeBackend(RUNNING)
    backend.events = EVENTS
    client = AsyncTrainerClient(backend=backend)
    for listing in (await client.list_jobs(), await client.list_runtimes(), await client.get_job_events("mnist")):
        assert isinstance(listing, Listing)
        assert len(str(listing).splitlines()) == len(listing) + 1
