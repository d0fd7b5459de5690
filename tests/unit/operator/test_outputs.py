"""A TrainJob that says where its output goes ends as its sender says, in one write."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.operator.objects import BROKEN, COMPLETED, counts, train_job
from tests.unit.operator.test_begun import owned_by_us
from tests.unit.operator.world import DONE, PIPELINE, World
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.output import Output
from trainplane.render.plugins.trainjobstatus import TrainJobStatus
from trainplane.resources import PODS, TRAIN_JOBS

URI = "s3://bucket/models"
WITH_OUTPUT = Pipeline.default(
    also=[Output("initializers:1", can_ask=True), TrainJobStatus("https://operator.system.svc:10443")]
)
SENT = {"output": "sent", "files": 2, "bytes": 10, "digest": f"sha256:{'0' * 64}"}
DENIED = {
    "output": "unsent",
    "cause": "Denied",
    "message": "the bucket refused these keys",
    "remedy": "allow PutObject",
}


def annotated(**spec: Any) -> dict[str, Any]:
    return train_job(meta={"annotations": {"trainplane.dev/output": URI}}, **spec)


async def trained(said: Any, *, index: int = 0, pipeline: Pipeline = WITH_OUTPUT) -> World:
    """Return a world in which a TrainJob with an output ran to its end, and the sender of a pod said something."""
    world = World(pipeline=pipeline).with_runtime()
    world.put(TRAIN_JOBS, annotated())
    await world.settle()
    tell(world, said, index=index)
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.client.asked.clear()
    return world


def tell(world: World, said: Any, *, index: int = 0, phase: str = "Succeeded") -> str:
    text = said if isinstance(said, str) else json.dumps(said)
    ends = [
        {"name": "node", "state": {"terminated": {"exitCode": 0}}},
        {"name": "trainplane-output", "state": {"terminated": {"exitCode": 0, "message": text}}},
    ]
    return world.pod_says(index, phase=phase, containerStatuses=ends)


async def test_sent_and_complete_in_one_write() -> None:
    world = await trained(SENT)
    await world.settle()
    assert world.conditions() == [("OutputSent", "True", "OutputSent"), ("Complete", "True", "AllJobsCompleted")]
    assert world.take_writes().count("patch trainjobs/status job") == 1
    assert world.train_job()["status"]["phase"] == "Succeeded"


async def test_denied_is_failed_with_the_cause_and_nothing_is_trained_again() -> None:
    world = await trained(DENIED)
    await world.settle()
    assert world.conditions() == [("OutputSent", "False", "OutputNotSent"), ("Failed", "True", "OutputNotSent")]
    assert world.take_writes() == ["patch trainjobs/status job"], "neither deleted nor made anew"
    assert any("Denied: the bucket refused these keys" in one for one in world.messages())


async def test_nothing_is_said_before_the_end() -> None:
    world = await trained(SENT)
    world.jobset_says(counts(active=1, ready=1))
    await world.settle()
    assert world.conditions() == []


async def test_a_training_that_failed_says_nothing_of_output() -> None:
    world = await trained({"output": "none", "message": "training failed"})
    world.pod_says(0, phase="Failed", exit_code=1)
    world.jobset_says(counts(failed=1), conditions=(BROKEN,))
    await world.settle()
    assert [one[0] for one in world.conditions()] == ["Failed"]
    assert world.conditions()[0][2] != "OutputNotSent"


async def test_a_word_that_the_mirror_has_not_seen_is_asked_for() -> None:
    world = await trained(SENT)
    world.sync(PODS)
    await world.reconcile()
    assert world.conditions()[-1][:2] == ("Complete", "True")
    assert [str(one) for one in world.client.asked].count("list pods ") == 1


async def test_without_a_word_it_is_not_sent() -> None:
    for index, said in ((0, ""), (1, SENT), (0, "x" * 5000)):
        world = await trained(said, index=index)
        await world.settle()
        assert world.conditions()[-1] == ("Failed", "True", "OutputNotSent"), (index, said)


async def test_only_a_pod_that_succeeded_is_believed() -> None:
    world = await trained(SENT)
    tell(world, SENT, phase="Running")
    await world.settle()
    assert world.conditions()[-1] == ("Failed", "True", "OutputNotSent")


async def test_pods_of_another_jobset_are_not_believed() -> None:
    world = World(pipeline=WITH_OUTPUT).with_runtime()
    world.put(TRAIN_JOBS, annotated())
    await world.settle()
    world.pod_says(
        0,
        uid="another",
        phase="Succeeded",
        containerStatuses=[
            {"name": "trainplane-output", "state": {"terminated": {"exitCode": 0, "message": json.dumps(SENT)}}}
        ],
    )
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert world.conditions()[-1] == ("Failed", "True", "OutputNotSent")


async def test_a_jobset_of_a_former_release_is_complete_and_never_changed() -> None:
    world = World(pipeline=PIPELINE).with_runtime()
    world.put(TRAIN_JOBS, annotated(suspend=True))
    await world.settle()
    owned_by_us(world)
    world.pipeline = WITH_OUTPUT
    world = world.restart()
    world.edit(suspend=False)
    assert await world.settle() == DONE
    jobset = world.job_set() or {}
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["containers"]] == ["node"]
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert [one[:2] for one in world.conditions()] == [("Suspended", "False"), ("Complete", "True")]
