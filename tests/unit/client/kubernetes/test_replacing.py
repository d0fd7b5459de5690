"""Scaling: refused before anything is deleted, and nothing of the user's lost on the way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.reading.documents import NAMESPACE, condition, runtime, train_job
from trainplane.client.backends.kubernetes.replacing import ATTEMPTS, LABEL_STANDS_FOR, replace, scaled, scaling
from trainplane.client.errors import ForbiddenError, NotFoundError, RefusedError, UnreachableError
from trainplane.kube.clock import SystemClock
from trainplane.kube.errors import TransportError
from trainplane.kube.resource import Key
from trainplane.kube.testing.faults import Refuse
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS

if TYPE_CHECKING:
    from tests.unit.client.kubernetes.stage import Stage


class QuickClock(SystemClock):
    """Time that is not waited for."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


HERE = Key(NAMESPACE, "a")


def a_job(**spec: Any) -> dict[str, Any]:
    job = train_job("a")
    job["metadata"] |= {"labels": {"team": "x"}, "annotations": {"note": "y"}, "finalizers": ["f"], "uid": "old"}
    job["spec"] |= {"trainer": {"image": "i", "numNodes": 2}} | spec
    job["status"] = {"conditions": []}
    return job


class TestTheNewDocument:
    def test_it_is_what_the_user_wrote_with_another_number(self) -> None:
        made = scaled(a_job(activeDeadlineSeconds=9), 5)
        assert made["metadata"] == {"name": "a", "labels": {"team": "x"}, "annotations": {"note": "y"}}
        assert made["spec"]["trainer"] == {"image": "i", "numNodes": 5}
        assert made["spec"]["activeDeadlineSeconds"] == 9
        assert "status" not in made

    def test_what_kueue_wrote_is_kueues_to_write_again(self) -> None:
        patches = [{"manager": "kueue.x-k8s.io/manager"}, {"manager": "trainplane.dev/sdk"}]
        job = a_job(runtimePatches=patches, suspend=False)
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q"
        spec = scaled(job, 1)["spec"]
        assert spec["runtimePatches"] == [{"manager": "trainplane.dev/sdk"}]
        assert "suspend" not in spec

    def test_a_job_that_is_held_by_hand_stays_held(self) -> None:
        assert scaled(a_job(suspend=True), 1)["spec"]["suspend"] is True

    def test_what_kubectl_noted_of_the_old_one_goes(self) -> None:
        job = a_job()
        job["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
        assert "annotations" not in scaled(job, 1)["metadata"]


class TestReplacing:
    async def test_it_rehearses_deletes_and_creates(self, stage: Stage) -> None:
        stage.server.put(TRAIN_JOBS, train_job("a"))
        await stage.backend.scale_job("a", 4)
        assert stage.server.objects(TRAIN_JOBS)[HERE]["spec"]["trainer"]["numNodes"] == 4
        assert list(stage.server.objects(TRAIN_JOBS)) == [HERE], "the rehearsal leaves nothing"

    async def test_a_refusal_comes_before_anything_is_deleted(self, stage: Stage) -> None:
        stage.server.put(TRAIN_JOBS, train_job("a"))
        before = stage.server.objects(TRAIN_JOBS)[HERE]
        stage.server.add_fault(Refuse(code=403, reason="Forbidden", verb="create"))
        with pytest.raises((RefusedError, ForbiddenError), match="cannot be scaled to 9"):
            await stage.backend.scale_job("a", 9)
        assert stage.server.objects(TRAIN_JOBS)[HERE] == before

    @pytest.mark.parametrize("failures", [2, 6])
    async def test_a_cluster_that_stops_answering_is_asked_again_for_half_a_minute(
        self, stage: Stage, failures: int
    ) -> None:
        stage.server.put(TRAIN_JOBS, train_job("a"))
        asked: list[dict[str, Any]] = []

        async def create(job: dict[str, Any]) -> dict[str, Any]:
            asked.append(job)
            if len(asked) <= failures:
                raise TransportError("no answer")
            return job

        async def is_done(_: dict[str, Any]) -> bool:
            return False

        clock = QuickClock()
        work = replace(stage.client, NAMESPACE, "a", scaling(4), clock=clock, create=create, is_done=is_done)
        if failures < ATTEMPTS:
            await work
        else:
            with pytest.raises(UnreachableError, match="is deleted and could not be created again: no answer"):
                await work
        assert clock.slept == [1, 2, 4, 8, 16][: min(failures, ATTEMPTS - 1)]
        assert {job["spec"]["trainer"]["numNodes"] for job in asked} == {4}

    async def test_one_that_has_that_number_is_left_alone(self, stage: Stage) -> None:
        stage.server.put(TRAIN_JOBS, a_job())
        before = stage.server.objects(TRAIN_JOBS)[HERE]
        await stage.backend.scale_job("a", 2)
        assert stage.server.objects(TRAIN_JOBS) == {HERE: before}

    async def test_a_copy_that_an_interrupted_call_left_of_it_goes(self, stage: Stage) -> None:
        stage.server.put(TRAIN_JOBS, a_job())
        left = train_job("scaling-1")
        left["metadata"]["labels"] = {LABEL_STANDS_FOR: "a"}
        stage.server.put(TRAIN_JOBS, left)
        await stage.backend.scale_job("a", 2)
        assert list(stage.server.objects(TRAIN_JOBS)) == [HERE]

    async def test_so_is_one_whose_runtime_says_that_number(self, stage: Stage) -> None:
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, runtime(policy={"numNodes": 3, "torch": {}}))
        stage.server.put(TRAIN_JOBS, train_job("a"))
        before = stage.server.objects(TRAIN_JOBS)[HERE]
        await stage.backend.scale_job("a", 3)
        assert stage.server.objects(TRAIN_JOBS) == {HERE: before}
        await stage.backend.scale_job("a", 2)
        assert stage.server.objects(TRAIN_JOBS)[HERE]["spec"]["trainer"]["numNodes"] == 2

    @pytest.mark.parametrize("end", ["Complete", "Failed"])
    @pytest.mark.parametrize("nodes", [2, 4])
    async def test_what_is_over_stays_as_it_is(self, stage: Stage, end: str, nodes: int) -> None:
        stage.server.put(TRAIN_JOBS, {**a_job(), "status": {"conditions": [condition(end)]}})
        before = stage.server.objects(TRAIN_JOBS)[HERE]
        with pytest.raises(RefusedError, match=r"a is over and cannot be scaled: .* Submit it under another name"):
            await stage.backend.scale_job("a", nodes)
        assert stage.server.objects(TRAIN_JOBS) == {HERE: before}

    async def test_one_that_is_not_there(self, stage: Stage) -> None:
        with pytest.raises(NotFoundError, match="there is no TrainJob a in namespace team"):
            await stage.backend.scale_job("a", 2)


class TestAnotherAttempt:
    @pytest.mark.parametrize("end", ["Complete", "Failed"])
    async def test_it_takes_the_place_of_what_is_over(self, stage: Stage, end: str) -> None:
        stage.server.put(TRAIN_JOBS, train_job("a", nodes=2, conditions=[condition(end)]))
        old = stage.server.objects(TRAIN_JOBS)[HERE]
        await stage.backend.restart_job("a")
        ((key, new),) = stage.server.objects(TRAIN_JOBS).items()
        assert key == HERE
        assert new["metadata"]["uid"] != old["metadata"]["uid"]
        assert new["spec"] == old["spec"]
        assert "status" not in new

    async def test_what_is_not_over_stays_as_it_is(self, stage: Stage) -> None:
        stage.server.put(TRAIN_JOBS, a_job())
        before = stage.server.objects(TRAIN_JOBS)[HERE]
        with pytest.raises(RefusedError, match="a is not over and cannot be retried: wait for its end, or delete it"):
            await stage.backend.restart_job("a")
        assert stage.server.objects(TRAIN_JOBS) == {HERE: before}

    async def test_a_refusal_comes_before_anything_is_deleted(self, stage: Stage) -> None:
        stage.server.put(TRAIN_JOBS, {**a_job(), "status": {"conditions": [condition("Failed")]}})
        before = stage.server.objects(TRAIN_JOBS)[HERE]
        stage.server.add_fault(Refuse(code=403, reason="Forbidden", verb="create"))
        with pytest.raises((RefusedError, ForbiddenError), match="a cannot be retried"):
            await stage.backend.restart_job("a")
        assert stage.server.objects(TRAIN_JOBS) == {HERE: before}

    async def test_a_call_that_was_ended_halfway_is_taken_up_again(self, stage: Stage) -> None:
        """Somebody was killed behind the deletion: the suspended copy is all that is left."""
        noted = {"metadata": {"name": "a", "labels": {"team": "x"}}, "suspend": None}
        kept = a_job(suspend=True)
        kept["metadata"] = {
            "name": "scaling-1234",
            "namespace": NAMESPACE,
            "labels": {LABEL_STANDS_FOR: "a"},
            "annotations": {LABEL_STANDS_FOR: json.dumps(noted)},
        }
        stage.server.put(TRAIN_JOBS, kept)
        await stage.backend.restart_job("a")
        ((key, new),) = stage.server.objects(TRAIN_JOBS).items()
        assert key == HERE
        assert new["metadata"]["labels"] == {"team": "x"}
        assert "suspend" not in new["spec"]
