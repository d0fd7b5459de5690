"""Which TrainJobs may be created; every sentence is read here once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.admission.objects import (
    Plain,
    entry,
    namespaced,
    plain,
    replicated_job,
    runtime,
    trainjob,
    with_spec,
)
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import names
from trainplane.render.findings import Finding, Verdict
from trainplane.render.pipeline import Pipeline

REAL = Pipeline.default()
POD = ("spec", "template", "spec", "replicatedJobs", ("name", "node"), "template", "spec", "template", "spec")


def judged(new: Any, known: Any = None, *, pipeline: Any = REAL) -> Verdict:
    """Judge a create; on a plain torch runtime unless another is given."""
    return validate_trainjob(
        new, None, runtime=known or runtime(), runtime_source="live", jobset=None, pipeline=pipeline
    )


def without_runtime(new: Any) -> Verdict:
    return validate_trainjob(new, None, runtime=None, runtime_source=None, jobset=None, pipeline=REAL)


def test_a_plain_job() -> None:
    assert judged(trainjob()) == Verdict()
    assert judged(trainjob(trainer={"numNodes": 2, "numProcPerNode": 8, "command": ["torchrun", "t.py"]})) == Verdict()


def test_the_plugins_judge_too() -> None:
    finding = Finding("spec.trainer.env", "no")
    pipeline = Plain(Verdict((finding,), ("careful",)))
    assert judged(trainjob(), pipeline=pipeline) == Verdict((finding,), ("careful",))
    ((job, old, _),) = pipeline.judged
    assert job.view.metadata.name == "job"
    assert old is None


class TestRuntime:
    def test_no_cluster_training_runtime_of_that_name(self) -> None:
        (finding,) = without_runtime(trainjob()).errors
        assert finding.path == "spec.runtimeRef"
        assert finding.cause == "NotFound"
        assert finding.problem == (
            'there is no ClusterTrainingRuntime "torch": create it first, or name one that '
            "`kubectl get clustertrainingruntimes` lists"
        )

    def test_no_training_runtime_of_that_name_in_the_namespace(self) -> None:
        ref = {"apiGroup": names.GROUP, "kind": names.TRAINING_RUNTIME, "name": "mine"}
        (finding,) = without_runtime(trainjob(runtimeRef=ref)).errors
        assert finding.problem == (
            'there is no TrainingRuntime "mine" in namespace team: create it first, or name one that '
            "`kubectl get trainingruntimes` lists"
        )

    @pytest.mark.parametrize(
        ("group", "kind", "shown"),
        [
            ("trainer.kubeflow.org", "Runtime", "Runtime.trainer.kubeflow.org"),
            ("example.com", "TrainingRuntime", "TrainingRuntime.example.com"),
        ],
    )
    def test_no_such_kind_of_runtime(self, group: str, kind: str, shown: str) -> None:
        (finding,) = without_runtime(trainjob(runtimeRef={"apiGroup": group, "kind": kind, "name": "a"})).errors
        assert finding == Finding(
            "spec.runtimeRef",
            f'"{shown}" is no kind of runtime: write kind TrainingRuntime or ClusterTrainingRuntime, '
            "and apiGroup trainer.kubeflow.org",
        )

    @pytest.mark.parametrize(
        ("known", "kind"), [(runtime(), "ClusterTrainingRuntime"), (namespaced(), "TrainingRuntime")]
    )
    def test_a_deprecated_runtime_warns(self, known: Any, kind: str) -> None:
        label = {names.LABEL_SUPPORT: names.SUPPORT_DEPRECATED}
        verdict = judged(trainjob(), known.put("metadata", "labels", value=label))
        assert verdict.allowed
        (warning,) = verdict.warnings
        assert warning == (
            f'{kind} "torch" is deprecated and will be removed: move to another runtime. See '
            "https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
        )

    def test_a_deprecated_runtime_names_its_successor(self) -> None:
        label = {names.LABEL_SUPPORT: names.SUPPORT_DEPRECATED}
        old = runtime().put("metadata", "labels", value=label)
        (warning,) = judged(
            trainjob(), old.put("metadata", "annotations", names.ANNOTATION_REPLACED_BY, value="v2")
        ).warnings
        assert 'ClusterTrainingRuntime "torch" is deprecated and will be removed: use v2 instead.' in warning

    def test_what_can_be_judged_without_it_is(self) -> None:
        paths = [finding.path for finding in without_runtime(trainjob(runtimePatches=[entry("kueue")])).errors]
        assert paths == ["spec.runtimeRef", "spec.runtimePatches[0].manager"]


class TestManagers:
    @pytest.mark.parametrize(
        "manager",
        ["kueue.k8s.io/manager", "a/b", "example.com/a/b", "example.com/~%!$&'()*+,;=:-._", "1.2/x", "localhost/-"],
    )
    def test_right(self, manager: str) -> None:
        assert judged(trainjob(runtimePatches=[entry(manager)])).allowed

    @pytest.mark.parametrize(
        "manager",
        [
            "kueue",
            "kueue.k8s.io/",
            "/manager",
            "Example.com/a",
            "example..com/a",
            "-a/b",
            "a_b/c",
            "a.b/c d",
            "a.b/c\n",
            "a.b\n/c",
            "ü.de/a",
            "a/ü",
            "a" * 254 + "/b",
        ],
    )
    def test_wrong(self, manager: str) -> None:
        (finding,) = judged(trainjob(runtimePatches=[entry("a.b/c"), entry(manager)])).errors
        assert finding == Finding(
            "spec.runtimePatches[1].manager",
            f'"{manager}" is no path that begins with a domain: write one such as example.com/team',
        )


class TestNumbers:
    @pytest.mark.finding("semantics", 11, "numNodes 0 was accepted, and nodes without names got no warning")
    @pytest.mark.parametrize("nodes", [0, -1])
    def test_a_training_has_a_node(self, nodes: int) -> None:
        problem = f"must be 1 or more, not {nodes}: it is a number of pods"
        assert judged(trainjob(trainer={"numNodes": nodes})).errors == (Finding("spec.trainer.numNodes", problem),)
        assert judged(trainjob(trainer={"numNodes": 1})).allowed

    @pytest.mark.parametrize("framework", ["torch", "mpi", "flux"])
    @pytest.mark.parametrize("processes", [0, -1])
    def test_no_processes(self, framework: str, processes: int) -> None:
        known = runtime(policy={framework: {}})
        assert judged(trainjob(trainer={"numProcPerNode": processes}), known, pipeline=plain()).errors == (
            Finding(
                "spec.trainer.numProcPerNode",
                f"must be 1 or more, not {processes}: leave it out for one process per GPU, or per CPU without GPUs",
            ),
        )

    @pytest.mark.parametrize("policy", [{}, {"numNodes": 2}, {"jax": {}}, {"xgboost": {}}])
    def test_frameworks_that_do_not_count_processes_do_not_mind(self, policy: Any) -> None:
        assert judged(trainjob(trainer={"numProcPerNode": 0}), runtime(policy=policy), pipeline=plain()).allowed

    def test_a_text_that_admission_could_not_turn(self) -> None:
        (finding,) = judged(trainjob(trainer={"numProcPerNode": "many"}), pipeline=plain()).errors
        assert finding == Finding(
            "spec.trainer.numProcPerNode",
            '"many" is no number: write how many processes each node runs, or leave it out for one per GPU, '
            "or per CPU without GPUs",
        )

    @pytest.mark.parametrize("framework", ["torch", "mpi", "flux", "jax"])
    def test_a_text_that_is_no_number_is_refused_once(self, framework: str) -> None:
        (finding,) = judged(trainjob(trainer={"numProcPerNode": "abc"}), runtime(policy={framework: {}})).errors
        assert finding.path == "spec.trainer.numProcPerNode"

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("gpu", "did you mean nvidia.com/gpu or amd.com/gpu?"),
            ("TPU", "did you mean google.com/tpu?"),
            ("ram", "did you mean memory?"),
            ("widgets", "it has cpu, memory, ephemeral-storage, and devices as nvidia.com/gpu"),
        ],
    )
    def test_a_resource_that_kubernetes_does_not_know(self, name: str, meant: str) -> None:
        (finding,) = judged(trainjob(trainer={"resourcesPerNode": {"limits": {name: 1}}})).errors
        assert finding.path == "spec.trainer.resourcesPerNode"
        assert f"would have 1 of {name}, which Kubernetes does not know ({meant})" in finding.problem

    def test_gpu_without_gpus(self) -> None:
        (finding,) = judged(trainjob(trainer={"numProcPerNode": "gpu"}), pipeline=plain()).errors
        assert finding.problem == (
            "gpu means one process per GPU, but neither spec.trainer.resourcesPerNode nor the runtime asks for a GPU: "
            "ask for GPUs there, or write the number of processes"
        )


class TestTargets:
    """The reference merges first and looks afterwards, when every target is there."""

    @pytest.mark.parametrize(
        "change",
        [
            {"name": "ghost", "template": {}},
            {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "ghost"}]}}}}},
            {"name": "node", "template": {"spec": {"template": {"spec": {"initContainers": [{"name": "ghost"}]}}}}},
            {"name": "node", "template": {"spec": {"template": {"spec": {"initContainers": [{"name": "node"}]}}}}},
        ],
    )
    def test_a_target_that_the_runtime_lacks(self, change: Any) -> None:
        patch = {"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
        (finding,) = judged(trainjob(runtimePatches=[patch])).errors
        assert finding.path.startswith("spec.runtimePatches")

    def test_variables_of_the_training_container(self) -> None:
        patch = entry(containers=[{"name": "node", "env": [{"name": "A", "value": "1"}]}])
        (finding,) = judged(trainjob(runtimePatches=[patch])).errors
        assert finding.path.startswith("spec.runtimePatches")

    def test_two_managers_on_the_same_job(self) -> None:
        patches = [entry("a.b/c", nodeSelector={"a": "b"}), entry("a.b/d", tolerations=[{"key": "k"}])]
        assert judged(trainjob(runtimePatches=patches)).allowed


class TestPlugins:
    def test_reserved_variables(self) -> None:
        verdict = judged(trainjob(trainer={"env": [{"name": "PET_NODE_RANK", "value": "1"}]}))
        assert [finding.path for finding in verdict.errors] == ["spec.trainer.env"]

    def test_an_initializer_that_the_runtime_lacks(self) -> None:
        verdict = judged(trainjob(initializer={"dataset": {"storageUri": "hf://a/b"}}))
        assert verdict.errors
        assert all(finding.path == "spec.runtimeRef" for finding in verdict.errors)


def test_every_rule_speaks_at_once() -> None:
    job = trainjob("j" * 63, trainer={"numNodes": -1, "numProcPerNode": 0}, runtimePatches=[entry("kueue")])
    finding = Finding("spec.trainer.env", "no")
    paths = [one.path for one in judged(job, pipeline=Plain(Verdict((finding,)))).errors]
    assert paths == [
        "spec.runtimePatches[0].manager",
        "spec.trainer.numNodes",
        "spec.trainer.numProcPerNode",
        "metadata.name",
        "spec.trainer.env",
    ]


def test_a_job_that_cannot_be_read_names_the_field() -> None:
    (finding,) = judged(trainjob(trainer={"numNodes": "two"})).errors
    assert finding.path == "spec.trainer.numNodes"


def test_the_runtime_of_another_kind_is_no_matter() -> None:
    assert judged(trainjob(), namespaced(replicated_job())).allowed


class TestNothingToRun:
    def bare(self) -> Any:
        return runtime().put(*POD, "containers", value=[{"name": "node", "image": "image"}])

    def test_nobody_says_what_to_run(self) -> None:
        for spec in ({}, {"trainer": {"numNodes": 2}}, {"trainer": {"env": [{"name": "A", "value": "1"}]}}):
            verdict = judged(with_spec(trainjob(), **spec), self.bare())
            assert verdict.allowed
            (warning,) = verdict.warnings
            assert warning == (
                "spec.trainer.command: neither this TrainJob nor its runtime says what to run, so each node runs what "
                "the image starts by itself, which may train nothing: image"
            )

    @pytest.mark.parametrize("trainer", [{"command": ["train"]}, {"args": ["a"]}, {"image": "mine"}])
    def test_the_trainjob_says_it_or_brings_an_image_that_does(self, trainer: Any) -> None:
        assert judged(trainjob(trainer=trainer), self.bare()) == Verdict()
