"""People: what they send is what they mean, or a promise seems broken that nobody made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.apiserver import TRAINJOBS, ApiServer, Record
from tests.simulation.people import NAMESPACE, QUEUE_LABEL, People
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from trainplane.kube.testing.storage import Tree

JOB: Tree = {"runtime": "torch", "nodes": 3, "seconds": 60, "codes": [0]}
B = Key(NAMESPACE, "b")


def _apply_again(*created: Tree) -> Tree:
    """Return the TrainJob after one was created as each of these, in vain but for the first, and applied again."""
    server, refusals = ApiServer(Record()), []
    people = People(server, lambda key, why: refusals.append((key, why)))

    async def all_of_it() -> None:
        for told in created:
            await people.create("b", told)
        await people.reapply("b", {})

    asyncio.run(all_of_it())
    assert refusals == []
    job = server.find(TRAINJOBS, B)
    assert job is not None
    return job


def test_a_file_that_was_not_taken_is_not_applied_to_the_training_of_its_name() -> None:
    job = _apply_again(JOB, {**JOB, "runtime": "brief", "nodes": 1, "queue": True})
    assert job["spec"]["runtimeRef"]["name"] == "torch"
    assert job["spec"]["trainer"] == {"numNodes": 3}
    assert QUEUE_LABEL not in job["metadata"]["labels"]


def test_what_is_applied_again_is_the_file_without_what_kueue_wrote() -> None:
    job = _apply_again({**JOB, "queue": True})
    assert job["metadata"]["labels"] == {QUEUE_LABEL: "queue"}
    assert "runtimePatches" not in job["spec"]
