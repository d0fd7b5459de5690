"""How training stands, asked by a pod's sender: the right answer, to the right pod, at a bounded cost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest

from tests.unit.operator.progress.test_server import JOBSET, Scene
from trainplane.kube.resource import Key
from trainplane.operator.progress import training
from trainplane.operator.progress.training import Trainings, read_wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/{}/training"
FIRST = "job-node-0-0-x"
JOB = Key("team", "job")
RUNNING: dict[str, Any] = {"running": {}}


def ended(code: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code}}


def run(
    scene: Scene, index: int = 0, node: Any = RUNNING, *, restart: str = "Never", step: str = "node", **others: Any
) -> None:
    """Let a pod of the training be in the mirror, its sender running."""
    pods = scene.cluster.pods
    scene.cluster.version += 1
    name = f"job-{step}-0-{index}-x"
    labels = {
        "jobset.sigs.k8s.io/jobset-uid": JOBSET,
        "jobset.sigs.k8s.io/jobset-name": "job",
        "jobset.sigs.k8s.io/replicatedjob-name": step,
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    states = {"node": node, "trainplane-output": RUNNING, **others}
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": "1",
            "labels": labels,
            "resourceVersion": str(scene.cluster.version),
        },
        "spec": {"restartPolicy": restart, "containers": [{"name": one} for one in states]},
        "status": {"phase": "Running", "containerStatuses": [{"name": n, "state": s} for n, s in states.items()]},
    }
    pods.put(pods.read(msgspec.Raw(msgspec.json.encode(tree))))
    scene.trainings.changed(JOB)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    scene.put()
    async with scene.server.listener:
        yield scene


async def ask(scene: Scene, query: str = "", *, name: str = "job", headers: Any = None) -> tuple[int, Any]:
    url = f"http://127.0.0.1:{scene.server.listener.port}{PATH.format(name)}{query}"
    async with aiohttp.ClientSession() as session:
        sent = scene.header(name) if headers is None else headers
        async with session.get(url, headers=sent) as response:
            told = await response.json()
            return response.status, told.get("training", told)


async def test_of_one_pod(scene: Scene) -> None:
    run(scene)
    assert await ask(scene) == (200, "running")
    run(scene, node=ended())
    assert await ask(scene) == (200, "succeeded")
    run(scene, node=ended(1))
    assert await ask(scene) == (200, "failed")
    assert scene.codes == [], "a question is no report"


async def test_a_container_that_is_started_again_has_not_failed(scene: Scene) -> None:
    run(scene, node=ended(1), restart="OnFailure")
    assert await ask(scene) == (200, "running")


async def test_a_container_that_has_not_begun_has_not_ended(scene: Scene) -> None:
    run(scene, node={"waiting": {"reason": "ContainerCreating"}})
    assert await ask(scene) == (200, "running")


async def test_every_container_but_the_sender_counts(scene: Scene) -> None:
    run(scene, node=ended(), sidecar=RUNNING)
    assert await ask(scene) == (200, "running")
    run(scene, node=ended(), sidecar=ended())
    assert await ask(scene) == (200, "succeeded")


async def test_other_pods_of_the_step_are_waited_for(scene: Scene) -> None:
    run(scene, node=ended())
    run(scene, 1)
    assert await ask(scene) == (200, "running")
    run(scene, 1, node=ended(2))
    assert await ask(scene) == (200, "running"), "whether it is replaced is not ours to say"
    run(scene, 1, node=ended())
    assert await ask(scene) == (200, "succeeded")


async def test_other_pods_wait_for_none(scene: Scene) -> None:
    run(scene)
    run(scene, 1, node=ended())
    headers = scene.header(salt="second")
    scene.cluster.sign(headers["Authorization"].removeprefix("Bearer "), pod="job-node-0-1-x")
    assert await ask(scene, headers=headers) == (200, "succeeded")


async def test_pods_of_other_steps_are_not(scene: Scene) -> None:
    run(scene, node=ended())
    run(scene, step="worker")
    assert await ask(scene) == (200, "succeeded")


async def test_a_question_waits_for_the_answer(scene: Scene) -> None:
    run(scene)
    asked = asyncio.create_task(ask(scene, "?wait=25"))
    await until(lambda: scene.trainings.waiting == 1)
    run(scene, node=ended())
    async with asyncio.timeout(20):
        assert await asked == (200, "succeeded")
    assert (scene.trainings.waiting, scene.trainings._waiting) == (0, {})


async def test_a_question_waits_no_longer_than_it_may(scene: Scene) -> None:
    run(scene)
    async with asyncio.timeout(20):
        assert await ask(scene, "?wait=1") == (200, "running")
    assert (scene.trainings.waiting, scene.trainings._waiting) == (0, {})


async def test_a_replica_that_ends_lets_nobody_wait(scene: Scene) -> None:
    run(scene)
    asked = asyncio.create_task(ask(scene, "?wait=25"))
    await until(lambda: scene.trainings.waiting == 1)
    scene.trainings.close()
    async with asyncio.timeout(20):
        assert await asked == (200, "running")
        assert await ask(scene, "?wait=25") == (200, "running")


@pytest.mark.parametrize(
    ("query", "seconds"),
    [("", 0), ("wait=5", 5), ("wait=999", 25), ("wait=-1", 0), ("wait=1e9", 0), ("wait=9999999", 0), ("wait=٣", 0)],
)
def test_seconds_have_a_bound(query: str, seconds: float) -> None:
    assert read_wait(query) == seconds


async def test_who_may_not_ask(scene: Scene) -> None:
    run(scene)
    scene.put("other")
    assert (await ask(scene, headers={}))[0] == 401
    assert (await ask(scene, headers={"Authorization": "Bearer made.up.token"}))[0] == 401
    assert (await ask(scene, headers=scene.header("other")))[0] == 403, "a token of another TrainJob"
    scene.cluster.run("stranger", "2", "another jobset")
    stranger = scene.header(salt="stranger")
    scene.cluster.sign(stranger["Authorization"].removeprefix("Bearer "), pod="stranger", uid="2")
    assert (await ask(scene, headers=stranger))[0] == 403, "a pod of another JobSet with a token for this TrainJob"
    assert (await ask(scene, name="absent"))[0] == 404
    unbound = scene.header(salt="unbound")
    scene.cluster.sign(unbound["Authorization"].removeprefix("Bearer "), pod="")
    assert (await ask(scene, headers=unbound))[0] == 403


async def test_a_thousand_questions_of_one_pod_are_one(scene: Scene) -> None:
    run(scene)
    tasks = [asyncio.create_task(scene.trainings.wait(JOB, JOBSET, FIRST, 25.0)) for _ in range(1000)]
    await until(lambda: sum(task.done() for task in tasks) == 999)
    assert scene.trainings.waiting == 1
    run(scene, node=ended())
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*tasks)
    assert answers[-1] == ("succeeded", True)
    assert (scene.trainings.waiting, scene.trainings._waiting) == (0, {})


async def test_questions_of_thousands_of_pods_are_answered_at_once(scene: Scene) -> None:
    trainings = Trainings(scene.cluster.pods, most_waiting=10)
    for index in range(30):
        run(scene, index)
    asked = [
        asyncio.create_task(trainings.wait(JOB, JOBSET, f"job-node-0-{index}-x", training.MOST_SECONDS))
        for index in range(30)
    ]
    await until(lambda: sum(task.done() for task in asked) == 20)
    assert trainings.waiting == 10
    assert [task.result() for task in asked if task.done()] == [("running", False)] * 20
    trainings.close()
    await asyncio.gather(*asked)
    assert trainings.waiting == 0


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.01)
