"""Cases of the XGBoost plugin."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Case, Create, Tree
from tests.conformance.documents import (
    COMPLETED,
    FAILED,
    container,
    counts,
    replicated_job,
    reported,
    resumed_until,
    runtime,
    train_job,
)

_RESERVED = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")


def xgboost(*jobs: Tree, nodes: int | None = None, **fields: Any) -> Tree:
    """Return a runtime with the XGBoost policy."""
    policy: Tree = {"xgboost": {}}
    if nodes is not None:
        policy["numNodes"] = nodes
    return runtime(*jobs, policy=policy, **fields)


def _sized(**resources: Any) -> Tree:
    return xgboost(replicated_job(containers=[container(resources=resources)]), nodes=2)


def _workers(title: str, on: Tree, **trainer: Any) -> Case:
    return Case(f"XGBoost workers: {title}", (Create(train_job(trainer=trainer)),), (on,))


WORKERS = (
    _workers("nothing said", xgboost(nodes=2), image="i"),
    _workers("CPUs", xgboost(nodes=2), resourcesPerNode={"limits": {"cpu": 8}}),
    _workers("GPUs of the TrainJob", xgboost(nodes=2), resourcesPerNode={"limits": {"nvidia.com/gpu": 4}}),
    _workers("GPUs of the runtime", _sized(limits={"amd.com/gpu": 2}), image="i"),
    _workers("GPUs of both", _sized(limits={"nvidia.com/gpu": 4}), resourcesPerNode={"limits": {"nvidia.com/gpu": 2}}),
    _workers(
        "GPUs of the runtime, CPUs of the TrainJob",
        _sized(limits={"nvidia.com/gpu": 4}),
        resourcesPerNode={"requests": {"cpu": "2"}},
    ),
    _workers("slices of a GPU", xgboost(nodes=2), resourcesPerNode={"limits": {"nvidia.com/mig-1g.5gb": 3}}),
    _workers("a TPU", xgboost(nodes=2), resourcesPerNode={"limits": {"google.com/tpu": 4}}),
    _workers("a number of the TrainJob", xgboost(nodes=2), numProcPerNode=3),
    _workers("nodes of the TrainJob", _sized(limits={"nvidia.com/gpu": 2}), numNodes=5),
)

ENVIRONMENT = (
    Case(
        "22 XGBoost with 100 nodes, user's image, command, args, env and resources",
        (
            Create(
                train_job(
                    trainer={
                        "image": "test:trainjob",
                        "command": ["python", "train.py"],
                        "args": ["--rounds=1"],
                        "env": [{"name": "A", "value": "1"}],
                        "resourcesPerNode": {"requests": {"cpu": "1", "memory": "4Gi"}},
                    }
                )
            ),
        ),
        (xgboost(nodes=100),),
    ),
    Case(
        "23 XGBoost suspended, resumed, complete",
        resumed_until(reported(counts(succeeded=1), conditions=(COMPLETED,))),
        (xgboost(nodes=100),),
    ),
    Case(
        "24 XGBoost suspended, resumed, failed",
        resumed_until(reported(counts(failed=1), conditions=(FAILED,))),
        (xgboost(nodes=100),),
    ),
    Case("XGBoost with an empty trainer", (Create(train_job(trainer={})),), (xgboost(nodes=2),)),
    Case("XGBoost without a trainer", (Create(train_job()),), (xgboost(nodes=2),)),
    Case(
        "XGBoost: the runtime's own variables give way",
        (Create(train_job(trainer={})),),
        (
            xgboost(
                replicated_job(containers=[container(env=[{"name": "DMLC_NUM_WORKER", "value": "9"}, {"name": "Z"}])]),
                nodes=2,
            ),
        ),
    ),
    Case(
        "XGBoost in a subdomain",
        (Create(train_job(trainer={"numNodes": 2})),),
        (xgboost(network={"subdomain": "elsewhere"}),),
    ),
    Case(
        "XGBoost in a job of another name",
        (Create(train_job(trainer={"numNodes": 2})),),
        (xgboost(replicated_job("worker")),),
    ),
    Case(
        "XGBoost beside an unnamed port",
        (Create(train_job(trainer={})),),
        (xgboost(replicated_job(containers=[container(ports=[{"containerPort": 9000}])])),),
    ),
    Case(
        "XGBoost on a port of the runtime's",
        (Create(train_job(trainer={})),),
        (xgboost(metadata={"annotations": {"trainer.kubeflow.org/port": "1234"}}),),
    ),
    Case(
        "XGBoost in a runtime that trains nowhere",
        (Create(train_job(trainer={"numNodes": 2})),),
        (xgboost(replicated_job("other", ancestor=None, containers=[container("other")])),),
    ),
)

ADMISSION = (
    Case(
        "XGBoost: one of its own variables",
        (Create(train_job(trainer={"env": [{"name": "A", "value": "1"}, {"name": "DMLC_TASK_ID", "value": "1"}]})),),
        (xgboost(),),
    ),
    Case(
        "XGBoost: all of its own variables",
        (Create(train_job(trainer={"env": [{"name": name, "value": "1"} for name in (*_RESERVED, "DMLC_OTHER")]})),),
        (xgboost(),),
    ),
    Case(
        "XGBoost's variables in another framework",
        (Create(train_job(trainer={"env": [{"name": name, "value": "1"} for name in _RESERVED]})),),
        (runtime(),),
    ),
)

CASES = (*WORKERS, *ENVIRONMENT, *ADMISSION)
