"""The sender of output: which pods have one, what it is told, and that nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.render.objects import PIPELINE as BARE
from tests.unit.render.objects import container_of, job, node, replicated_job, runtime, values_of
from trainplane.api.document import read
from trainplane.api.trainjob import TrainJob
from trainplane.api.tree import Tree, get
from trainplane.render.demand import pod_requests
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.output import Output
from trainplane.render.plugins.trainjobstatus import TrainJobStatus

STATUS = TrainJobStatus("https://operator.system.svc:10443")
PIPELINE = Pipeline.default(also=[Output("initializers:1", can_ask=True), STATUS])
PLAIN = Pipeline.default(also=[STATUS])
URI = "s3://bucket/models"


def sending(uri: str = URI, *, secret: str | None = None, **spec: Any) -> Any:
    """Return a TrainJob that says where its output goes."""
    tree = job(**spec).tree
    annotations = {"trainplane.dev/output": uri, **({"trainplane.dev/output-secret": secret} if secret else {})}
    return read({**tree, "metadata": {**tree["metadata"], "annotations": annotations}}, TrainJob)


def pod_of(rendering: Any, name: str = "node") -> Tree:
    path = ("spec", "replicatedJobs", ("name", name), "template", "spec", "template", "spec")
    found: Tree = get(rendering.jobset.tree, *path)
    return found


def refused(said: Any, *jobs: Tree, pipeline: Pipeline = PIPELINE) -> str:
    return "; ".join(map(str, pipeline.validate(said, None, runtime(*jobs)).errors))


def test_without_the_annotation_nothing_changes() -> None:
    assert PIPELINE.render(job(), runtime()).jobset.tree == PLAIN.render(job(), runtime()).jobset.tree


def test_the_sender_is_told_all_that_it_needs() -> None:
    rendering = PIPELINE.render(sending(secret="keys"), runtime())
    pod, sender = pod_of(rendering), container_of(rendering, "trainplane-output")
    assert [one["name"] for one in pod["containers"]] == ["node", "trainplane-output"]
    assert sender["image"] == "initializers:1"
    assert sender["command"] == ["python", "-m", "trainplane.initializers", "output"]
    assert sender["envFrom"] == [{"secretRef": {"name": "keys"}}]
    values = values_of(sender)
    assert (values["OUTPUT_URI"], values["OUTPUT_DIR"]) == (URI, "/workspace/output")
    assert values["KUBEFLOW_TRAINER_SERVER_URL"].endswith("/trainjobs/job/status")
    assert values["KUBEFLOW_TRAINER_SERVER_TOKEN"] in {
        f"{mount['mountPath']}/token" for mount in sender["volumeMounts"]
    }
    assert values_of(container_of(rendering))["OUTPUT_DIR"] == "/workspace/output"


def test_it_asks_for_nothing_so_what_is_counted_is_what_runs() -> None:
    said = {"numNodes": 3, "resourcesPerNode": {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": 1}}}
    ours = PIPELINE.render(sending(trainer=said), runtime())
    plain = PLAIN.render(job(trainer=said), runtime())
    assert "resources" not in container_of(ours, "trainplane-output")
    assert pod_requests(pod_of(ours)) == pod_requests(pod_of(plain))


def test_without_a_volume_it_shares_one_of_the_pod() -> None:
    rendering = PIPELINE.render(sending(), runtime())
    mount = {"name": "trainplane-output", "mountPath": "/workspace/output"}
    assert {"name": "trainplane-output", "emptyDir": {}} in pod_of(rendering)["volumes"]
    for name in ("node", "trainplane-output"):
        assert mount in container_of(rendering, name)["volumeMounts"]


@pytest.mark.parametrize("path", ["/workspace", "/workspace/output", "/workspace/", "/"])
def test_a_volume_of_the_runtime_is_mounted_in_the_same_way(path: str) -> None:
    mount = {"name": "work", "mountPath": path, "subPath": "mine"}
    other = {"name": "other", "mountPath": "/workspace/outputs"}
    rendering = PIPELINE.render(sending(), runtime(node(volumeMounts=[other, mount])))
    mounts = container_of(rendering, "trainplane-output")["volumeMounts"]
    assert mount in mounts
    assert other not in mounts
    assert "trainplane-output" not in {one["name"] for one in pod_of(rendering)["volumes"]}


def test_of_two_volumes_the_nearer_counts() -> None:
    mounts = [{"name": "a", "mountPath": "/workspace"}, {"name": "b", "mountPath": "/workspace/output"}]
    rendering = PIPELINE.render(sending(), runtime(node(volumeMounts=mounts)))
    assert container_of(rendering, "trainplane-output")["volumeMounts"][0]["name"] == "b"


def test_a_claim_is_mounted_where_the_program_looks() -> None:
    rendering = PIPELINE.render(sending("pvc://models/mine"), runtime())
    claim = {"name": "trainplane-output-claim", "persistentVolumeClaim": {"claimName": "models"}}
    assert claim in pod_of(rendering)["volumes"]
    mount = {"name": "trainplane-output-claim", "mountPath": "/pvc/models"}
    assert mount in container_of(rendering, "trainplane-output")["volumeMounts"]
    assert mount not in container_of(rendering)["volumeMounts"], "the training needs no way around"


def test_provenance_says_what_produced_it_and_no_credentials() -> None:
    initializer = {
        "dataset": {"storageUri": "hf://set/one", "env": [{"name": "REVISION", "value": "abc"}]},
        "model": {"storageUri": "https://user:pass@host/model?token=t#f"},
    }
    args = ["node", f"sha256:{'0' * 64}", "code"]
    jobs = [node(), replicated_job("dataset-initializer", "dataset-initializer")]
    jobs.append(replicated_job("model-initializer", "model-initializer"))
    rendering = PIPELINE.render(sending(initializer=initializer, trainer={"args": args}), runtime(*jobs))
    value = values_of(container_of(rendering, "trainplane-output"))["OUTPUT_PROVENANCE"]
    told = json.loads(value)
    assert told == {
        "namespace": "team",
        "trainJob": "job",
        "uid": "uid-1",
        "runtime": {"kind": "ClusterTrainingRuntime", "name": "torch-distributed"},
        "code": args[1],
        "image": "torch",
        "dataset": {"uri": "hf://set/one", "revision": "abc"},
        "model": {"uri": "https://host/model"},
    }


def test_the_kubelet_expands_nothing_in_provenance() -> None:
    initializer = {"dataset": {"storageUri": "hf://set/$(SECRET_ACCESS_KEY)"}}
    jobs = [node(), replicated_job("dataset-initializer", "dataset-initializer")]
    rendering = PIPELINE.render(sending(initializer=initializer), runtime(*jobs))
    value = values_of(container_of(rendering, "trainplane-output"))["OUTPUT_PROVENANCE"]
    assert "$$(SECRET_ACCESS_KEY)" in value


def test_who_wrote_the_files_may_read_them() -> None:
    def context(pod: Any = None, own: Any = None) -> Any:
        extra = {} if pod is None else {"securityContext": pod}
        container = {"name": "node", "image": "torch", **({} if own is None else {"securityContext": own})}
        of_runtime = runtime(replicated_job("node", "trainer", containers=[container], **extra))
        return container_of(PIPELINE.render(sending(), of_runtime), "trainplane-output")["securityContext"]

    least = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert context() == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]},
        "runAsUser": 0,
    }
    assert context(pod={"runAsUser": 1000}) == least
    assert context(pod={"runAsNonRoot": True}) == least
    assert context(own={"runAsUser": 7, "privileged": True}) == {**least, "runAsUser": 7}
    secure = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert context(own={**secure, "readOnlyRootFilesystem": True}) == {**least, **secure}


def test_a_launcher_sends_and_workers_do_not() -> None:
    workers = replicated_job("node", None, containers=[{"name": "node", "image": "mpi"}])
    launcher = replicated_job("launcher", "trainer")
    policy = {"numNodes": 2, "mpi": {"mpiImplementation": "OpenMPI"}}
    rendering = PIPELINE.render(sending(), runtime(launcher, workers, policy=policy))
    assert [one["name"] for one in pod_of(rendering, "launcher")["containers"]] == ["node", "trainplane-output"]
    assert [one["name"] for one in pod_of(rendering)["containers"]] == ["node"]


def test_a_variable_of_the_trainjob_stays_and_is_warned_of() -> None:
    said = sending(trainer={"env": [{"name": "OUTPUT_DIR", "value": "/data"}]})
    rendering = PIPELINE.render(said, runtime())
    assert values_of(container_of(rendering))["OUTPUT_DIR"] == "/data"
    assert values_of(container_of(rendering, "trainplane-output"))["OUTPUT_DIR"] == "/workspace/output"
    assert any("is not sent" in one for one in PIPELINE.validate(said, None, runtime()).warnings)


@pytest.mark.parametrize(
    ("said", "jobs", "word"),
    [
        (sending("s3://me:secret@bucket/x"), (), "password"),
        (sending("s3://bucket/a\nb"), (), "characters"),
        (sending("file:///x"), (), "must begin"),
        (sending(secret="other/keys"), (), "own namespace"),
        (sending(secret="keys\n"), (), "own namespace"),
        (sending(), (replicated_job("node", None),), "no job of the runtime trains"),
        (sending(), (node(volumeMounts=[{"name": "w", "mountPath": "/workspace", "readOnly": True}]),), "read only"),
        (sending(), (node(volumeMounts=[{"name": "w", "mountPath": "/workspace", "subPathExpr": "$(A)"}]),), "subPath"),
        (
            sending(),
            (replicated_job("node", "trainer", containers=[{"name": "node"}, {"name": "trainplane-output"}]),),
            "rename",
        ),
        (
            sending(),
            (
                replicated_job(
                    "node", "trainer", containers=[{"name": "node"}], volumes=[{"name": "trainplane-output"}]
                ),
            ),
            "rename",
        ),
    ],
)
def test_what_cannot_be_is_refused(said: Any, jobs: tuple[Tree, ...], word: str) -> None:
    problems = refused(said, *jobs)
    assert word in problems
    assert "secret@" not in problems


def test_without_a_status_server_it_is_refused_and_never_made() -> None:
    deaf = Pipeline.default(also=[Output("initializers:1", can_ask=False)])
    assert "TrainJobStatus" in refused(sending(), pipeline=deaf)
    assert not refused(sending(managedBy="kueue.x-k8s.io/multikueue"), pipeline=deaf), "the worker judges"
    assert deaf.render(sending(), runtime()).jobset.tree == BARE.render(job(), runtime()).jobset.tree


def test_a_secret_without_an_output_is_warned_of() -> None:
    tree = job().tree
    annotations = {"trainplane.dev/output-secret": "keys"}
    said = read({**tree, "metadata": {**tree["metadata"], "annotations": annotations}}, TrainJob)
    verdict = PIPELINE.validate(said, None, runtime())
    assert verdict.allowed
    assert any("has no effect" in one for one in verdict.warnings)
