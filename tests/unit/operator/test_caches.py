"""Data caches of TrainJobs: a key that stays, a Service, and JobSets of releases that knew no cache."""

from __future__ import annotations

from typing import Any

from tests.unit.operator.objects import runtime, train_job
from tests.unit.operator.test_begun import owned_by_us
from tests.unit.operator.world import DONE, PIPELINE, World
from trainplane.render.plugins.cache import Cache
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, SECRETS, SERVICES, TRAIN_JOBS

STEP = "cache-initializer"


def with_cache() -> dict[str, Any]:
    """Return a runtime with the step, as the guide writes it."""
    made = runtime()
    jobs: list[dict[str, Any]] = made["spec"]["template"]["spec"]["replicatedJobs"]
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": STEP}
    pod = {"spec": {"containers": [{"name": STEP, "image": "ghcr.io/kubeflow/trainer/dataset-initializer"}]}}
    jobs.insert(0, {"name": STEP, "template": {"metadata": {"labels": labels}, "spec": {"template": pod}}})
    return made


async def begun(world: World) -> World:
    world.put(CLUSTER_TRAINING_RUNTIMES, with_cache())
    world.put(TRAIN_JOBS, train_job(suspend=True))
    await world.settle()
    return world


def images(world: World) -> list[str]:
    jobset = world.job_set() or {}
    jobs = jobset["spec"]["replicatedJobs"]
    return [job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] for job in jobs]


async def test_the_key_is_drawn_once_and_the_service_leads_to_the_head() -> None:
    world = await begun(World())
    key = (world.find(SECRETS, "job-cache") or {})["data"]["key"]
    service = world.find(SERVICES, "job-cache-service")
    assert service is not None
    assert service["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
    owned_by_us(world)
    later = world.restart()
    later.edit(suspend=False)
    assert await later.settle() == DONE
    assert (later.find(SECRETS, "job-cache") or {})["data"]["key"] == key


async def test_what_a_former_release_made_resumes_as_it_was_made() -> None:
    world = await begun(World(pipeline=PIPELINE.without(Cache.name)))
    owned_by_us(world)
    world.pipeline = PIPELINE
    later = world.restart()
    later.edit(suspend=False)
    assert await later.settle() == DONE
    assert images(later)[0] == "ghcr.io/kubeflow/trainer/dataset-initializer"
    assert "successPolicy" not in (later.job_set() or {})["spec"]
    assert later.find(SERVICES, "job-cache-service") is None
