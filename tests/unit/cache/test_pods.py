"""Where a pod stands among those of its cache, and how its figures are written."""

from __future__ import annotations

import pytest

from tests.unit.cache.plans import plan
from trainplane.cache.errors import InvalidError
from trainplane.cache.meter import Sample, exposition
from trainplane.cache.roster import LOST, Roster
from trainplane.cache.settings import read_place, read_source
from trainplane.cache.wire import Hello

POD = {"HOSTNAME": "job-cache-0-2", "CACHE_SUBDOMAIN": "job", "JOB_COMPLETION_INDEX": "2", "CLUSTER_SIZE": "4"}


def test_a_pod_knows_its_address_and_its_workers() -> None:
    place = read_place(POD)
    assert place.address == "job-cache-0-2.job:50052"
    assert place.workers == ("job-cache-0-1", "job-cache-0-2", "job-cache-0-3")


def test_one_pod_alone_is_its_own_worker() -> None:
    assert read_place({"HOSTNAME": "job-cache-0-0"}).workers == ("job-cache-0-0",)


def test_a_pod_of_another_name_expects_nobody() -> None:
    assert read_place({**POD, "HOSTNAME": "somewhere"}).workers == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JOB_COMPLETION_INDEX", "4"),
        ("JOB_COMPLETION_INDEX", "-1"),
        ("CLUSTER_SIZE", "0"),
        ("CLUSTER_SIZE", "many"),
        ("IDLE_SECONDS", "1.5"),
        ("DATA_PORT", "70000"),
        ("DATA_PORT", "9" * 4300),
        ("DATA_PORT", "0" * 18 + "99999999"),
    ],
)
def test_a_mistake_is_named_by_its_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidError, match=name):
        read_place({**POD, name: value})


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"STORAGE_URI": "write://reviews"}, "CACHE_TOKEN_FILE is not set"),
        ({"STORAGE_URI": "write://Reviews", "CACHE_TOKEN_FILE": "t"}, "'Reviews' is no name"),
        ({"STORAGE_URI": "write://", "CACHE_TOKEN_FILE": "t"}, "'' is no name"),
        ({"STORAGE_URI": "write://a/../b", "CACHE_TOKEN_FILE": "t"}, "is no name"),
    ],
)
def test_a_dataset_that_is_written_has_a_name_and_a_token(env: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidError, match=words):
        read_source(env)


def test_who_comes_first_loads_no_more_than_its_share() -> None:
    roster = Roster(plan([100, 100], 10), expected=("w-1", "w-2", "w-3"), now=1_000.0)
    roster.hear(Hello("w-2", "grpc://w-2:1", 0.0), 1_001.0)
    assert roster.members(1_001.0) == ("w-1", "w-2", "w-3")
    assert set(roster.living(1_001.0)) == {"w-2"}
    roster.hear(Hello("w-2", "grpc://w-2:1", 0.0), 1_000.0 + LOST)
    assert roster.members(1_000.0 + LOST) == ("w-2",)


def test_figures_are_written_as_prometheus_reads_them() -> None:
    assert exposition([Sample("rows", "gauge", "Rows.", 12_345_678_901)]) == (
        "# HELP trainplane_cache_rows Rows.\n# TYPE trainplane_cache_rows gauge\ntrainplane_cache_rows 12345678901\n"
    )
