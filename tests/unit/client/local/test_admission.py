"""A laptop takes what a cluster takes, and refuses the rest in the cluster's words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.admission import default_trainjob, describe, validate_trainjob
from trainplane.client.backends.container import ContainerBackend
from trainplane.client.backends.local import runtimes
from trainplane.client.backends.local.admission import admit
from trainplane.client.backends.local.rendering import read_runtime
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.errors import RefusedError
from trainplane.client.types.backends import ContainerBackendConfig, LocalProcessBackendConfig
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trainplane.client.backends.local.backend import LocalBackend

Tree = dict[str, Any]
RUNTIME = runtimes.load("torch-distributed", [])


def job(name: str = "a", metadata: Tree | None = None, **spec: Any) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, **spec},
    }


def patch(manager: str = "example.com/me", **pod: Any) -> Tree:
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


BAD_BY_RULES = {
    "a name that pods cannot have": job("a" * 63),
    "no nodes": job(trainer={"numNodes": 0}),
    "a word for a number": job(trainer={"numProcPerNode": "many"}),
    "GPUs that there are not": job(trainer={"numProcPerNode": "gpu"}),
    "a variable of torch's": job(trainer={"env": [{"name": "PET_NNODES", "value": "3"}]}),
    "a manager without a domain": job(runtimePatches=[patch("me")]),
    "a patch for a job that is not there": job(
        runtimePatches=[{**patch(), "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "x"}]}}}}]
    ),
    "several": job("a" * 63, trainer={"numNodes": 0, "env": [{"name": "PET_NNODES", "value": "3"}]}),
}
BAD_BY_SCHEMA = {
    "a name with large letters": (job("A"), "metadata.name must begin with a small letter"),
    "a name that is too long": (job("a" * 64), "metadata.name must have at most 63 characters"),
    "a text for a number": (
        job(trainer={"numNodes": "2"}),
        "spec.trainer.numNodes: must be a whole number, not a text",
    ),
    "a field that there is not": (job(trainer={"nodes": 2}), "spec.trainer.nodes: there is no such field"),
    "a manager that nobody knows": (job(managedBy="me"), "spec.managedBy: must be trainer.kubeflow.org"),
    "a place without a scheme": (
        job(initializer={"dataset": {"storageUri": "here"}}),
        "spec.initializer.dataset.storageUri: must be empty or a URI",
    ),
}
GOOD = {
    "all left to the runtime": job(),
    "a long name": job("a" * 40),
    "numbers": job(trainer={"numNodes": 2, "numProcPerNode": 2, "command": ["run"], "image": "i"}),
    "amounts": job(trainer={"resourcesPerNode": {"limits": {"cpu": 2, "memory": "1Gi"}}}),
    "a queue": job(metadata={"labels": {"kueue.x-k8s.io/queue-name": "q"}}, trainer={"numNodes": 2}),
    "patches": job(runtimePatches=[patch(nodeSelector={"a": "b"})]),
    "older fields": job(
        podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}]
    ),
    "a deadline": job(activeDeadlineSeconds=60, suspend=True),
}


@pytest.fixture(params=["process", "container"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBackend:
    if request.param == "process":
        return ProcessBackend(LocalProcessBackendConfig(state=tmp_path))
    monkeypatch.setattr("trainplane.client.backends.container.backend.find_engine", lambda _: None)  # none is asked
    return ContainerBackend(ContainerBackendConfig(state=tmp_path))


def webhooks(sent: Tree) -> str:
    """Return what our webhooks say of a new TrainJob; empty if nothing."""
    runtime = read_runtime(RUNTIME)
    stored = default_trainjob(sent, None, now=datetime.now(UTC), runtime=runtime).tree
    verdict = validate_trainjob(
        stored, None, runtime=runtime, runtime_source="live", jobset=None, pipeline=Pipeline.default()
    )
    return "" if verdict.allowed else describe(verdict, "TrainJob")


async def refusal(backend: LocalBackend, sent: Tree) -> str:
    with pytest.raises(RefusedError) as refused:
        await backend.submit(sent)
    assert await backend.list_jobs() == []
    return str(refused.value)


@pytest.mark.parametrize("case", BAD_BY_RULES)
async def test_what_webhooks_refuse_is_refused_in_their_words(backend: LocalBackend, case: str) -> None:
    sent = BAD_BY_RULES[case]
    expected = webhooks(sent)
    assert expected
    assert await refusal(backend, sent) == f"TrainJob {sent['metadata']['name']} cannot be created: {expected}"


@pytest.mark.parametrize("case", BAD_BY_SCHEMA)
async def test_what_the_schema_refuses_is_refused(backend: LocalBackend, case: str) -> None:
    sent, said = BAD_BY_SCHEMA[case]
    message = await refusal(backend, sent)
    assert message.startswith(f"TrainJob {sent['metadata']['name']} cannot be created: this TrainJob is refused")
    assert said in message


@pytest.mark.parametrize("case", GOOD)
def test_what_a_cluster_takes_is_taken(case: str) -> None:
    sent = GOOD[case]
    assert webhooks(sent) == ""
    admitted = admit(sent, RUNTIME)
    assert admit(admitted.tree, RUNTIME).tree == admitted.tree
    assert "podTemplateOverrides" not in admitted.tree["spec"]


def test_older_fields_are_warned_of() -> None:
    assert "podTemplateOverrides" in " ".join(admit(GOOD["older fields"], RUNTIME).warnings)


def suspended(tree: Tree) -> Tree:
    return {**tree, "spec": {**tree["spec"], "suspend": True}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda spec: spec["trainer"].update(numNodes=3), "spec.trainer.numNodes: cannot be changed once"),
        (lambda spec: spec.pop("trainer"), "spec.trainer: cannot be removed once the TrainJob exists"),
        (lambda spec: spec.update(runtimeRef={"name": "x"}), "spec.runtimeRef: cannot be changed once"),
        (lambda spec: spec.update(runtimePatches=[patch(nodeSelector={"a": "b"})]), "while the TrainJob runs"),
        (
            lambda spec: spec.update(suspend=True, runtimePatches=[patch(terminationGracePeriodSeconds=5)]),
            "cannot change terminationGracePeriodSeconds of job node: the JobSet is there already",
        ),
    ],
)
def test_an_edit_is_refused_as_on_a_cluster(change: Callable[[Tree], Any], said: str) -> None:
    stored = admit(job(trainer={"numNodes": 2, "command": ["run"]}), RUNTIME).tree
    edited = {**stored, "spec": {**stored["spec"], "trainer": {**stored["spec"]["trainer"]}}}
    change(edited["spec"])
    with pytest.raises(RefusedError, match="TrainJob a cannot be changed: this TrainJob is refused") as refused:
        admit(edited, RUNTIME, stored=stored)
    assert said in str(refused.value)


def test_an_edit_is_taken_when_pods_are_stopped() -> None:
    stored = admit(suspended(job(trainer={"numNodes": 2})), RUNTIME).tree
    edited = {**stored, "spec": {**stored["spec"], "runtimePatches": [patch(nodeSelector={"a": "b"})]}}
    active = {"jobsStatus": [{"name": "node", "active": 1}]}
    with pytest.raises(RefusedError, match="cannot change while job node is still active"):
        admit(edited, RUNTIME, stored={**stored, "status": active})
    assert admit(edited, RUNTIME, stored=stored).tree["spec"]["runtimePatches"][0]["time"]


def test_what_older_releases_took_is_suspended_all_the_same() -> None:
    stored = job("a" * 63, trainer={"numNodes": 2})
    assert admit(suspended(stored), RUNTIME, stored=stored).tree["spec"]["suspend"] is True
