"""A TrainJob from its creation to its end."""

from __future__ import annotations

import yaml

from tests.unit.operator.objects import BROKEN, COMPLETED, condition, counts, runtime, train_job
from tests.unit.operator.world import DONE, World, started
from trainplane.kube.controller import RequeueAfter
from trainplane.operator.status import STARTED_SECONDS, UNHURRIED_SECONDS
from trainplane.operator.witness import LATE_SECONDS
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS, TRAINING_RUNTIMES


async def test_a_new_trainjob_costs_one_snapshot_and_one_jobset_and_no_read() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job())
    world.hear()
    assert await world.settle() == DONE
    assert [str(one) for one in world.client.asked] == ["create configmaps job-runtime-snapshot", "apply jobsets job"]
    assert "status" not in world.train_job()
    assert world.news() == ["JobSetCreated"]
    assert world.messages() == ["created JobSet job for 2 pods"]


async def test_the_jobset_is_the_trainjobs_own() -> None:
    world = await started()
    jobset = world.job_set()
    assert jobset is not None
    (owner,) = jobset["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "name": "job",
        "uid": "uid-job",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 2


async def test_the_snapshot_keeps_the_whole_runtime() -> None:
    world = await started()
    snapshot = world.snapshot()
    assert snapshot is not None
    kept = yaml.safe_load(snapshot["data"]["runtime"])
    live = world.find(CLUSTER_TRAINING_RUNTIMES, "torch", "")
    assert live is not None
    version = live["metadata"].pop("resourceVersion")
    assert version not in snapshot["data"]["runtime"]
    assert kept == live
    assert snapshot["metadata"]["ownerReferences"][0]["uid"] == "uid-job"


async def test_a_namespaced_runtime_is_found_in_the_trainjobs_namespace() -> None:
    world = World()
    world.put(TRAINING_RUNTIMES, runtime("mine", kind="TrainingRuntime"))
    world.put(TRAIN_JOBS, train_job(runtime_ref={"name": "mine", "kind": "TrainingRuntime"}))
    await world.settle()
    assert world.job_set() is not None


async def test_a_runtime_that_the_mirror_does_not_know_yet_is_read() -> None:
    world = World()
    world.put(TRAIN_JOBS, train_job())
    world.sync()
    world.with_runtime()  # after the sync: only the API server knows
    assert await world.reconcile() == RequeueAfter(UNHURRIED_SECONDS)
    assert str(world.client.asked[0]) == "get clustertrainingruntimes torch"
    assert world.job_set() is not None


async def test_what_others_manage_is_not_touched() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(managedBy="example.com/another", suspend=True))
    assert await world.settle() == DONE
    assert world.client.asked == []
    assert world.news() == []


async def test_a_trainjob_that_is_gone_is_nobodys_business() -> None:
    world = World()
    assert await world.settle() == DONE
    assert world.client.asked == []


async def test_nothing_is_created_for_a_trainjob_that_is_being_deleted() -> None:
    world = World().with_runtime()
    meta = {"deletionTimestamp": "2026-01-01T00:01:00Z", "finalizers": ["example.com/hold"]}
    world.put(TRAIN_JOBS, train_job(meta=meta))
    assert await world.settle() == DONE
    assert world.client.asked == []


async def test_a_look_without_news_writes_and_reads_nothing() -> None:
    world = await started()
    for _ in range(3):
        assert await world.settle() == DONE
    assert world.client.asked == []


async def test_status_changes_do_not_make_objects_looked_at_again() -> None:
    world = await started()
    world.jobset_says(counts(active=1))
    await world.settle()
    assert [str(one) for one in world.client.asked] == ["patch trainjobs/status job"]


async def test_counts_come_from_the_jobset() -> None:
    world = await started()
    world.jobset_says(counts(active=1, ready=1), counts("other", suspended=2))
    await world.settle()
    status = world.train_job()["status"]
    assert status["jobsStatus"] == [counts(active=1, ready=1), counts("other", suspended=2)]
    assert set(status) == {"jobsStatus", "runtimeDigest", "phase", "nodesReady"}
    assert world.news() == ["JobSetCreated", "Started"]


async def test_the_end_is_copied_from_the_jobset() -> None:
    world = await started()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    assert await world.settle() == DONE
    (written,) = world.train_job()["status"]["conditions"]
    assert written == {**COMPLETED, "type": "Complete"}
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert world.news()[-1] == "Completed"


async def test_failure_is_terminal_and_told_with_its_cause() -> None:
    world = await started()
    world.jobset_says(counts(failed=1), conditions=(BROKEN,))
    await world.settle()
    await world.clock.advance(LATE_SECONDS)
    await world.settle()
    assert world.conditions() == [("Failed", "True", "FailedJobs")]
    assert world.news()[-1] == "Failed"
    assert world.messages()[-1] == "FailedJobs: jobset failed due to one or more job failures"
    world.delete(JOB_SETS)
    world.take_writes()
    assert await world.settle() == DONE
    assert world.take_writes() == []
    assert world.conditions() == [("Failed", "True", "FailedJobs")]


async def test_a_finished_trainjob_keeps_its_conditions_whatever_comes() -> None:
    world = await started()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    world.take_writes()
    world.edit(suspend=True)
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED, BROKEN))
    assert await world.settle() == DONE
    assert world.take_writes() == []
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]


async def test_what_pods_report_is_never_wiped() -> None:
    world = await started()
    progress = {"progressPercentage": 42, "lastUpdatedTime": "2026-01-01T00:01:00Z"}
    job = world.train_job()
    world.put(TRAIN_JOBS, {**job, "status": {"trainerStatus": progress}})
    world.jobset_says(counts(active=1), conditions=(COMPLETED,))
    await world.settle()
    assert world.train_job()["status"]["trainerStatus"] == progress
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]


async def test_conditions_of_others_are_kept() -> None:
    world = await started()
    job = world.train_job()
    theirs = condition("example.com/Audited")
    world.put(TRAIN_JOBS, {**job, "status": {"conditions": [theirs]}})
    world.jobset_says(counts(), conditions=(COMPLETED,))
    await world.settle()
    assert world.train_job()["status"]["conditions"][0] == theirs
    assert len(world.conditions()) == 2


async def test_a_status_that_changed_under_us_is_not_overwritten() -> None:
    world = await started()
    world.jobset_says(counts(active=1), conditions=(COMPLETED,))
    world.sync()
    theirs = {"conditions": [condition("example.com/Audited")]}
    world.put(TRAIN_JOBS, {**world.train_job(), "status": theirs})  # the mirror does not know
    assert await world.reconcile() == RequeueAfter(1.0)
    assert world.train_job()["status"] == theirs
    await world.settle()
    digest = world.train_job()["status"].pop("runtimeDigest")
    timeline = [{"stage": "Succeeded", "time": COMPLETED["lastTransitionTime"]}]
    ours = {"jobsStatus": [counts(active=1)], "phase": "Succeeded", "timeline": timeline}
    assert [one["type"] for one in world.train_job()["status"].pop("conditions")] == ["example.com/Audited", "Complete"]
    assert world.train_job()["status"] == ours
    assert digest.startswith("sha256:")


async def test_a_jobset_made_anew_empties_the_counts() -> None:
    world = await started()
    world.jobset_says(counts(active=1))
    await world.settle()
    world.delete(JOB_SETS)
    await world.settle()
    assert world.job_set() is not None
    await world.clock.advance(UNHURRIED_SECONDS)
    await world.settle()
    assert set(world.train_job()["status"]) == {"runtimeDigest", "phase", "nodesReady"}


async def test_a_trainjob_deleted_before_its_status_is_written() -> None:
    world = await started()
    world.jobset_says(counts(active=1), conditions=(COMPLETED,))
    world.sync()
    world.delete(TRAIN_JOBS)
    assert await world.reconcile() == DONE


async def test_a_look_waits_for_our_own_writes_to_come_back() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job())
    world.sync()
    world.stores.job_sets.observed = 0
    await world.reconcile()
    world.take_writes()
    assert await world.reconcile() == RequeueAfter(1.0)
    assert world.take_writes() == []
    world.sync()
    assert await world.reconcile() == RequeueAfter(UNHURRIED_SECONDS)


async def test_the_first_start_is_timed_and_only_the_first() -> None:
    world = await started()
    await world.clock.advance(30)
    for ready in (1, 0, 1):
        world.jobset_says(counts(ready=ready))
        await world.settle()
    assert world.registry.get_sample_value("trainplane_trainjob_start_seconds_count") == 1
    assert world.registry.get_sample_value("trainplane_trainjob_start_seconds_sum") == 30 + STARTED_SECONDS
