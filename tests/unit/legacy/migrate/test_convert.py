"""What becomes of an older job, where the corpus does not say it; and jobs that are attacks."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest

from tests.legacy.migrate.corpus import manifests
from trainplane.legacy.migrate.convert import migrate
from trainplane.legacy.migrate.outcome import RefusedError

CORPUS = manifests()
Tree = dict[str, Any]


def pytorch(**spec: Any) -> Tree:
    job = copy.deepcopy(CORPUS["pytorch-managed-here"])
    job["spec"] |= spec
    return job


def trainer_of(job: Tree) -> Tree:
    trainer: Tree = migrate(job).objects[-1]["spec"]["trainer"]
    return trainer


def test_arguments_without_a_command_stay_the_images_own() -> None:
    trainer = trainer_of(CORPUS["pytorch-never"])
    assert trainer["command"] == []
    assert trainer["args"] == ["--epochs", "90"]


def test_a_program_goes_on_reading_its_variables() -> None:
    env = {entry["name"]: entry for entry in trainer_of(CORPUS["jax-demo"])["env"]}
    assert env["COORDINATOR_ADDRESS"]["value"] == "jaxjob-simple-node-0-0.jaxjob-simple"
    assert env["NUM_PROCESSES"]["value"] == "2"
    assert "job-completion-index" in str(env["PROCESS_ID"])


def test_labels_of_queues_go_with_the_trainjob_and_those_of_pods_with_pods() -> None:
    moved = migrate(CORPUS["pytorch-kueue"]).objects[-1]
    assert moved["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "user-queue"
    patch = migrate(CORPUS["pytorch-multikueue"]).objects[-1]["spec"]["runtimePatches"][0]
    assert "podset-required-topology" in str(patch)


def jobs_of(runtime: Tree) -> list[Tree]:
    return [one["template"]["spec"] for one in runtime["spec"]["template"]["spec"]["replicatedJobs"]]


def with_restart(name: str, policy: str, **run_policy: Any) -> Tree:
    """Return the runtime of a job of the corpus whose replicas all have a restart policy."""
    job = copy.deepcopy(CORPUS[name])
    specs = next(value for key, value in job["spec"].items() if key.endswith("ReplicaSpecs"))
    for replica in specs.values():
        replica["restartPolicy"] = policy
    job["spec"]["runPolicy"] = run_policy
    runtime: Tree = migrate(job).objects[0]
    assert runtime["kind"] == "TrainingRuntime"
    return runtime


def test_exit_code_policy_migrated_ignores_disruptions_and_keeps_final_codes() -> None:
    runtime = migrate(CORPUS["pytorch-exit-code"]).objects[0]
    (job,) = jobs_of(runtime)
    disrupted, final = job["podFailurePolicy"]["rules"]
    assert disrupted == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert final == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": list(range(1, 128))}}
    assert job["backoffLimit"] == 10
    assert "runPolicy" not in runtime["spec"]


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("pytorch-never", "OnFailure"),
        ("pytorch-never", "Always"),
        ("tensorflow-parameter-servers", "OnFailure"),
        ("mpi-pi", "OnFailure"),
    ],
)
def test_in_place_policy_with_backoff_limit_migrated_allows_as_many_restarts(name: str, policy: str) -> None:
    runtime = with_restart(name, policy, backoffLimit=4)
    assert runtime["spec"]["runPolicy"] == {"failurePolicy": {"maxRestarts": 4}}
    assert {job["backoffLimit"] for job in jobs_of(runtime)} == {4}


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
def test_final_policy_with_backoff_limit_migrated_allows_no_restart(policy: str) -> None:
    assert "runPolicy" not in with_restart("pytorch-never", policy, backoffLimit=4)["spec"]


def test_in_place_policy_without_backoff_limit_migrated_never_fails_a_job() -> None:
    runtime = with_restart("pytorch-never", "OnFailure")
    assert [job["backoffLimit"] for job in jobs_of(runtime)] == [2**31 - 1]
    assert "runPolicy" not in runtime["spec"]


def test_one_final_role_migrated_allows_no_restart() -> None:
    job = copy.deepcopy(CORPUS["tensorflow-estimator"])
    job["spec"]["runPolicy"] = {"backoffLimit": 4}
    assert {spec.get("restartPolicy") for spec in job["spec"]["tfReplicaSpecs"].values()} > {"Never"}
    assert "runPolicy" not in migrate(job).objects[0]["spec"]


def test_shipped_runtime_chosen_announces_restarts() -> None:
    notes = [note.text for note in migrate(CORPUS["pytorch-never"]).notes if note.field == "spec"]
    assert "up to 10 times after a fault" in notes[0]


def test_what_the_server_wrote_stays_behind() -> None:
    job = pytorch()
    job["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [], "generation": 3}
    job["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    job["status"] = {"conditions": [{"type": "Running", "status": "True"}]}
    assert migrate(job).objects[-1]["metadata"] == {"name": "at-home", "namespace": "default"}


def test_a_gang_scheduler_is_taken_at_its_word() -> None:
    moved = migrate(CORPUS["pytorch-gang-unknown"], gang="volcano")
    assert moved.objects[0]["spec"]["podGroupPolicy"] == {"volcano": {}}
    annotations = moved.objects[0]["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"scheduling.volcano.sh/queue-name": "silver"}


def test_the_source_is_not_changed() -> None:
    for name, job in CORPUS.items():
        before = copy.deepcopy(job)
        with contextlib.suppress(RefusedError):
            migrate(job)
        assert job == before, name


# -- attacks


def deep() -> Tree:
    tree: Tree = {}
    for _ in range(5000):
        tree = {"a": tree}
    return tree


@pytest.mark.parametrize(
    "job",
    [
        None,
        [],
        "PyTorchJob",
        {},
        {"apiVersion": ["kubeflow.org/v1"], "kind": {"PyTorchJob": 1}},
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"},
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": [], "spec": []},
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": 1}, "spec": {}},
        {"apiVersion": "kubeflow.org/v2alpha1", "kind": "TrainJob", "metadata": {"name": "x"}, "spec": deep()},
        {"apiVersion": "kubeflow.org/v2alpha1", "kind": "Secret", "metadata": {"name": "x"}},
        pytorch(pytorchReplicaSpecs={"Worker": deep()}),
        pytorch(pytorchReplicaSpecs={"Worker": None}),
        pytorch(pytorchReplicaSpecs={"Worker": {"replicas": -1, "template": {"spec": {"containers": []}}}}),
        pytorch(pytorchReplicaSpecs={"Boss": {}}),
        pytorch(pytorchReplicaSpecs={}),
        pytorch(nprocPerNode="9" * 10_000),
        pytorch(nprocPerNode="٣"),
        pytorch(runPolicy={"managedBy": "evil.example.com/operator"}),
        pytorch(runPolicy={"cleanPodPolicy": "Everything"}),
        pytorch(runPolicy={"backoffLimit": -1}),
        pytorch(runPolicy={"activeDeadlineSeconds": 0}),
    ],
)
def test_what_is_no_job_is_refused_with_a_reason(job: Any) -> None:
    with pytest.raises(RefusedError) as refused:
        migrate(job)
    assert refused.value.findings


@pytest.mark.parametrize("kind", ["pytorch-never", "xgboost-plain", "tensorflow-workers", "mpi-pi", "jax-tpu"])
@pytest.mark.parametrize("count", [30_000, 2**31 - 1])
def test_a_number_of_pods_is_no_bomb(kind: str, count: int) -> None:
    job = copy.deepcopy(CORPUS[kind])
    specs = next(value for key, value in job["spec"].items() if key.endswith("ReplicaSpecs"))
    specs["Worker"]["replicas"] = count
    try:
        assert migrate(job).pods < 40
    except RefusedError as error:
        assert error.findings  # noqa: PT017 refusing is as good


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", "UPPER", "x" * 300, "\x1b[2J"])
def test_a_name_that_is_none_never_becomes_a_file_or_an_object(name: str) -> None:
    job = pytorch()
    job["metadata"]["name"] = name
    with pytest.raises(RefusedError):
        migrate(job)


def test_a_namespace_that_is_none_is_refused() -> None:
    job = pytorch()
    job["metadata"]["namespace"] = "../up"
    with pytest.raises(RefusedError):
        migrate(job)


@pytest.mark.parametrize("key", ["name", "namespace"])
def test_runtimes_of_the_older_shape_have_names_too(key: str) -> None:
    runtime = copy.deepcopy(CORPUS["v2alpha1-runtime"])
    runtime["metadata"][key] = "../up"
    with pytest.raises(RefusedError):
        migrate(runtime)
