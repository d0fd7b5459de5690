"""Which MPIJobs may exist, what they are completed with, and what their users hear."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy.decision import VOLCANO, Settings
from trainplane.legacy.mpi.conversion import V1, V2BETA1, converted
from trainplane.legacy.mpi.judgement import default, problems, warnings

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_LAUNCHER = ("spec", "mpiReplicaSpecs", "Launcher")
_WORKER = ("spec", "mpiReplicaSpecs", "Worker")


def _job(api_version: str = V2BETA1, /, **spec: Any) -> Tree:
    template = {"spec": {"containers": [{"name": "mpi", "image": "i"}]}}
    replicas = {"Launcher": {"replicas": 1, "template": template}, "Worker": {"replicas": 2, "template": template}}
    metadata = {"name": "pi", "namespace": "team"}
    spec = {"mpiReplicaSpecs": replicas, **spec}
    return {"apiVersion": api_version, "kind": "MPIJob", "metadata": metadata, "spec": spec}


def _paths(new: Tree, old: Tree | None = None, settings: Settings | None = None) -> list[str]:
    return [finding.path for finding in problems(new, old, settings or Settings())]


def test_a_plain_job_is_taken_before_and_after_it_is_completed() -> None:
    assert _paths(_job()) == _paths(default(_job())) == []
    assert _paths(_job(V1)) == []


def test_a_job_is_completed_once() -> None:
    whole = default(_job())
    assert whole["spec"]["slotsPerWorker"] == 1
    assert whole["spec"]["runPolicy"] == {"cleanPodPolicy": "None"}
    assert trees.get(whole, *_LAUNCHER, "restartPolicy") == "OnFailure"
    assert trees.get(whole, *_WORKER, "restartPolicy") == "Never"
    assert default(whole) == whole


def test_what_a_job_says_stays() -> None:
    said: Tree = {"slotsPerWorker": 0, "mpiImplementation": "Intel", "sshAuthMountPath": "/k"}
    assert default(_job(**said))["spec"].items() >= said.items()


@pytest.mark.parametrize(
    "spec", [None, [], "x", {"runPolicy": []}, {"mpiReplicaSpecs": {"Worker": 1}}, {"slotsPerWorker": {}}]
)
def test_a_job_of_any_form_is_completed_or_left(spec: Any) -> None:
    job = {"apiVersion": V2BETA1, "kind": "MPIJob", "metadata": {"name": "pi"}, "spec": spec}
    assert default(job)["kind"] == "MPIJob"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("metadata", "name"), "x" * 55, "metadata.name"),
        (("metadata", "name"), "1x", "metadata.name"),
        ((*_WORKER, "replicas"), 0, "spec.mpiReplicaSpecs[Worker].replicas"),
        ((*_LAUNCHER, "replicas"), 2, "spec.mpiReplicaSpecs[Launcher].replicas"),
        ((*_LAUNCHER, "restartPolicy"), "Always", "spec.mpiReplicaSpecs[Launcher].restartPolicy"),
        ((*_WORKER, "template"), {}, "spec.mpiReplicaSpecs[Worker].template.spec.containers"),
        (("spec", "mpiReplicaSpecs"), None, "spec.mpiReplicaSpecs"),
        (("spec", "slotsPerWorker"), -1, "spec.slotsPerWorker"),
        (("spec", "sshAuthMountPath"), "a:b", "spec.sshAuthMountPath"),
        (("spec", "launcherCreationPolicy"), "Later", "spec.launcherCreationPolicy"),
        (("spec", "mpiImplementation"), "LAM", "spec.mpiImplementation"),
        (("spec", "runPolicy"), {"managedBy": "me"}, "spec.runPolicy.managedBy"),
        (("spec", "runPolicy"), {"backoffLimit": -1}, "spec.runPolicy.backoffLimit"),
    ],
)
def test_what_could_not_run_is_refused_at_its_field(path: tuple[str, ...], value: Any, told: str) -> None:
    assert told in _paths(trees.put(_job(), *path, value=value))


def test_a_launcher_alone_is_taken() -> None:
    assert _paths(trees.drop(_job(runLauncherAsWorker=True), *_WORKER)) == []


def test_a_million_workers_are_refused_at_once() -> None:
    start = time.process_time()
    many = trees.put(_job(), *_WORKER, "replicas", value=2**31 - 1)
    assert "spec.mpiReplicaSpecs" in _paths(many)
    assert time.process_time() - start < 1


def test_lists_of_hosts_that_fit_no_config_map_are_refused() -> None:
    many = trees.put(_job(), *_WORKER, "replicas", value=4000)
    long = trees.put(trees.put(many, "metadata", "name", value="x" * 50), "metadata", "namespace", value="n" * 63)
    assert "spec.mpiReplicaSpecs[Worker].replicas" in _paths(long)
    assert _paths(many) == []


def test_an_amount_that_is_none_is_refused() -> None:
    resources = {"requests": {"cpu": "many"}}
    container = {"name": "mpi", "image": "i", "resources": resources}
    wrong = trees.put(_job(), *_WORKER, "template", "spec", "containers", value=[container])
    assert _paths(wrong) == ["spec.mpiReplicaSpecs[Worker].template.spec"]


def test_a_gang_that_could_never_start_is_refused_where_gangs_are_scheduled() -> None:
    job = _job(runPolicy={"schedulingPolicy": {"minAvailable": 4}})
    assert _paths(job) == []
    assert _paths(job, settings=Settings(gang=VOLCANO)) == ["spec.runPolicy.schedulingPolicy.minAvailable"]


def test_an_edit_is_judged_by_what_it_makes_worse() -> None:
    old = _job(slotsPerWorker=-1)
    suspended = trees.put(old, "spec", "runPolicy", "suspend", value=True)
    assert _paths(suspended, old) == []
    assert _paths(trees.put(suspended, "spec", "mpiImplementation", value="LAM"), old) == ["spec.mpiImplementation"]


def test_a_job_stays_with_its_manager_in_either_version() -> None:
    ours = _job(runPolicy={"managedBy": names.MANAGED_BY_MPI_OPERATOR})
    theirs = _job(runPolicy={"managedBy": names.MANAGED_BY_MULTIKUEUE})
    assert _paths(theirs, ours) == ["spec.runPolicy.managedBy"]
    assert _paths(converted(theirs, V1), converted(ours, V1)) == ["spec.runPolicy.managedBy"]
    assert _paths(converted(ours, V1), ours) == []


def test_without_the_gate_no_job_may_name_a_manager() -> None:
    job = _job(runPolicy={"managedBy": names.MANAGED_BY_MPI_OPERATOR})
    assert _paths(job, settings=Settings(job_managed_by=False)) == ["spec.runPolicy.managedBy"]


class TestWarnings:
    def test_a_job_of_v2beta1_hears_nothing(self) -> None:
        assert list(warnings(_job())) == []

    @pytest.mark.parametrize("version", [V1, V2BETA1])
    def test_a_job_of_v1_hears_what_its_image_needs_whichever_version_is_judged(self, version: str) -> None:
        (told,) = warnings(converted(_job(V1), version))
        assert "sshd" in told
        assert len(told) <= 256

    def test_a_job_of_v1_hears_what_else_changes(self) -> None:
        job = trees.put(_job(V1, mainContainer="other"), *_WORKER, "restartPolicy", value="ExitCode")
        containers = [{"name": "mpi", "image": "i", "command": ["sleep"]}]
        told = "\n".join(warnings(trees.put(job, *_WORKER, "template", "spec", "containers", value=containers)))
        assert "command and args" in told
        assert "mainContainer" in told
        assert "ExitCode runs as Never" in told

    def test_a_restart_policy_in_the_template_is_told_of(self) -> None:
        (told,) = warnings(trees.put(_job(), *_WORKER, "template", "spec", "restartPolicy", value="Always"))
        assert "template.spec.restartPolicy" in told

    def test_a_replica_type_that_there_is_not_is_told_of(self) -> None:
        (told,) = warnings(trees.put(_job(), "spec", "mpiReplicaSpecs", "Chief", value={}))
        assert "Launcher and Worker" in told
