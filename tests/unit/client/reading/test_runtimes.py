from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.client.reading.documents import pod, runtime, train_job
from trainplane.client.errors import InvalidError
from trainplane.client.reading.devices import read_devices
from trainplane.client.reading.runtimes import infer_runtime, read_runtime
from trainplane.client.types.runtimes import RuntimeKind, TrainerType

SHIPPED = sorted(Path("runtimes").glob("*.yaml"))


def _container(limits: dict[str, Any] | None = None, requests: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"resources": {"limits": limits, "requests": requests}}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_runtime_that_we_ship_is_read(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    found = read_runtime(document)
    assert found.name == document["metadata"]["name"]
    assert found.trainer.framework == document["metadata"]["labels"]["trainer.kubeflow.org/framework"]
    assert found.trainer.image
    assert found.kind is RuntimeKind.CLUSTER_TRAINING_RUNTIME
    assert (found.trainer.trainer_type is TrainerType.BUILTIN_TRAINER) == path.stem.startswith("torchtune")
    assert bool(found.pretrained_model) == path.stem.startswith("torchtune")


def test_what_a_runtime_says_is_read() -> None:
    document = runtime(
        "own",
        "TrainingRuntime",
        policy={"numNodes": 3, "torch": {}},
        container={"command": ["torchrun", "x.py"], "resources": {"limits": {"nvidia.com/gpu": 4, "cpu": "8"}}},
        labels={"trainer.kubeflow.org/framework": "torch", "trainer.kubeflow.org/support": "deprecated"},
    )
    found = read_runtime(document)
    assert found.kind is RuntimeKind.TRAINING_RUNTIME
    assert found.deprecated
    assert found.pretrained_model is None
    trainer = found.trainer
    assert (trainer.num_nodes, trainer.device, trainer.device_count) == (3, "gpu", "4")
    assert trainer.command == ("torchrun", "x.py")


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        ({}, 1),
        ({"numNodes": 5}, 5),
        ({"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 8}}}, 8),
        ({"torch": {"elasticPolicy": {}}}, 1),
        ({"numNodes": None}, 1),
    ],
)
def test_nodes_of_a_runtime(policy: dict[str, Any], nodes: int) -> None:
    assert read_runtime(runtime(policy=policy)).trainer.num_nodes == nodes


@pytest.mark.parametrize(("as_node", "nodes"), [(True, 4), (False, 3)])
def test_with_mpi_nodes_are_counted_and_not_launchers(as_node: bool, nodes: int) -> None:
    worker = {"name": "node", "template": {"spec": {"parallelism": 3}}}
    document = runtime(
        policy={"numNodes": 1, "mpi": {"runLauncherAsNode": as_node}}, job_name="launcher", jobs=[worker]
    )
    assert read_runtime(document).trainer.num_nodes == nodes


@pytest.mark.parametrize(
    ("policy", "labels", "framework"),
    [
        ({"torch": {}}, {}, "torch"),
        ({"mpi": {}}, {}, "mpi"),
        ({"jax": {}}, None, "jax"),
        ({}, {}, "Unknown"),
        ({"torch": {}}, {"trainer.kubeflow.org/framework": "megatron"}, "megatron"),
    ],
)
def test_framework_is_the_label_else_the_policy(policy: dict[str, Any], labels: Any, framework: str) -> None:
    assert read_runtime(runtime(policy=policy, labels=labels)).trainer.framework == framework


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({}, id="empty"),
        pytest.param({"kind": "Pod", "metadata": {"name": "x"}}, id="another kind"),
        pytest.param({"kind": "TrainingRuntime", "metadata": {"name": "x"}}, id="no spec"),
        pytest.param(runtime(container={"image": None}), id="no image"),
        pytest.param(runtime(container={"name": "other"}), id="no container node"),
        pytest.param(
            {
                "kind": "TrainingRuntime",
                "metadata": {"name": "x"},
                "spec": {"template": {"spec": {"replicatedJobs": 3}}},
            },
            id="jobs of another type",
        ),
    ],
)
def test_what_no_job_can_run_on_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match=r"runtime|TrainingRuntime"):
        read_runtime(broken)


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (None, ("Unknown", "Unknown")),
        ({}, ("Unknown", "Unknown")),
        (_container({"memory": "8Gi"}), ("Unknown", "Unknown")),
        (_container({"rdma/ib": 1}), ("Unknown", "Unknown")),
        (_container({"cpu": 2.0}), ("cpu", "2")),
        (_container({"cpu": "500m"}), ("cpu", "500m")),
        (_container({"cpu": 8, "nvidia.com/gpu": "2"}), ("gpu", "2")),
        (_container({"amd.com/gpu": 1, "memory": "1Gi"}), ("gpu", "1")),
        (_container({"nvidia.com/mig-1g.5gb": 1, "cpu": 4}), ("mig-1g.5gb", "1")),
        (_container({"nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-2g.10gb": 1}), ("mig-1g.5gb", "1")),
        (_container({"google.com/tpu": 4}), ("tpu", "4")),
        (_container({"huawei.com/Ascend910": 8}), ("npu", "8")),
        (_container({"habana.ai/gaudi": 8, "cpu": 4}), ("gaudi", "8")),
        (_container({"nvidia.com/gpumem": 4000, "cpu": 4}), ("cpu", "4")),
        (_container(None, {"nvidia.com/gpu": 1}), ("gpu", "1")),
        (_container({"cpu": 1}, {"nvidia.com/gpu": 1}), ("cpu", "1")),
    ],
)
def test_devices_never_raise(container: Any, expected: tuple[str, str]) -> None:
    assert read_devices(container) == expected


@pytest.mark.parametrize(
    ("env", "framework"),
    [
        ({"PET_NNODES": "2"}, "torch"),
        ({"JAX_NUM_PROCESSES": "2"}, "jax"),
        ({"DMLC_TRACKER_URI": "x"}, "xgboost"),
        ({"TF_CONFIG": "{}"}, "tensorflow"),
        ({"PADDLE_MASTER": "x"}, "paddle"),
        ({}, "Unknown"),
    ],
)
def test_pods_tell_the_framework(env: dict[str, str], framework: str) -> None:
    found = infer_runtime(train_job(), [pod(env=env)])
    assert (found.name, found.trainer.framework, found.trainer.image) == ("torch-distributed", framework, "image:1")


def test_nodes_with_ssh_keys_are_mpis() -> None:
    node = pod(spec={"volumes": [{"name": "mpi-ssh-auth"}], "containers": [{"name": "node", "image": "mpi:1"}]})
    assert infer_runtime(train_job(), [node]).trainer.framework == "mpi"


def test_without_pods_the_spec_tells() -> None:
    trainer = {"image": "mine:2", "command": ["tune", "run"], "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}
    job = train_job(spec={"trainer": trainer, "runtimeRef": {"name": "own", "kind": "TrainingRuntime"}})
    found = infer_runtime(job, [])
    assert (found.name, found.kind) == ("own", RuntimeKind.TRAINING_RUNTIME)
    trainer_ = found.trainer
    assert (trainer_.framework, trainer_.trainer_type) == ("torchtune", TrainerType.BUILTIN_TRAINER)
    assert (trainer_.image, trainer_.device, trainer_.device_count) == ("mine:2", "gpu", "2")


def test_nothing_tells_nothing() -> None:
    found = infer_runtime({}, [])
    assert (found.name, found.trainer.image, found.trainer.framework) == ("Unknown", "Unknown", "Unknown")
