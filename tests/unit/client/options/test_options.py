from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api import document
from trainplane.api.trainjob import TrainJob
from trainplane.client import options
from trainplane.client.errors import InvalidError, UnsupportedError
from trainplane.client.options import (
    ActiveDeadlineSeconds,
    Annotations,
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    Name,
    NumProcPerNode,
    PodSpecPatch,
    PodTemplatePatch,
    PriorityClass,
    Queue,
    ReplicatedJobPatch,
    RuntimePatch,
    Suspend,
    TrainerArgs,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)
from trainplane.client.submission import compose
from trainplane.client.types.trainers import BuiltinTrainer, CustomTrainerContainer, ScriptTrainer, TorchTuneConfig

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.client.backends.backend import BackendKind


def job(*given: Any, trainer: Any = None, backend: BackendKind = "kubernetes") -> Tree:
    composed = compose("torch", None, trainer, given, backend=backend, name=lambda: "drawn")
    document.read(composed, TrainJob)
    return composed


def patch(pod: PodSpecPatch, name: str = "node", **metadata: str) -> RuntimePatch:
    template = PodTemplatePatch(metadata={"labels": metadata} if metadata else None, spec=pod)
    replicated = ReplicatedJobPatch(name, JobTemplatePatch(spec=JobSpecPatch(template)))
    return RuntimePatch(TrainingRuntimeSpecPatch(JobSetTemplatePatch(spec=JobSetSpecPatch([replicated]))))


def pods(composed: Tree) -> dict[str, Tree]:
    (entry,) = composed["spec"]["runtimePatches"]
    jobs = entry["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"] for job in jobs}


def test_each_sets_its_field() -> None:
    composed = job(
        Name("mine"), Queue("team"), PriorityClass("high"), Suspend(), NumProcPerNode(4), ActiveDeadlineSeconds(60)
    )
    assert composed["metadata"] == {
        "name": "mine",
        "labels": {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "high"},
    }
    assert composed["spec"] == {
        "runtimeRef": {"name": "torch"},
        "trainer": {"numProcPerNode": 4},
        "suspend": True,
        "activeDeadlineSeconds": 60,
    }


def test_labels_and_annotations_add_up() -> None:
    composed = job(
        Labels({"a": "1", "b": "1"}), Labels({"b": "2"}), Queue("q"), Annotations({"c": "3"}), Annotations({"d": "4"})
    )
    assert composed["metadata"]["labels"] == {"a": "1", "b": "2", "kueue.x-k8s.io/queue-name": "q"}
    assert composed["metadata"]["annotations"] == {"c": "3", "d": "4"}


def test_what_is_given_is_not_changed() -> None:
    mine = {"a": "1"}
    job(Labels(mine), Labels({"b": "2"}))
    assert mine == {"a": "1"}


def test_auto_leaves_it_to_the_runtime() -> None:
    assert "trainer" not in job(NumProcPerNode("auto"))["spec"]


def test_a_command_goes_with_an_image_or_with_nothing() -> None:
    words = (TrainerCommand(["a", "$b"]), TrainerArgs(("c",)))
    assert job(*words)["spec"]["trainer"] == {"command": ["a", "$b"], "args": ["c"]}
    assert job(*words, trainer=CustomTrainerContainer("i"))["spec"]["trainer"]["command"] == ["a", "$b"]
    for word in words:
        with pytest.raises(InvalidError, match="a BuiltinTrainer has a command of its own"):
            job(word, trainer=BuiltinTrainer(TorchTuneConfig()))
        with pytest.raises(InvalidError, match=f"the option {type(word).__name__} goes with a CustomTrainerContainer"):
            word({}, ScriptTrainer("x"), "kubernetes")


def test_patches_are_written_as_the_api_has_them() -> None:
    everything = PodSpecPatch(
        service_account_name="sa",
        volumes=[{"name": "v", "emptyDir": {}}],
        init_containers=[ContainerPatch("init")],
        containers=[
            ContainerPatch(
                "node",
                env=[{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                volume_mounts=[{"name": "v", "mountPath": "/v"}],
                security_context={"runAsUser": 0},
            )
        ],
        image_pull_secrets=[{"name": "pull"}],
        security_context={"fsGroup": 1},
        node_selector={"zone": "a"},
        affinity={"nodeAffinity": {}},
        tolerations=[{"operator": "Exists"}],
        scheduling_gates=[{"name": "gate"}],
        termination_grace_period_seconds=120,
    )
    composed = job(patch(everything, team="a"))
    assert composed["spec"]["runtimePatches"][0]["manager"] == "trainplane.dev/sdk"
    assert pods(composed)["node"] == {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "serviceAccountName": "sa",
            "volumes": [{"name": "v", "emptyDir": {}}],
            "initContainers": [{"name": "init"}],
            "containers": [
                {
                    "name": "node",
                    "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "securityContext": {"runAsUser": 0},
                }
            ],
            "imagePullSecrets": [{"name": "pull"}],
            "securityContext": {"fsGroup": 1},
            "nodeSelector": {"zone": "a"},
            "affinity": {"nodeAffinity": {}},
            "tolerations": [{"operator": "Exists"}],
            "schedulingGates": [{"name": "gate"}],
            "terminationGracePeriodSeconds": 120,
        },
    }


def test_patches_add_up_to_one_entry() -> None:
    composed = job(
        patch(PodSpecPatch(node_selector={"a": "1"}, tolerations=[{"key": "x"}])),
        patch(PodSpecPatch(service_account_name="launch"), "launcher"),
        patch(PodSpecPatch(containers=[ContainerPatch("node", env=[{"name": "A", "value": "1"}])])),
        patch(
            PodSpecPatch(
                node_selector={"b": "2"},
                tolerations=[{"key": "x"}, {"key": "y"}],
                containers=[ContainerPatch("node", env=[{"name": "A", "value": "2"}, {"name": "B", "value": "3"}])],
            )
        ),
    )
    assert pods(composed) == {
        "node": {
            "spec": {
                "nodeSelector": {"a": "1", "b": "2"},
                "tolerations": [{"key": "x"}, {"key": "y"}],
                "containers": [{"name": "node", "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]}],
            }
        },
        "launcher": {"spec": {"serviceAccountName": "launch"}},
    }


def test_a_patch_of_another_manager_stays() -> None:
    def other(job_spec: Tree, trainer: object, backend: str) -> None:
        job_spec["spec"]["runtimePatches"] = [{"manager": "example.com/other"}]

    managers = [entry["manager"] for entry in job(other, patch(PodSpecPatch()))["spec"]["runtimePatches"]]
    assert managers == ["example.com/other", "trainplane.dev/sdk"]


def test_an_empty_patch_is_an_entry_without_changes() -> None:
    assert job(RuntimePatch())["spec"]["runtimePatches"] == [{"manager": "trainplane.dev/sdk"}]


@pytest.mark.parametrize("backend", ["process", "container"])
def test_what_needs_kueue_needs_a_cluster(backend: BackendKind) -> None:
    for option in (Queue("q"), PriorityClass("p")):
        with pytest.raises(
            UnsupportedError, match=f"needs a kubernetes backend, and this one is {backend}: leave it out"
        ):
            job(option, backend=backend)
    everywhere = (
        Name("n"),
        Labels({"a": "b"}),
        Annotations({"a": "b"}),
        Suspend(),
        ActiveDeadlineSeconds(1),
        NumProcPerNode(1),
        TrainerCommand(["a"]),
        TrainerArgs(["a"]),
        patch(PodSpecPatch()),
    )
    assert job(*everywhere, backend=backend)["metadata"]["name"] == "n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Name("Upper"), "name must be of small letters"),
        (lambda: Name("1a"), "begin with a letter"),
        (lambda: Name("a" * 64), "at most 63 characters"),
        (lambda: Name(""), "it is ''"),
        (lambda: Labels({"a": 1}), r"labels\['a'\] must be a text, and is 1: write '1'"),  # type: ignore[dict-item]
        (lambda: Annotations({"a": None}), r"annotations\['a'\] must be a text"),  # type: ignore[dict-item]
        (lambda: ActiveDeadlineSeconds(0), "seconds must be a number from 1 on, and is 0"),
        (lambda: ActiveDeadlineSeconds(True), "seconds must be a number from 1 on, and is True"),
        (lambda: NumProcPerNode("many"), "number must be a number from 1 on, and is 'many'"),  # type: ignore[arg-type]
        (lambda: TrainerCommand("python x"), "command must be a list of texts, and is 'python x'"),
        (lambda: TrainerArgs([1]), r"args must be a list of texts, and is \[1\]"),  # type: ignore[list-item]
        (lambda: ContainerPatch(" "), "must be a container's name"),
        (lambda: ContainerPatch("n", env={"A": "1"}), "env of a ContainerPatch must be a list of dicts"),  # type: ignore[arg-type]
        (lambda: ContainerPatch("n", env=[{"value": "1"}]), r"env\[0\] needs a name"),
        (lambda: ContainerPatch("n", env=[{"name": "A"}]), r"env\[0\] \(A\) needs a value or a valueFrom"),
        (lambda: ContainerPatch("n", env=[{"name": "A", "valueFrom": {}}]), r"env\[0\].valueFrom \(A\) must be one of"),
        (lambda: ContainerPatch("n", volume_mounts=[{"name": "v"}]), "needs a mountPath that begins with '/'"),
        (lambda: ContainerPatch("n", volume_mounts=[{"name": "v", "mountPath": "v"}]), "and has 'v'"),
    ],
)
def test_what_means_nothing_is_refused_when_it_is_made(make: Any, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        make()


def test_every_name_is_public() -> None:
    assert all(hasattr(options, name) for name in options.__all__)
    assert list(options.__all__) == sorted(options.__all__)
