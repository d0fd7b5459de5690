from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.client.reading.documents import event, pod, train_job
from trainplane.api.moments import read_moment
from trainplane.client.reading.events import choose_events, first_time, last_time, read_events
from trainplane.client.reading.lines import read_line


def test_in_the_order_of_time_with_all_that_is_told() -> None:
    docs = [
        event("Pod", "p", "Late", second=20),
        event("TrainJob", "a", "Early", second=5, type="Warning", count=3, lastTimestamp="2026-11-15T05:00:40Z"),
        event("Pod", "p", "New", eventTime="2026-11-15T05:00:10.5Z", firstTimestamp=None, lastTimestamp=None),
    ]
    found = read_events(docs)
    assert [one.reason for one in found] == ["Early", "New", "Late"]
    first = found[0]
    assert (first.type, first.count, first.involved_object_kind) == ("Warning", 3, "TrainJob")
    assert first.last_time == datetime(2026, 11, 15, 5, 0, 40, tzinfo=UTC)
    assert found[1].event_time == datetime(2026, 11, 15, 5, 0, 10, 500000, tzinfo=UTC)


def test_a_series_counts_and_lasts() -> None:
    doc = event("Pod", "p", "Again", series={"count": 9, "lastObservedTime": "2026-11-15T05:01:00Z"})
    (one,) = read_events([doc])
    assert (one.count, one.last_time) == (9, datetime(2026, 11, 15, 5, 1, tzinfo=UTC))


def test_events_of_a_worker_name_it() -> None:
    docs = [event("Pod", "p", "X", annotations={"hub.trainplane.dev/cluster": name}) for name in ("worker1", "hub")]
    assert [one.cluster for one in read_events(docs)] == ["worker1", None]


@pytest.mark.parametrize(
    ("kind", "name", "about"),
    [
        ("TrainJob", "a", {}),
        ("TrainJob", "a", {"uid": "uid-a"}),
        ("JobSet", "a", {}),
        ("Job", "a-node-0", {}),
        ("Job", "a-launcher-0", {}),
        ("Pod", "a-node-0-1-x2z4q", {}),
        ("Pod", "a-dataset-initializer-0-0-x2z4q", {}),
        ("Pod", "named-by-hand", {}),
        ("Workload", "trainjob-a-0a1b2", {}),
        ("Job", "a-extra-0", {}),
    ],
)
def test_what_is_about_a_job(kind: str, name: str, about: Any) -> None:
    own = pod()
    own["metadata"]["name"] = "named-by-hand"
    job = train_job(jobs=[{"name": "extra"}])
    assert len(choose_events([event(kind, name, "X", about=about)], job, [own])) == 1


@pytest.mark.parametrize(
    ("kind", "name", "about"),
    [
        ("TrainJob", "b", {}),
        ("TrainJob", "a", {"uid": "an earlier one's"}),
        ("JobSet", "a-node", {}),
        ("Pod", "a-node-node-0-0-x2z4q", {}),
        ("Pod", "a-b-node-0-0-x2z4q", {}),
        ("Pod", "a-node-0-0", {}),
        ("Job", "a-node-0-0", {}),
        ("Workload", "trainjob-a-node-0a1b2", {}),
        ("Node", "a", {}),
    ],
)
def test_what_is_not(kind: str, name: str, about: Any) -> None:
    assert choose_events([event(kind, name, "X", about=about)], train_job()) == []


def test_events_of_an_earlier_job_of_the_name_are_left_out() -> None:
    old = event("JobSet", "a", "X", firstTimestamp="2026-11-15T04:59:00Z", lastTimestamp="2026-11-15T04:59:30Z")
    going_on = {**old, "lastTimestamp": "2026-11-15T05:00:30Z"}
    assert choose_events([old, going_on], train_job()) == [going_on]


def test_an_event_without_any_time_is_the_first() -> None:
    bare: dict[str, Any] = {"metadata": {}, "reason": "X"}
    assert first_time(bare) == last_time(bare) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [("2026-11-15T05:11:08Z", 0), ("2026-11-15T05:11:08.123456789Z", 123456), ("2026-11-15T06:11:08+01:00", 0)],
)
def test_times_are_read(text: str, microsecond: int) -> None:
    assert read_moment(text) == datetime(2026, 11, 15, 5, 11, 8, microsecond, tzinfo=UTC)


@pytest.mark.parametrize("text", [None, "", "yesterday", 3])
def test_what_is_no_time_is_none(text: Any) -> None:
    assert read_moment(text) is None


def test_lines_are_read() -> None:
    line = read_line("node-1", b"2026-11-15T05:11:08.123456789Z epoch 3\r")
    assert (line.step, line.text) == ("node-1", "epoch 3")
    assert line.time == datetime(2026, 11, 15, 5, 11, 8, 123456, tzinfo=UTC)
    assert str(line) == "[node-1] epoch 3"
    assert read_line("node-0", b"no time \xff").text == "no time \ufffd"
    assert read_line("node-0", b"no time").time is None
    assert read_line("node-0", b"2026-11-15T05:11:08Z ").text == ""
