"""Reviews of jobs of older kinds: completed, judged, warned of; and never a way to stop the operator."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest

from tests.unit.operator.legacy.test_assembly import mpi_job, pytorch_job
from trainplane.api.legacy.kinds import KINDS, MPI, PYTORCH
from trainplane.kube.admission import AdmissionRequest, GroupVersionKind, Verdict
from trainplane.kube.errors import DecodeError
from trainplane.legacy.decision import Settings
from trainplane.operator.legacy.webhooks import routes

Tree = dict[str, Any]


async def ask(path: str, new: Any, old: Tree | None = None, settings: Settings | None = None) -> Verdict:
    review: Any = routes(KINDS.values(), settings or Settings())[path]
    raw = new if isinstance(new, bytes) else msgspec.json.encode(new)
    request = AdmissionRequest(
        "u",
        "CREATE" if old is None else "UPDATE",
        kind=GroupVersionKind("PyTorchJob", "v1", "kubeflow.org"),
        name="job",
        object=msgspec.Raw(raw),
        old_object=msgspec.Raw(b"" if old is None else msgspec.json.encode(old)),
    )
    verdict: Verdict = await review(request)
    return verdict


def test_paths_are_those_of_training_operator() -> None:
    assert PYTORCH.review_path("validate") == "/validate-kubeflow-org-v1-pytorchjob"
    assert MPI.review_path("mutate") == "/mutate-kubeflow-org-v2beta1-mpijob"


async def test_what_a_job_leaves_out_is_filled_in() -> None:
    answer = await ask(PYTORCH.review_path("mutate"), pytorch_job())
    assert answer.allowed
    assert any("restartPolicy" in str(operation) for operation in answer.patch)


@pytest.mark.parametrize(("kind", "job"), [(PYTORCH, pytorch_job()), (MPI, mpi_job())])
async def test_a_whole_job_may_be(kind: Any, job: Tree) -> None:
    assert (await ask(kind.review_path("validate"), job)).allowed


async def test_a_job_without_its_container_is_refused_in_words() -> None:
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["name"] = "main"
    answer = await ask(PYTORCH.review_path("validate"), job)
    assert not answer.allowed
    assert "this PyTorchJob is refused: spec.pytorchReplicaSpecs.Master.template.spec.containers" in answer.message


@pytest.mark.parametrize(("kind", "job"), [(PYTORCH, pytorch_job()), (MPI, mpi_job())])
async def test_without_the_gate_nobody_may_say_who_manages(kind: Any, job: Tree) -> None:
    managed = {**job, "spec": {**job["spec"], "runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}
    assert (await ask(kind.review_path("validate"), managed)).allowed
    answer = await ask(kind.review_path("validate"), managed, settings=Settings(job_managed_by=False))
    assert "feature gate JobManagedBy" in answer.message


async def test_who_labels_a_job_is_not_warned_of_what_its_author_knows() -> None:
    job = pytorch_job()
    template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template["spec"]["restartPolicy"] = "Always"
    assert (await ask(PYTORCH.review_path("validate"), job)).warnings
    labelled = {**job, "metadata": {**job["metadata"], "labels": {"a": "b"}}}
    assert not (await ask(PYTORCH.review_path("validate"), labelled, job)).warnings


async def test_ten_thousand_replicas_are_refused() -> None:
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 10_000
    assert "asks for 10001 pods" in (await ask(PYTORCH.review_path("validate"), job)).message


@pytest.mark.parametrize(
    "attack",
    [
        b'{"metadata": {"name": "job"}, "spec": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b'{"metadata": [], "spec": []}',
        b'{"metadata": {"name": "job"}, "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1e400}}}}',
        b'{"metadata": {"name": "job"}, "spec": {"pytorchReplicaSpecs": ["Worker"], "runPolicy": "none"}}',
        b'{"metadata": {"name": "job"}, "spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": 1}}}}}',
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        PYTORCH.review_path("mutate"),
        PYTORCH.review_path("validate"),
        MPI.review_path("mutate"),
        MPI.review_path("validate"),
    ],
)
async def test_what_no_schema_allows_is_answered_all_the_same(path: str, attack: bytes) -> None:
    with contextlib.suppress(DecodeError):  # the server answers it with a refusal; any other would be a fault of ours
        await ask(path, attack)
