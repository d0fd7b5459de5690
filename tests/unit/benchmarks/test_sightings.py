"""The bench's driver sees every object, however often the API server ends, breaks or forgets its watch."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.operator.drive import summary
from benchmarks.operator.jobs import Bodies, Seen
from benchmarks.operator.sightings import Sightings
from trainplane.kube.projection import METADATA, Entry
from trainplane.kube.resource import CONFIG_MAPS
from trainplane.kube.testing.faults import Cut, Expire, Fault
from trainplane.kube.testing.server import FakeServer

NAMESPACE = "bench"
PATIENCE = 100.0


def name_of(entry: Entry) -> str | None:
    return entry.decode(Seen).metadata.name


def add(server: FakeServer, number: int) -> None:
    meta = {"name": f"job-{number}", "namespace": NAMESPACE}
    server.put(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


@pytest.mark.parametrize(
    "fault",
    [
        Cut(verb="watch", after=2, mid_line=False, times=2),
        Cut(verb="watch", after=2, times=2),
        Expire(verb="watch", after=2),
    ],
    ids=["ended", "broken", "forgotten"],
)
async def test_a_watch_that_ends_is_not_the_end_of_the_work(fault: Fault) -> None:
    async with FakeServer() as server, server.client() as client:
        server.add_fault(fault)
        async with Sightings(client, CONFIG_MAPS, NAMESPACE, name_of, METADATA) as sightings:
            for number in range(6):
                add(server, number)
            seen = await sightings.of(6, PATIENCE)
    assert set(seen) == {f"job-{number}" for number in range(6)}


async def test_a_part_is_never_taken_for_the_whole() -> None:
    async with (
        FakeServer() as server,
        server.client() as client,
        Sightings(client, CONFIG_MAPS, NAMESPACE, name_of, METADATA) as sightings,
    ):
        add(server, 0)
        await sightings.of(1, PATIENCE)
        with pytest.raises(TimeoutError):
            await sightings.of(2, 0.05)


def test_a_speed_counts_from_the_first_writing_to_the_last_sighting() -> None:
    figures = summary(10.0, {"a": 11.0, "b": 12.0}, {"a": 12.0, "b": 14.0})
    assert figures == {"jobs_per_s": 0.5, "seconds": 4.0, "p50_s": 2.0, "p99_s": 2.0}


def test_what_bare_writes_is_of_the_job_that_it_writes_for() -> None:
    bodies = Bodies(b'{"name":"job-of-the-template"}', b"", b"", b'{"uid":"00000000-0000-4000-8000-000000000000"}')
    assert msgspec.json.decode(Bodies.written_for(bodies.snapshot, "job-7", "u")) == {"name": "job-7"}
    assert msgspec.json.decode(Bodies.written_for(bodies.event, "job-7", "u-7")) == {"uid": "u-7"}
