"""Clients of the older kinds, unchanged: the SDK `kubeflow-training` 1.9.4, and manifests by kubectl, with real pods.

With FULL=1 the same goes through training-operator v1.9.3 too, which proves what is asked here of ours.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab import kueue
from lab.images import reference as image
from lab.training_operator import KINDS
from tests.legacy.old import side
from tests.legacy.old.side import USER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.legacy.old.side import Side

_SAMPLES = Path(__file__).with_name("samples")
_LABEL = "training.kubeflow.org/job-name"


@pytest.fixture(scope="module", params=["ours", pytest.param("old", marks=pytest.mark.full)])
def here(request: pytest.FixtureRequest) -> Iterator[Side]:
    """Let somebody use our cluster, which has Kueue and the queue that the samples name, or the old operator's.

    A sample of each kind is begun at once.
    """
    ours = request.param == "ours"
    with side.on(request.getfixturevalue("node_cluster")) if ours else side.old() as one:
        if ours:
            one.cluster.apply(*kueue.queue("user-queue", USER, cpu="4", memory="4Gi"))
        for kind in KINDS:
            one.apply(_SAMPLES / f"{kind.lower()}.yaml")
        yield one


TRAINED = """
def train(parameters):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.ones(1) * parameters["each"]
    dist.all_reduce(total)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {int(total.item())}")
    dist.barrier()
    dist.destroy_process_group()  # or gloo may abort a process whose peer has ended

client.create_job(
    name="trained", train_func=train, parameters={"each": 7}, base_image=IMAGE, num_workers=2, num_procs_per_worker=1,
    labels={"team": "a"},
)
job = client.wait_for_job_conditions("trained", wait_timeout=180, polling_interval=1)
logs, _ = client.get_job_logs("trained", is_master=False)
{
    "types": [one.type for one in client.get_job_conditions("trained")],
    "succeeded": client.is_job_succeeded("trained"),
    "running": client.is_job_running("trained"),
    "pods": client.get_job_pod_names("trained"),
    "master": client.get_job_pod_names("trained", is_master=True),
    "workers": client.get_job_pod_names("trained", replica_type="worker"),
    "logs": logs,
    "replicas": {kind: one.succeeded for kind, one in job.status.replica_statuses.items()},
    "listed": [one.metadata.name for one in client.list_jobs()],
}
"""


def test_a_function_is_trained_on_two_nodes(here: Side) -> None:
    found = here.sdk.run(TRAINED, IMAGE=image("torch"))
    assert found["types"] == ["Created", "Running", "Succeeded"]
    assert (found["succeeded"], found["running"]) == (True, False)
    assert sorted(found["pods"]) == ["trained-master-0", "trained-worker-0"]
    assert found["master"] == ["trained-master-0"]
    assert found["workers"] == ["trained-worker-0"]
    assert "rank 0 of 2: sum 14" in found["logs"]["trained-master-0"]
    assert "rank 1 of 2: sum 14" in found["logs"]["trained-worker-0"]
    assert found["replicas"]["Master"] == 1
    assert "trained" in found["listed"]
    here.sdk.run('client.delete_job("trained")')
    for kind in ("pods", "services"):
        left = partial(here.api.list, kind, USER, labels=f"{_LABEL}=trained")
        here.until(f"trained leaves no {kind}", lambda left=left: not left())  # type: ignore[misc] # of this kind


OBJECT = """
def replica(script):
    container = V1Container(name="pytorch", image=IMAGE, command=["python3", "-u", "-c", script])
    template = V1PodTemplateSpec(spec=V1PodSpec(containers=[container]))
    return KubeflowOrgV1ReplicaSpec(replicas=1, restart_policy="Never", template=template)

def job(name, script, **policy):
    return KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1", kind="PyTorchJob", metadata=V1ObjectMeta(name=name, namespace=NAMESPACE),
        spec=KubeflowOrgV1PyTorchJobSpec(
            run_policy=KubeflowOrgV1RunPolicy(**policy), pytorch_replica_specs={"Master": replica(script)}
        ),
    )
"""
_IMPORTS = "from kubernetes.client import V1Container, V1ObjectMeta, V1PodSpec, V1PodTemplateSpec\n"


def test_an_object_is_followed_and_its_events_are_read(here: Side) -> None:
    """Ours tells good news after a few seconds, several steps in one Event."""
    cell = """
seen = []
client.create_job(job("followed", "import time; print('begun'); time.sleep(3); print('ended'); time.sleep(1)"))
client.wait_for_job_conditions(
    "followed", expected_conditions={"Running"}, polling_interval=1, wait_timeout=120,
    callback=lambda one: seen.append(one.metadata.name),
)
logs, _ = client.get_job_logs("followed", follow=True)
client.wait_for_job_conditions("followed", polling_interval=1, wait_timeout=120)
events = {}
while not any("followed-master-0" in line for line in events.get("pytorchjob/followed", ())):
    time.sleep(0.5)
    _, events = client.get_job_logs("followed", verbose=True)
{"seen": seen, "logs": logs, "events": events}
"""
    found = here.sdk.run("import time\n" + _IMPORTS + OBJECT + cell, IMAGE=image("python"))
    assert "followed" in found["seen"]
    assert found["logs"] == {"followed-master-0": "begunended"}
    assert any("followed-master-0" in line for line in found["events"]["pytorchjob/followed"])
    assert found["events"]["pod/followed-master-0"]


def test_a_suspended_job_is_let_go_by_an_update(here: Side) -> None:
    cell = """
client.create_job(job("held", "import time; print('let go'); time.sleep(1)", suspend=True))
while not any(one.type == "Suspended" for one in client.get_job_conditions("held")):
    time.sleep(0.3)
pods = client.get_job_pod_names("held")
client.update_job({"spec": {"runPolicy": {"suspend": False}}}, "held")
client.wait_for_job_conditions("held", polling_interval=1, wait_timeout=120)
pods, client.get_job_logs("held")[0]
"""
    pods, logs = here.sdk.run("import time\n" + _IMPORTS + OBJECT + cell, IMAGE=image("python"))
    assert not pods
    assert logs == {"held-master-0": "let go\n"}


def test_a_failure_is_raised_with_its_condition(here: Side) -> None:
    cell = """
client.create_job(job("failing", "raise SystemExit(3)"))
client.wait_for_job_conditions("failing", polling_interval=1, wait_timeout=120)
"""
    error = here.sdk.raised(_IMPORTS + OBJECT + cell, IMAGE=image("python"))
    assert error.type == "RuntimeError"
    assert "PyTorchJob practitioner/failing is Failed" in error.message
    assert "PyTorchJobFailed" in error.message


def test_what_the_old_operator_refuses_is_refused(here: Side) -> None:
    cell = """
wrong = job("wrong", "pass")
wrong.spec.pytorch_replica_specs["Master"].replicas = 2
client.create_job(wrong)
"""
    error = here.sdk.raised(_IMPORTS + OBJECT + cell, IMAGE=image("python"))
    assert error.type == "RuntimeError"
    assert "Failed to create PyTorchJob: practitioner/wrong" in error.message


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_of_each_kind_runs_to_its_end(here: Side, kind: str) -> None:
    plural, name = KINDS[kind], f"{kind.removesuffix('Job').lower()}-simple"
    here.cluster.kubectl(
        "wait", "--for=condition=Succeeded", "--timeout=180s", f"--namespace={USER}", f"{plural}.kubeflow.org/{name}"
    )
    logs = here.cluster.kubectl("logs", f"--namespace={USER}", f"--selector={_LABEL}={name}", "--tail=-1").stdout
    assert "processes met" in logs
