from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.operator.objects import NAMESPACE, condition, counts, runtime, train_job
from tests.unit.operator.world import PIPELINE, World
from trainplane.kube.admission import AdmissionRequest, GroupVersionKind, Verdict
from trainplane.kube.testing.patches import json_patch
from trainplane.operator.stores import Stores
from trainplane.operator.webhooks import (
    MUTATE_CLUSTER_TRAINING_RUNTIME,
    MUTATE_TRAIN_JOB,
    MUTATE_TRAINING_RUNTIME,
    PATHS,
    VALIDATE_CLUSTER_TRAINING_RUNTIME,
    VALIDATE_TRAIN_JOB,
    Webhooks,
)
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, TRAIN_JOBS, TRAINING_RUNTIMES

Tree = dict[str, Any]

PATCH = {"manager": "example.com/team", "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"a": "b"}}}}}


def raw(tree: Tree | None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(tree)) if tree is not None else msgspec.Raw(b"null")


async def ask(world: World, path: str, new: Tree | None, old: Tree | None = None, operation: str = "") -> Verdict:
    webhooks = Webhooks(world.client, world.runtimes, world.snapshots, PIPELINE, world.clock)
    some = new or old or {}
    request = AdmissionRequest(
        uid="1",
        operation=operation or ("CREATE" if old is None else "UPDATE"),  # type: ignore[arg-type] # one of the words
        kind=GroupVersionKind(kind=some["kind"]),
        name=some["metadata"]["name"],
        namespace=some["metadata"].get("namespace", ""),
        object=raw(new),
        old_object=raw(old),
    )
    answer = webhooks.routes()[path](request)
    return answer if isinstance(answer, Verdict) else await answer


@pytest.fixture
def world() -> World:
    world = World().with_runtime()
    world.sync()
    return world


def test_the_paths_are_the_references_and_two_more(world: World) -> None:
    webhooks = Webhooks(world.client, world.runtimes, world.snapshots, PIPELINE, world.clock)
    assert tuple(webhooks.routes()) == PATHS
    assert PATHS == (
        "/mutate-trainer-kubeflow-org-v1alpha1-trainjob",
        "/validate-trainer-kubeflow-org-v1alpha1-trainjob",
        "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime",
        "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime",
        "/mutate-trainer-kubeflow-org-v1alpha1-trainingruntime",
        "/mutate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime",
    )


@pytest.mark.parametrize("path", [MUTATE_TRAINING_RUNTIME, MUTATE_CLUSTER_TRAINING_RUNTIME])
async def test_a_runtime_that_names_another_mpi_gets_the_annotation(world: World, path: str) -> None:
    written = runtime(annotations={"a": "b"})
    written["spec"]["mlPolicy"] = {"mpi": {"mpiImplementation": "IntelMPI"}}
    verdict = await ask(world, path, written)
    stored = json_patch(written, [dict(operation) for operation in verdict.patch])
    assert stored["spec"]["mlPolicy"] == {"mpi": {"mpiImplementation": "OpenMPI"}}
    assert stored["metadata"]["annotations"] == {"a": "b", "trainer.kubeflow.org/mpi-implementation": "Intel"}
    assert verdict.warnings
    assert all(len(warning) <= 256 for warning in verdict.warnings)
    again = await ask(world, path, stored, stored)
    assert (again.patch, again.warnings) == ([], ())
    assert (await ask(world, path, None, stored, "DELETE")).patch == ()


async def test_patches_are_stamped(world: World) -> None:
    job = train_job(runtimePatches=[PATCH])
    verdict = await ask(world, MUTATE_TRAIN_JOB, job)
    assert verdict.allowed
    stored = json_patch(job, [dict(operation) for operation in verdict.patch])
    assert stored["spec"]["runtimePatches"][0]["time"] == "2026-01-01T00:00:00Z"
    assert world.client.asked == []


async def test_an_unchanged_patch_keeps_its_time(world: World) -> None:
    old = train_job(runtimePatches=[{**PATCH, "time": "2025-01-01T00:00:00Z"}])
    new = train_job(runtimePatches=[{**PATCH, "time": "2025-01-01T00:00:00Z"}], suspend=True)
    verdict = await ask(world, MUTATE_TRAIN_JOB, new, old)
    assert verdict.allowed
    assert verdict.patch == []


@pytest.mark.parametrize("own", [True, False], ids=["both", "the cluster's alone"])
async def test_a_runtime_by_name_alone_is_the_namespaces_before_the_clusters(world: World, own: bool) -> None:
    if own:
        world.put(TRAINING_RUNTIMES, runtime(kind="TrainingRuntime", namespace=NAMESPACE))
        world.sync()
    job = train_job(meta={"annotations": {"trainplane.dev/runtime-kind": "any", "kept": "yes"}})
    verdict = await ask(world, MUTATE_TRAIN_JOB, job)
    stored = json_patch(job, [dict(operation) for operation in verdict.patch])
    assert stored["spec"]["runtimeRef"]["kind"] == ("TrainingRuntime" if own else "ClusterTrainingRuntime")
    assert stored["metadata"]["annotations"] == {"kept": "yes"}


async def test_the_kind_of_a_stored_trainjob_is_never_settled_anew(world: World) -> None:
    world.put(TRAINING_RUNTIMES, runtime(kind="TrainingRuntime", namespace=NAMESPACE))
    world.sync()
    job = train_job(meta={"annotations": {"trainplane.dev/runtime-kind": "any"}})
    assert (await ask(world, MUTATE_TRAIN_JOB, job, train_job())).patch == []


async def test_a_word_for_processes_needs_the_runtime(world: World) -> None:
    job = train_job(trainer={"numProcPerNode": "gpu", "resourcesPerNode": {"limits": {"nvidia.com/gpu": "4"}}})
    verdict = await ask(world, MUTATE_TRAIN_JOB, job)
    stored = json_patch(job, [dict(operation) for operation in verdict.patch])
    assert stored["spec"]["trainer"]["numProcPerNode"] == 4


async def test_a_good_trainjob_costs_no_request(world: World) -> None:
    assert (await ask(world, VALIDATE_TRAIN_JOB, train_job())).allowed
    assert world.client.asked == []


async def test_a_runtime_made_a_moment_ago_is_found() -> None:
    world = World()
    world.sync()
    world.with_runtime()
    assert (await ask(world, VALIDATE_TRAIN_JOB, train_job())).allowed
    assert [str(one) for one in world.client.asked] == ["get clustertrainingruntimes torch"]


async def test_a_missing_runtime_is_a_403_that_says_so() -> None:
    verdict = await ask(World(), VALIDATE_TRAIN_JOB, train_job())
    assert not verdict.allowed
    assert verdict.code == 403
    assert "torch" in verdict.message


@pytest.mark.parametrize("ref", [{"kind": "Job"}, {"apiGroup": "batch"}])
async def test_what_is_no_runtime_is_refused(world: World, ref: Tree) -> None:
    verdict = await ask(world, VALIDATE_TRAIN_JOB, train_job(runtime_ref=ref))
    assert (verdict.allowed, verdict.code) == (False, 403)


async def test_a_reserved_variable_is_refused(world: World) -> None:
    job = train_job(trainer={"env": [{"name": "PET_NODE_RANK", "value": "1"}]})
    verdict = await ask(world, VALIDATE_TRAIN_JOB, job)
    assert (verdict.allowed, verdict.code) == (False, 403)
    assert "PET_NODE_RANK" in verdict.message


async def test_labels_may_change_when_the_runtime_is_gone() -> None:
    world = World()
    old, new = train_job(), train_job(meta={"labels": {"a": "b"}})
    assert (await ask(world, VALIDATE_TRAIN_JOB, new, old)).allowed
    assert world.client.asked == []


async def begun(**spec: Any) -> World:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(**spec))
    await world.settle()
    world.client.asked.clear()
    return world


async def test_an_update_is_judged_by_the_runtime_that_the_trainjob_began_with() -> None:
    world = await begun(suspend=True)
    world.delete(CLUSTER_TRAINING_RUNTIMES, "torch", "")
    other = world.restart()  # another replica
    other.sync()
    old = world.train_job()
    new = {**old, "spec": {**old["spec"], "suspend": False}}
    for _ in range(2):
        verdict = await ask(other, VALIDATE_TRAIN_JOB, new, old)
        assert verdict.allowed, verdict.message
    asked = [str(one) for one in other.client.asked]
    assert asked == ["get clustertrainingruntimes torch", "get configmaps job-runtime-snapshot"]  # once for both


async def test_a_snapshot_that_has_another_digest_is_not_judged_by() -> None:
    world = await begun(suspend=True)
    other = world.restart()
    other.sync()
    snapshot = world.snapshot()
    assert snapshot is not None
    text = snapshot["data"]["runtime"].replace("- name: node", "- name: ghost")
    assert "ghost" in text
    world.put(CONFIG_MAPS, {**snapshot, "data": {"runtime": text}})
    old = world.train_job()
    template = {"spec": {"replicatedJobs": [{"name": "ghost", "template": {"metadata": {"labels": {"a": "b"}}}}]}}
    patch = {"manager": "example.com/team", "trainingRuntimeSpec": {"template": template}}
    new = {**old, "spec": {**old["spec"], "runtimePatches": [patch]}}
    for job in (old, {**old, "status": {}}):
        verdict = await ask(other, VALIDATE_TRAIN_JOB, new, job)
        assert not verdict.allowed
        assert "ghost" in verdict.message


@pytest.mark.parametrize("changed", [False, True])
async def test_it_is_said_if_the_runtime_that_judges_is_not_the_one_of_today(*, changed: bool) -> None:
    world = await begun(suspend=True)
    if changed:
        other = runtime()
        other["spec"]["mlPolicy"] = {"numNodes": 9, "torch": {}}
        world.put(CLUSTER_TRAINING_RUNTIMES, other)
        world.sync()
    old = world.train_job()
    template = {"spec": {"replicatedJobs": [{"name": "ghost", "template": {"metadata": {"labels": {"a": "b"}}}}]}}
    patch = {"manager": "example.com/team", "trainingRuntimeSpec": {"template": template}}
    verdict = await ask(world, VALIDATE_TRAIN_JOB, {**old, "spec": {**old["spec"], "runtimePatches": [patch]}}, old)
    assert not verdict.allowed
    assert [("not as it is today" in warning) for warning in verdict.warnings] == [True] * changed


@pytest.mark.parametrize(("amount", "advice"), [("4GB", "write 4Gi or 4G"), ("2cores", "write 2"), ("lots", "500m")])
async def test_what_is_no_amount_is_refused_in_words_before_the_schema_quotes_its_pattern(
    world: World, amount: str, advice: str
) -> None:
    job = train_job(trainer={"resourcesPerNode": {"limits": {"memory": amount, "cpu": 2}, "requests": {"cpu": "1"}}})
    verdict = await ask(world, MUTATE_TRAIN_JOB, job)
    assert (verdict.allowed, verdict.code) == (False, 422)
    assert verdict.message.startswith("this TrainJob is refused: spec.trainer.resourcesPerNode.limits.memory: ")
    assert advice in verdict.message


async def test_ten_thousand_amounts_that_are_none_make_a_short_refusal(world: World) -> None:
    hostile = {f"example.com/{number}": "9" * 300 + "B" for number in range(10_000)}
    verdict = await ask(world, MUTATE_TRAIN_JOB, train_job(trainer={"resourcesPerNode": {"limits": hostile}}))
    assert not verdict.allowed
    assert len(verdict.message) < 20_000


async def test_an_update_before_the_first_reconcile_is_judged_by_the_runtime(world: World) -> None:
    verdict = await ask(world, VALIDATE_TRAIN_JOB, train_job(suspend=True), train_job())
    assert verdict.allowed, verdict.message


async def test_a_snapshot_that_cannot_be_used_does_not_lock_the_trainjob(world: World) -> None:
    theirs = {"metadata": {"name": "job-runtime-snapshot", "namespace": NAMESPACE}, "data": {"runtime": "x"}}
    world.put(CONFIG_MAPS, theirs)
    verdict = await ask(world, VALIDATE_TRAIN_JOB, train_job(suspend=True), train_job())
    assert verdict.allowed, verdict.message


async def test_patches_of_a_trainjob_with_active_pods_are_refused() -> None:
    world = await begun(suspend=True)
    world.jobset_says(counts(active=1))
    old = train_job(suspend=True, runtimePatches=[PATCH])
    new = train_job(suspend=True, runtimePatches=[{**PATCH, "trainingRuntimeSpec": {}}])
    verdict = await ask(world, VALIDATE_TRAIN_JOB, new, old)
    assert (verdict.allowed, verdict.code) == (False, 403)
    assert "node" in verdict.message
    assert "get jobsets job" in [str(one) for one in world.client.asked]


async def test_runtimes_are_validated(world: World) -> None:
    good = runtime()
    assert (await ask(world, VALIDATE_CLUSTER_TRAINING_RUNTIME, good)).allowed
    bad = runtime()
    bad["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2
    verdict = await ask(world, VALIDATE_CLUSTER_TRAINING_RUNTIME, bad)
    assert (verdict.allowed, verdict.code) == (False, 403)
    assert "replicas" in verdict.message


@pytest.mark.parametrize("path", PATHS)
async def test_deletes_always_pass(world: World, path: str) -> None:
    old = train_job() if "runtime" not in path else runtime()
    assert (await ask(world, path, None, {**old, "status": condition("x")}, operation="DELETE")).allowed


@pytest.mark.parametrize("by", ["a mirror", "nobody"])
async def test_kueues_patch_is_judged_without_a_read_if_the_mirror_has_the_jobset(by: str) -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(suspend=True))
    await world.settle()
    world.jobset_says(counts(active=1))
    world.sync()
    world.client.asked.clear()
    stores = world.stores if by == "a mirror" else Stores()
    webhooks = Webhooks(world.client, world.runtimes, world.snapshots, PIPELINE, world.clock, job_sets=stores.job_sets)
    old = world.train_job()
    new = {**old, "spec": {**old["spec"], "runtimePatches": [PATCH]}}
    request = AdmissionRequest(
        uid="1", operation="UPDATE", kind=GroupVersionKind(kind="TrainJob"), name="job", namespace=NAMESPACE,
        object=raw(new), old_object=raw(old),
    )  # fmt: skip
    verdict = await webhooks.validate_train_job(request)
    assert not verdict.allowed
    assert "is still active" in verdict.message
    assert [str(one) for one in world.client.asked] == ([] if by == "a mirror" else ["get jobsets job"])


async def test_a_job_that_runs_on_another_cluster_has_no_jobset_to_be_read(world: World) -> None:
    old = train_job(suspend=True, managedBy="kueue.x-k8s.io/multikueue")
    new = {**old, "spec": {**old["spec"], "runtimePatches": [PATCH]}}
    assert (await ask(world, VALIDATE_TRAIN_JOB, new, old)).allowed
    assert world.client.asked == []
