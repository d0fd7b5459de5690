"""What objects of the older shape become, judged by today's own admission and rendered by today's own pipeline."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.legacy.older.jobs import TRAINER, job, on_runtime, read, runtime
from trainplane.admission.defaulting import default_trainjob
from trainplane.admission.runtimes import validate_runtime
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import document
from trainplane.api.legacy import v2alpha1
from trainplane.api.runtime import TrainingRuntime
from trainplane.api.trainjob import RuntimeRef, TrainJob
from trainplane.legacy.older.lowering import (
    ANNOTATION_DIGEST,
    Lowered,
    digest_of,
    generated_name,
    judge,
    lower_runtime,
    lower_train_job,
    meant_by,
    runtime_name,
    settled,
)
from trainplane.render.pipeline import Pipeline

Tree = dict[str, Any]

PIPELINE = Pipeline.default()
NOW = datetime(2026, 1, 1, tzinfo=UTC)
IMAGE = "initializers:1"
DATASET = {"storageUri": "s3://ml-datasets/imagenet"}
MODEL = {"input": {"config": "hf://meta-llama/Llama-3-8b"}}


def lowered(tree: Tree, ref: RuntimeRef | None = None) -> Lowered:
    return lower_train_job(read(tree), ref, initializers=IMAGE)


def rendered(made: Lowered) -> Tree:
    """Return the JobSet that comes of it, once admission has let both objects pass."""
    assert made.runtime is not None
    assert validate_runtime(made.runtime, None).allowed
    found = document.read(made.runtime, TrainingRuntime)
    given = default_trainjob(made.train_job, None, now=NOW, runtime=found).tree
    verdict = validate_trainjob(given, None, runtime=found, runtime_source="live", jobset=None, pipeline=PIPELINE)
    assert verdict.allowed, verdict.errors
    assert verdict.warnings == ()
    return PIPELINE.render(document.read(given, TrainJob), found).objects[-1].tree


def step(jobset: Tree, name: str) -> Tree:
    return next(one for one in jobset["spec"]["replicatedJobs"] if one["name"] == name)


def pod(one: Tree) -> Tree:
    found: Tree = one["template"]["spec"]["template"]["spec"]
    return found


def variables(container: Tree) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container.get("env", [])}


def test_a_job_without_a_runtime_trains_on_its_nodes_with_torchs_variables() -> None:
    jobset = rendered(lowered(job()))
    node = step(jobset, "node")
    (container,) = pod(node)["containers"]
    assert (node["template"]["spec"]["parallelism"], container["image"]) == (2, "my/trainer:1")
    assert container["command"] == ["torchrun", "train.py"]
    assert container["resources"]["requests"]["nvidia.com/gpu"] == "4"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "4"
    given = variables(container)
    assert (given["PET_NNODES"], given["PET_NPROC_PER_NODE"]) == ("2", "auto")
    assert given["PET_MASTER_ADDR"] == "job-node-0-0.job"


def test_what_is_not_named_is_not_fetched_and_needs_no_claim() -> None:
    jobset = rendered(lowered(job()))
    assert [one["name"] for one in jobset["spec"]["replicatedJobs"]] == ["node"]
    assert "volumeClaimPolicies" not in jobset["spec"]


@pytest.mark.parametrize(
    ("parts", "steps"),
    [
        ({"datasetConfig": DATASET}, ["dataset-initializer"]),
        ({"modelConfig": MODEL}, ["model-initializer"]),
        ({"datasetConfig": DATASET, "modelConfig": MODEL}, ["dataset-initializer", "model-initializer"]),
    ],
)
def test_what_is_named_is_fetched_before_the_nodes_begin(parts: Tree, steps: list[str]) -> None:
    jobset = rendered(lowered(job(**parts)))
    assert [one["name"] for one in jobset["spec"]["replicatedJobs"]] == [*steps, "node"]
    assert [one["name"] for one in step(jobset, "node")["dependsOn"]] == steps
    uris = {"dataset-initializer": DATASET["storageUri"], "model-initializer": MODEL["input"]["config"]}
    for name in steps:
        (container,) = pod(step(jobset, name))["containers"]
        assert (container["image"], variables(container)["STORAGE_URI"]) == (IMAGE, uris[name])
    mounts = [pod(one)["containers"][0]["volumeMounts"] for one in jobset["spec"]["replicatedJobs"]]
    assert all({"name": "initializer", "mountPath": "/workspace"} in one for one in mounts)


def test_generated_runtime_restarts_after_faults_and_disruptions() -> None:
    runtime = lowered(job()).runtime
    assert runtime is not None
    assert runtime["spec"]["runPolicy"] == {"failurePolicy": {"maxRestarts": 10}}
    jobset = rendered(lowered(job()))
    (rule,) = jobset["spec"]["failurePolicy"]["rules"]
    assert rule["action"] == "RestartJobSetAndIgnoreMaxRestarts"
    (rule,) = step(jobset, "node")["template"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


@pytest.mark.parametrize(("nodes", "mode"), [(1, "ReadWriteOnce"), (2, "ReadWriteMany")])
def test_the_claim_can_be_mounted_by_every_node(nodes: int, mode: str) -> None:
    jobset = rendered(lowered(job(numNodes=nodes, datasetConfig=DATASET)))
    (policy,) = jobset["spec"]["volumeClaimPolicies"]
    claim = policy["templates"][0]["spec"]
    assert (claim["accessModes"], claim["resources"]["requests"]["storage"]) == ([mode], "20Gi")


def test_a_job_says_how_large_its_claim_is() -> None:
    tree = job(meta={"annotations": {"trainplane.dev/claim-storage": "200Gi"}}, datasetConfig=DATASET)
    made = lowered(tree)
    (policy,) = rendered(made)["spec"]["volumeClaimPolicies"]
    assert policy["templates"][0]["spec"]["resources"]["requests"]["storage"] == "200Gi"
    assert "trainplane.dev/claim-storage" not in made.train_job["metadata"]["annotations"]


@pytest.mark.parametrize("storage", ["lots", "", "-1Gi", "0", "1Gi 2", "9" * 5000])
def test_an_amount_of_storage_that_is_none_is_found(storage: str) -> None:
    (finding,) = judge(read(job(meta={"annotations": {"trainplane.dev/claim-storage": storage}})))
    assert finding.path == "metadata.annotations[trainplane.dev/claim-storage]"
    assert len(str(finding)) < 300


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"numNodes": None}, "spec.numNodes"),
        ({"trainer": {**TRAINER, "image": ""}}, "spec.trainer.image"),
        ({"trainer": {key: value for key, value in TRAINER.items() if key != "image"}}, "spec.trainer.image"),
        ({"trainer": {"image": "a"}}, "spec.trainer.resourcesPerNode"),
        ({"trainer": {**TRAINER, "numNodes": 3}}, "spec.trainer.numNodes"),
        ({"modelConfig": {"output": {"storageUri": "s3://key:secret@bucket/x"}}}, "spec.modelConfig.output.storageUri"),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_found(spec: Tree, path: str) -> None:
    (finding,) = judge(read(job(**spec)))
    assert finding.path == path
    assert "secret@" not in str(finding)


@pytest.mark.parametrize("ref", [{"kind": "Secret"}, {"apiGroup": "apps"}, {"kind": "x" * 100_000}])
def test_what_is_no_runtime_is_found(ref: Tree) -> None:
    (finding,) = judge(read(on_runtime(**ref)))
    assert finding.path == "spec.runtimeRef"
    assert len(str(finding)) < 300


def test_a_runtime_says_what_a_job_leaves_out() -> None:
    assert judge(read(on_runtime())) == ()


def test_nodes_may_be_said_in_either_place() -> None:
    inside = lowered(job(numNodes=None, trainer={**TRAINER, "numNodes": 2}))
    assert inside.train_job["spec"]["trainer"] == lowered(job()).train_job["spec"]["trainer"]


def test_a_job_on_a_runtime_makes_none() -> None:
    made = lowered(on_runtime(), RuntimeRef(name="torch"))
    assert made.runtime is None
    assert made.train_job["spec"] == {
        "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"}
    }


@pytest.mark.parametrize(
    ("group", "is_older", "name"),
    [
        ("kubeflow.org", True, runtime_name("torch")),
        ("kubeflow.org", False, "torch"),
        ("trainer.kubeflow.org", True, "torch"),
        ("trainer.kubeflow.org", False, "torch"),
    ],
)
def test_the_older_group_means_an_older_runtime_if_there_is_one(group: str, *, is_older: bool, name: str) -> None:
    ref = v2alpha1.RuntimeRef(name="torch", api_group=group, kind="TrainingRuntime")
    assert settled(ref, is_older=is_older) == RuntimeRef(name=name, kind="TrainingRuntime")


def test_names_of_runtimes_do_not_meet() -> None:
    chosen = ["job", "trainjob.job", "runtime.job", "v2alpha1-runtime.job", "v2alpha1-trainjob.job"]
    made = [*map(generated_name, chosen), *map(runtime_name, chosen)]
    assert len(set(made)) == len(made)
    assert meant_by(runtime_name("a")) == (runtime_name("a"), "a")
    assert meant_by("a") == ("a",)


def test_what_it_becomes_belongs_to_it_and_is_deleted_with_it() -> None:
    made = lowered(job())
    assert made.runtime is not None
    for tree in (made.train_job, made.runtime):
        (owner,) = tree["metadata"]["ownerReferences"]
        assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("kubeflow.org/v2alpha1", "TrainJob", "uid-job")
        assert owner["controller"]
    assert (made.train_job["metadata"]["name"], made.train_job["metadata"]["namespace"]) == ("job", "team")


def test_labels_and_annotations_go_with_it_but_for_kubectls() -> None:
    meta = {
        "labels": {"team": "a", "kueue.x-k8s.io/queue-name": "q"},
        "annotations": {"note": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}", ANNOTATION_DIGEST: "x"},
    }
    found = lowered(job(meta=meta)).train_job["metadata"]
    assert found["labels"] == meta["labels"]
    assert found["annotations"].keys() == {"note", ANNOTATION_DIGEST}
    assert found["annotations"][ANNOTATION_DIGEST] != "x"


@pytest.mark.parametrize(("queue", "said"), [({}, True), ({"kueue.x-k8s.io/queue-name": "q"}, None)])
def test_whether_it_is_held_back_is_the_queues_to_say(queue: dict[str, str], said: bool | None) -> None:
    spec = lowered(job(meta={"labels": queue}, suspend=True)).train_job["spec"]
    assert spec.get("suspend") is said


def test_what_runs_is_not_said_to_run() -> None:
    assert "suspend" not in lowered(job(suspend=False)).train_job["spec"]


@pytest.mark.parametrize(
    ("said", "handed_on"),
    [(None, None), ("kubeflow.org/trainjob-controller", None), ("kueue.x-k8s.io/multikueue",) * 2],
)
def test_a_job_of_multikueue_is_left_to_it(said: str | None, handed_on: str | None) -> None:
    assert lowered(job(managedBy=said)).train_job["spec"].get("managedBy") == handed_on


def test_where_the_model_is_sent_is_said_as_today() -> None:
    output = {"storageUri": "s3://models/mine", "secretRef": {"name": "keys"}}
    annotations = lowered(job(modelConfig={"output": output})).train_job["metadata"]["annotations"]
    assert annotations["trainplane.dev/output"] == "s3://models/mine"
    assert annotations["trainplane.dev/output-secret"] == "keys"


def test_credentials_and_overrides_are_handed_on() -> None:
    source = {**DATASET, "secretRef": {"name": "keys"}, "env": [{"name": "A", "value": "b"}]}
    override = {"targetJobs": [{"name": "node"}], "nodeSelector": {"zone": "a"}}
    spec = lowered(
        job(datasetConfig=source, podSpecOverrides=[override], labels={"a": "b"}, annotations={"c": "d"})
    ).train_job["spec"]
    assert spec["initializer"] == {"dataset": source}
    assert spec["podSpecOverrides"] == [override]
    assert (spec["labels"], spec["annotations"]) == ({"a": "b"}, {"c": "d"})


def test_the_digest_tells_what_it_was_made_from_and_not_by_which_release() -> None:
    first = digest_of(lowered(job()).train_job)
    other = lower_train_job(read(job()), None, initializers="initializers:2")
    assert digest_of(other.train_job) == first
    assert digest_of(lowered(job(suspend=True)).train_job) != first
    assert digest_of(lowered(job(meta={"labels": {"a": "b"}})).train_job) != first
    assert digest_of(lowered(job(meta={"resourceVersion": "7"})).train_job) == first


@pytest.mark.parametrize("kind", [v2alpha1.TrainingRuntime, v2alpha1.ClusterTrainingRuntime])
def test_a_runtime_becomes_one_of_the_same_kind(kind: Any) -> None:
    tree = runtime(kind=kind.__name__, labels={"trainer.kubeflow.org/framework": "torch"})
    made = lower_runtime(document.read(tree, kind))
    assert (made["apiVersion"], made["kind"]) == ("trainer.kubeflow.org/v1alpha1", kind.__name__)
    assert (made["metadata"]["name"], made["spec"]) == ("v2alpha1-runtime.torch", tree["spec"])
    assert made["metadata"].get("namespace") == tree["metadata"].get("namespace")
    assert made["metadata"]["labels"] == tree["metadata"]["labels"]
    assert validate_runtime(made, None).allowed
