from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.kept import NAMESPACE_UID, keep, numbered, parsed, pod
from trainplane.hub.apiserver.logquery import LogQuery, Rank, choose, parse, ranks, training_step
from trainplane.hub.errors import NoLogError, QueryError
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.retention import Retention
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    opened = Archive(tmp_path, Retention(), FakeClock())
    yield opened
    opened.close()


def test_parameters_are_read() -> None:
    assert parse({}) == LogQuery()
    assert parse({"follow": "true", "rank": "all", "tailLines": "5", "sinceSeconds": "60"}) == LogQuery(
        follow=True, rank=None, tail_lines=5, since_seconds=60
    )
    assert parse({"limitBytes": "7"}) == LogQuery(limit_bytes=7)
    assert parse({"previous": "1", "timestamps": "", "container": "c", "step": "s", "rank": "7"}) == LogQuery(
        previous=True, timestamps=True, container="c", step="s", rank=7
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"follow": "yes"}, "follow: is 'yes': write true or false"),
        ({"rank": "first"}, "rank: is 'first': write a number, or all"),
        ({"rank": "-1"}, "rank: is '-1'"),
        ({"tailLines": "1e3"}, "tailLines: is '1e3': write a number"),
        ({"sinceSeconds": "9" * 30}, "sinceSeconds"),
        ({"sinceSecond": "9"}, "sinceSecond: is no parameter of logs: these are container, follow"),
    ],
)
def test_wrong_parameters_are_named(query: dict[str, str], message: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse(query)
    assert message in str(raised.value)


def test_the_step_that_trains() -> None:
    assert training_step(["dataset-initializer", "node"]) == "node"
    assert training_step(["node", "launcher"]) == "launcher"
    assert training_step(["model-initializer", "trainer-a"]) == "trainer-a"
    assert training_step(["dataset-initializer"]) == "dataset-initializer"
    assert training_step([]) is None


def test_ranks_are_counted_through_jobs_and_indexes(archive: Archive) -> None:
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    for job_index in range(2):
        for index in range(3):
            keep(archive, pod(f"p-{job_index}-{index}", job_index=job_index, index=index), [])
    assert {str(rank): [each.name for each in pods] for rank, pods in ranks(job).items()} == {
        f"node-{job_index * 3 + index}": [f"p-{job_index}-{index}"] for job_index in range(2) for index in range(3)
    }


def test_a_rank_has_the_runs_of_its_pods_in_turn(archive: Archive) -> None:
    first, second = pod("a", created="2026-11-15T05:00:00Z"), pod("b", created="2026-11-15T06:00:00Z")
    keep(archive, second, numbered(1), run=0)
    keep(archive, first, numbered(1), run=1)
    job, _ = keep(archive, first, numbered(1), run=0)
    (runs,) = choose(job, LogQuery()).values()
    assert [(run.pod.name, run.number) for run in runs] == [("a", 0), ("a", 1), ("b", 0)]


def test_ranks_steps_and_containers_are_chosen(archive: Archive) -> None:
    keep(
        archive,
        pod("d", step="dataset-initializer", containers=("dataset-initializer",)),
        [],
        container="dataset-initializer",
    )
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    for index in range(3):
        tree = pod(f"n-{index}", index=index, containers=("sidecar", "node"))
        keep(archive, tree, numbered(1))
        keep(archive, tree, numbered(1), container="sidecar")

    def chosen(query: LogQuery) -> list[tuple[Rank, str]]:
        return [(rank, runs[-1].container) for rank, runs in choose(job, query).items()]

    assert chosen(LogQuery()) == [(Rank("node", 0), "node")]
    assert chosen(LogQuery(rank=2)) == [(Rank("node", 2), "node")]
    assert chosen(LogQuery(rank=None)) == [(Rank("node", number), "node") for number in range(3)]
    assert chosen(LogQuery(container="sidecar")) == [(Rank("node", 0), "sidecar")]
    assert chosen(LogQuery(step="dataset-initializer")) == [(Rank("dataset-initializer", 0), "dataset-initializer")]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (LogQuery(rank=5), "team/x has no such pod: there are node-0, node-1"),
        (LogQuery(step="launcher"), "team/x has no such pod: there are node-0, node-1"),
        (LogQuery(container="web"), "there is no container 'web': there are node"),
        (LogQuery(previous=True), "node-0 ran only once: there is nothing previous"),
        (LogQuery(rank=1), "no container of node-1 has started yet; follow=true waits for it"),
    ],
)
def test_what_is_not_there_is_explained(archive: Archive, query: LogQuery, message: str) -> None:
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    with pytest.raises(NoLogError, match="has had no pod yet; follow=true waits for it"):
        choose(job, query)
    keep(archive, pod("a"), numbered(1))
    archive.put_pod(job, "worker1", parsed(pod("b", index=1, state="waiting")))
    with pytest.raises(NoLogError) as raised:
        choose(job, query)
    assert message in str(raised.value)
