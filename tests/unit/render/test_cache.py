"""A step of a TrainJob that serves its data: what the pods and the training are told, and what is refused."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.render.objects import (
    PIPELINE,
    container_of,
    in_pod,
    job,
    node,
    pods_of,
    render,
    replicated_job,
    runtime,
    torch,
    values_of,
)
from trainplane.admission.edits import judge_output
from trainplane.api import names
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.api.tree import get
from trainplane.render.errors import RenderError, TooLargeError
from trainplane.render.gang import gang_of
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.cache import COMMAND, Cache, make_key

Tree = dict[str, Any]

CACHE = "cache-initializer"
IMAGE = "ghcr.io/trainplane/cache"
HEAD = "job-cache-initializer-0-0.job:50051"
SHIPPED = Path(__file__).resolve().parents[3] / "runtimes"
TABLE = [{"name": "METADATA_LOC", "value": "s3://bucket/metadata.json"}]


def cache(**container: Any) -> Tree:
    """Return the step as the guide writes it."""
    entry = {"name": CACHE, "image": "ghcr.io/kubeflow/trainer/dataset-initializer", **container}
    step = replicated_job(CACHE, CACHE, containers=[entry])
    del step["replicas"]
    return step


def trainer(endpoint: str | None = "cache-initializer-0:50051", **container: Any) -> Tree:
    env = [] if endpoint is None else [{"name": "DATA_CACHE_ENDPOINT", "value": endpoint}]
    return {**node(env=env, **container), "dependsOn": [{"name": CACHE, "status": "Ready"}]}


def with_cache(step: Tree | None = None, training: Tree | None = None) -> Any:
    return torch(step or cache(), training or trainer(), name="torch-distributed-with-cache", nodes=2)


def wanting(uri: str = "cache://schema/table", env: Any = (), *, queue: str = "", **more: Any) -> Any:
    dataset = {"storageUri": uri, "env": [*TABLE, *({"name": name, "value": value} for name, value in env)], **more}
    made = job(initializer={"dataset": dataset})
    return labelled(made, queue) if queue else made


def labelled(made: Any, queue: str) -> Any:
    return read({**made.tree, "metadata": {**made.tree["metadata"], "labels": {names.LABEL_QUEUE: queue}}}, TrainJob)


def annotated(made: Any, value: str) -> Any:
    annotations = {names.ANNOTATION_CACHE: value}
    return read({**made.tree, "metadata": {**made.tree["metadata"], "annotations": annotations}}, TrainJob)


def shipped(name: str) -> Any:
    return read(yaml.safe_load((SHIPPED / f"{name}.yaml").read_text()), ClusterTrainingRuntime)


def served(rendering: Any, step: str = CACHE) -> dict[str, Any]:
    return values_of(container_of(rendering, step, step))


class TestPods:
    def test_they_run_our_program_and_know_each_other(self) -> None:
        rendering = render(wanting(), with_cache())
        container = container_of(rendering, CACHE, CACHE)
        assert (container["image"], container["command"]) == (IMAGE, COMMAND)
        assert values_of(container) == {
            "STORAGE_URI": "cache://schema/table",
            "METADATA_LOC": "s3://bucket/metadata.json",
            "SCHEMA_NAME": "schema",
            "TABLE_NAME": "table",
            "CLUSTER_SIZE": "1",
            "HEAD_ADDRESS": HEAD,
            "CACHE_SUBDOMAIN": "job",
            "CACHE_KEY_FILE": "/var/run/secrets/trainplane/cache/key",
            "CACHE_DIR": "/cache",
        }
        assert container["readinessProbe"]["grpc"] == {"port": 50051}
        assert pods_of(rendering, CACHE) == (1, 1)

    def test_what_the_runtime_says_of_them_stays(self) -> None:
        probe = {"grpc": {"port": 50051}, "initialDelaySeconds": 10}
        mounts = [{"name": "disk", "mountPath": "/cache/"}]
        step = cache(image="mine/serve:1", command=["serve"], readinessProbe=probe, volumeMounts=mounts)
        rendering = render(wanting(), with_cache(step))
        container = container_of(rendering, CACHE, CACHE)
        assert (container["image"], container["command"], container["readinessProbe"]) == (
            "mine/serve:1",
            ["serve"],
            probe,
        )
        volumes = get(rendering.jobset.tree, *in_pod(CACHE, "volumes"))
        assert [volume["name"] for volume in volumes] == [names.CACHE_KEY_VOLUME]

    def test_an_image_of_ones_own_gets_the_program_alone(self) -> None:
        for image in ("mirror.example.org/cache:v1", "x/not-dataset-initializer:1"):
            container = container_of(render(wanting(), with_cache(cache(image=image))), CACHE, CACHE)
            assert (container["image"], container["command"]) == (image, COMMAND)

    @pytest.mark.parametrize("tag", ["", ":v2.1.0", "@sha256:" + "0" * 64])
    def test_the_operator_names_the_image_that_stands_for_the_references(self, tag: str) -> None:
        pipeline = Pipeline.default(also=[Cache("mirror.example.org/cache:v1")])
        step = cache(image=f"ghcr.io/kubeflow/trainer/dataset-initializer{tag}")
        rendering = pipeline.render(wanting(), with_cache(step))
        assert container_of(rendering, CACHE, CACHE)["image"] == "mirror.example.org/cache:v1"

    def test_their_key_is_drawn_once_and_in_no_object(self) -> None:
        rendering = render(wanting(), with_cache())
        (kept,) = rendering.kept
        assert (kept.kind, kept.name, kept.keys) == ("Secret", "job-cache", ("key",))
        first, second = (base64.b64decode(make_key()["data"]["key"]) for _ in range(2))
        assert first != second
        assert len(first) == 64

    def test_clients_of_the_reference_find_the_head_by_its_service(self) -> None:
        service = next(one.tree for one in render(wanting(), with_cache()).objects if one.tree["kind"] == "Service")
        assert service["metadata"]["name"] == "job-cache-service"
        assert service["metadata"]["ownerReferences"][0]["name"] == "job"
        assert service["spec"]["selector"] == {
            "jobset.sigs.k8s.io/jobset-name": "job",
            "jobset.sigs.k8s.io/replicatedjob-name": CACHE,
            "batch.kubernetes.io/job-completion-index": "0",
        }

    def test_a_folder_is_served_as_well(self) -> None:
        variables = served(render(wanting("s3://bucket/table", secretRef={"name": "keys"}), with_cache()))
        assert variables["STORAGE_URI"] == "s3://bucket/table"
        assert "TABLE_NAME" not in variables


class TestSize:
    def test_without_a_queue_it_is_the_trainjobs(self) -> None:
        env = {"CLUSTER_SIZE": "5", "WORKER_MEM": "64Gi", "HEAD_MEM": "1Gi", "HEAD_CPU": "4", "WORKER_CPU": "500m"}
        rendering = render(wanting(env=env.items()), with_cache())
        assert pods_of(rendering, CACHE) == (5, 5)
        assert served(rendering)["CLUSTER_SIZE"] == "5"
        amounts = {"cpu": "4", "memory": "64Gi"}
        assert container_of(rendering, CACHE, CACHE)["resources"] == {"requests": amounts, "limits": amounts}

    def test_in_a_queue_it_is_the_runtimes(self) -> None:
        step = cache(resources={"requests": {"memory": "65536Mi"}})
        step["template"]["spec"]["parallelism"] = 3
        agreed = wanting(env=[("CLUSTER_SIZE", "3"), ("WORKER_MEM", "64Gi")], queue="team")
        rendering = render(agreed, with_cache(step))
        assert pods_of(rendering, CACHE) == (3, 3)
        assert container_of(rendering, CACHE, CACHE)["resources"] == {"requests": {"memory": "64Gi"}}

    @pytest.mark.parametrize("env", [("CLUSTER_SIZE", "5"), ("WORKER_MEM", "64Gi"), ("HEAD_CPU", "2")])
    def test_a_queue_is_never_charged_for_less_than_runs(self, env: tuple[str, str]) -> None:
        verdict = PIPELINE.validate(wanting(env=[env], queue="team"), None, with_cache())
        (finding,) = verdict.errors
        assert finding.path == "spec.initializer.dataset.env"
        assert "a runtime whose cache has that size" in finding.problem
        assert names.ANNOTATION_CACHE in finding.problem

    @pytest.mark.parametrize(
        "wrong",
        [
            ("CLUSTER_SIZE", "0"),
            ("CLUSTER_SIZE", "-3"),
            ("CLUSTER_SIZE", "3.5"),
            ("CLUSTER_SIZE", "٣"),
            ("CLUSTER_SIZE", "9" * 5000),
            ("WORKER_MEM", "much"),
            ("WORKER_MEM", "-1Gi"),
            ("HEAD_CPU", "0"),
        ],
    )
    def test_what_is_no_size_is_refused_by_its_name(self, wrong: tuple[str, str]) -> None:
        (finding,) = PIPELINE.validate(wanting(env=[wrong]), None, with_cache()).errors
        assert finding.path == "spec.initializer.dataset.env"
        assert wrong[0] in finding.problem
        assert len(finding.problem) < 400

    def test_a_size_that_a_pod_would_learn_too_late_is_refused(self) -> None:
        late = {"name": "CLUSTER_SIZE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
        wrong = job(initializer={"dataset": {"storageUri": "cache://a/b", "env": [*TABLE, late]}})
        (finding,) = PIPELINE.validate(wrong, None, with_cache()).errors
        assert "CLUSTER_SIZE must have a value" in finding.problem

    def test_a_thousand_million_pods_are_refused_before_one_is_named(self) -> None:
        wrong = wanting(env=[("CLUSTER_SIZE", str(10**9 - 1))])
        (finding,) = PIPELINE.validate(wrong, None, with_cache()).errors
        assert "pods" in finding.problem
        with pytest.raises(TooLargeError):
            PIPELINE.render(wrong, with_cache(), begins=True)

    def test_a_cache_of_several_jobs_is_refused(self) -> None:
        (finding,) = PIPELINE.validate(wanting(), None, with_cache({**cache(), "replicas": 2})).errors
        assert "parallelism" in finding.problem


class TestTraining:
    @pytest.mark.parametrize(
        "written", [None, "cache-initializer-0:50051", "cache-initializer", "cache-initializer-0-0"]
    )
    def test_it_is_told_the_true_address(self, written: str | None) -> None:
        rendering = render(wanting(), with_cache(training=trainer(written)))
        assert values_of(container_of(rendering))["DATA_CACHE_ENDPOINT"] == HEAD

    def test_a_scheme_stays(self) -> None:
        rendering = render(wanting(), with_cache(training=trainer("grpc://cache-initializer-0:50051")))
        assert values_of(container_of(rendering))["DATA_CACHE_ENDPOINT"] == f"grpc://{HEAD}"

    @pytest.mark.parametrize(
        "own",
        [
            "cache.example.org:50051",
            "cache-initializer-0.other:50051",
            "cache-initializer-0:50051.evil.example",
            "xcache-initializer-0:50051",
            "cache-initializer-0:9",
            "cache-initializer-0:50051\n",
            "",
        ],
    )
    def test_an_address_of_ones_own_stays(self, own: str) -> None:
        rendering = render(wanting(), with_cache(training=trainer(own)))
        assert values_of(container_of(rendering))["DATA_CACHE_ENDPOINT"] == own

    def test_every_container_that_names_the_cache_is_told(self) -> None:
        training = trainer()
        env = [{"name": "DATA_CACHE_ENDPOINT", "value": "cache-initializer-0:50051"}]
        training["template"]["spec"]["template"]["spec"]["containers"].append(
            {"name": "side", "image": "x", "env": env}
        )
        training["template"]["spec"]["template"]["spec"]["containers"].append({"name": "other", "image": "x"})
        rendering = render(wanting(), with_cache(training=training))
        assert values_of(container_of(rendering, "side"))["DATA_CACHE_ENDPOINT"] == HEAD
        assert values_of(container_of(rendering, "other")) == {}

    def test_the_jobset_ends_with_it(self) -> None:
        policy = render(wanting(), with_cache()).jobset.tree["spec"]["successPolicy"]
        assert policy == {"operator": "All", "targetReplicatedJobs": ["node"]}

    def test_a_runtime_may_name_whom_the_jobset_ends_with(self) -> None:
        own = {"operator": "Any", "targetReplicatedJobs": ["node", CACHE]}
        have = with_cache()
        spec = {**have.tree["spec"]["template"]["spec"], "successPolicy": own}
        tree = {**have.tree, "spec": {**have.tree["spec"], "template": {"spec": spec}}}
        rendering = render(wanting(), read(tree, ClusterTrainingRuntime))
        assert rendering.jobset.tree["spec"]["successPolicy"] == own

    @pytest.mark.parametrize("key", ["", "a b", "x" * 400, "rack\n", "/"])
    def test_what_is_no_label_of_nodes_is_refused(self, key: str) -> None:
        have = with_cache()
        tree = {
            **have.tree,
            "metadata": {**have.tree["metadata"], "annotations": {names.ANNOTATION_CACHE_TOPOLOGY: key}},
        }
        (finding,) = PIPELINE.validate(wanting(), None, read(tree, ClusterTrainingRuntime)).errors
        assert names.ANNOTATION_CACHE_TOPOLOGY in finding.problem

    def test_the_gang_is_the_training_alone(self) -> None:
        gang = gang_of(PIPELINE.plan(wanting(env=[("CLUSTER_SIZE", "4")]), with_cache()))
        assert ([pods.name for pods in gang.members], gang.size) == (["node"], 2)


class TestRefused:
    def test_a_table_without_a_place(self) -> None:
        (finding,) = PIPELINE.validate(
            job(initializer={"dataset": {"storageUri": "cache://a/b"}}), None, with_cache()
        ).errors
        assert "METADATA_LOC" in finding.problem

    @pytest.mark.parametrize("uri", ["cache://", "cache://a", "cache://a/b/c", "cache://a /b", "cache:///b"])
    def test_what_is_no_table(self, uri: str) -> None:
        (finding,) = PIPELINE.validate(wanting(uri), None, with_cache()).errors
        assert finding.path == "spec.initializer.dataset.storageUri"

    def test_a_role_is_said_to_do_nothing(self) -> None:
        (warning,) = PIPELINE.validate(wanting(env=[("IAM_ROLE", "arn:role")]), None, with_cache()).warnings
        assert "serviceAccountName" in warning
        assert "arn:role" not in warning


class TestReferencesRuntime:
    """Its step fetches nothing itself, but makes other objects that serve; here the step serves."""

    @staticmethod
    def runtime() -> Any:
        image = "ghcr.io/kubeflow/trainer/dataset-initializer"
        step = replicated_job("dataset-initializer", "dataset-initializer")
        step["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = image
        waits = [{"name": "dataset-initializer", "status": "Complete"}]
        return torch(step, {**node(), "dependsOn": waits}, nodes=2)

    def test_its_step_serves_and_training_waits_until_it_is_ready(self) -> None:
        rendering = render(wanting(env=[("CLUSTER_SIZE", "3")]), self.runtime())
        container = container_of(rendering, "dataset-initializer", "dataset-initializer")
        assert (container["image"], container["command"]) == (IMAGE, COMMAND)
        assert pods_of(rendering, "dataset-initializer") == (3, 3)
        assert get(rendering.jobset.tree, "spec", "replicatedJobs", ("name", "node"), "dependsOn") == [
            {"name": "dataset-initializer", "status": "Ready"}
        ]
        address = values_of(container_of(rendering))["DATA_CACHE_ENDPOINT"]
        assert address == "job-dataset-initializer-0-0.job:50051"
        assert [one.tree["kind"] for one in rendering.objects] == ["Service", "JobSet"]
        assert [one.name for one in rendering.kept] == ["job-cache"]

    def test_what_it_fetches_otherwise_is_fetched_as_before(self) -> None:
        rendering = render(wanting("s3://bucket/set"), self.runtime())
        assert "command" not in container_of(rendering, "dataset-initializer", "dataset-initializer")
        assert "DATA_CACHE_ENDPOINT" not in values_of(container_of(rendering))
        assert len(rendering.objects) == 1

    def test_a_program_of_ones_own_is_let_alone(self) -> None:
        have = self.runtime()
        step = have.tree["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        step["containers"][0]["command"] = ["bootstrap"]
        rendering = render(wanting(env=[("CLUSTER_SIZE", "3")]), have)
        assert pods_of(rendering, "dataset-initializer") == (1, 1)
        assert len(rendering.objects) == 1


class TestShared:
    def test_a_cache_is_a_trainjob_of_its_own(self) -> None:
        made = job(
            runtime_name="data-cache",
            trainer={"numNodes": 4},
            initializer={"dataset": {"storageUri": "cache://schema/table", "env": TABLE}},
        )
        rendering = render(made, shipped("data-cache"))
        variables = values_of(container_of(rendering))
        assert pods_of(rendering) == (4, 4)
        assert (variables["CLUSTER_SIZE"], variables["HEAD_ADDRESS"]) == ("4", "job-node-0-0.job:50051")
        assert variables["IDLE_SECONDS"] == "3600"
        assert "successPolicy" not in rendering.jobset.tree["spec"], "it ends when its pods do"
        assert PIPELINE.validate(made, None, shipped("data-cache")).allowed

    def test_its_size_is_its_nodes(self) -> None:
        made = job(initializer={"dataset": {"storageUri": "s3://b/t", "env": [{"name": "CLUSTER_SIZE", "value": "3"}]}})
        (finding,) = PIPELINE.validate(made, None, shipped("data-cache")).errors
        assert "spec.trainer.numNodes" in finding.problem

    def test_others_read_from_it(self) -> None:
        rendering = render(annotated(job(), "tables"), torch(nodes=2))
        assert values_of(container_of(rendering))["DATA_CACHE_ENDPOINT"] == "tables-cache-service:50051"
        affinity = get(rendering.jobset.tree, *in_pod("node", "affinity", "podAffinity"))
        (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
        assert term["podAffinityTerm"]["labelSelector"]["matchLabels"][names.LABEL_JOBSET_NAME] == "tables"

    @pytest.mark.parametrize("name", ["", "job", "tables.other", "tables.other.svc", "UPPER", "a/b", "x" * 64, "-"])
    def test_a_cache_of_another_namespace_cannot_be_named(self, name: str) -> None:
        (finding,) = PIPELINE.validate(annotated(job(), name), None, torch()).errors
        assert names.ANNOTATION_CACHE in finding.path

    def test_two_caches_are_refused(self) -> None:
        (finding,) = PIPELINE.validate(annotated(wanting(), "tables"), None, with_cache()).errors
        assert "one of its own" in finding.problem

    def test_whose_cache_is_read_never_changes(self) -> None:
        before, after = annotated(job(), "tables").tree, annotated(job(), "others").tree
        assert [finding.path for finding in judge_output(after, before)] == [
            f"metadata.annotations[{names.ANNOTATION_CACHE}]"
        ]


class TestShipped:
    def test_the_runtime_with_a_cache_trains_by_torch(self) -> None:
        have = shipped("torch-distributed-with-cache")
        rendering = render(job(trainer={"numNodes": 2}, initializer=wanting().tree["spec"]["initializer"]), have)
        variables = values_of(container_of(rendering))
        assert (variables["PET_NNODES"], variables["DATA_CACHE_ENDPOINT"]) == ("2", HEAD)

    def test_on_a_worker_it_renders_as_on_the_hub(self) -> None:
        """MultiKueue sends labels, annotations and spec; what names the two clusters' objects apart is the uid."""
        have = shipped("torch-distributed-with-cache")
        here = wanting(queue="team")
        metadata = {**here.tree["metadata"], "uid": "uid-2"}
        metadata["labels"] = {**metadata["labels"], names.LABEL_MULTIKUEUE_ORIGIN: "hub"}
        there = read({**here.tree, "metadata": metadata}, TrainJob)
        specs = [[one.tree["spec"] for one in render(one, have).objects] for one in (here, there)]
        assert specs[0] == specs[1]


def test_a_jobset_made_before_there_was_a_cache_stays_as_it_is() -> None:
    before = PIPELINE.without("Cache").render(job(), with_cache())
    assert values_of(container_of(before))["DATA_CACHE_ENDPOINT"] == "cache-initializer-0:50051"
    assert len(before.objects) == 1
    assert not before.kept


def test_a_runtime_without_a_cache_has_nothing_of_it() -> None:
    rendering = render(job(), runtime())
    assert "successPolicy" not in rendering.jobset.tree["spec"]
    assert "env" not in container_of(rendering)


def test_a_size_is_judged_before_objects_are_made_too() -> None:
    with pytest.raises(RenderError, match="CLUSTER_SIZE"):
        render(wanting(env=[("CLUSTER_SIZE", "many")]), with_cache())


def test_training_looks_for_the_nodes_of_its_cache() -> None:
    have = with_cache()
    annotations = {names.ANNOTATION_CACHE_TOPOLOGY: "topology.kubernetes.io/rack"}
    tree = {**have.tree, "metadata": {**have.tree["metadata"], "annotations": annotations}}
    rendering = render(wanting(), read(tree, ClusterTrainingRuntime))
    affinity = get(rendering.jobset.tree, *in_pod("node", "affinity", "podAffinity"))
    terms = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [(one["weight"], one["podAffinityTerm"]["topologyKey"]) for one in terms] == [
        (100, "kubernetes.io/hostname"),
        (50, "topology.kubernetes.io/rack"),
    ]
    assert terms[0]["podAffinityTerm"]["labelSelector"]["matchLabels"][names.LABEL_REPLICATED_JOB] == CACHE
