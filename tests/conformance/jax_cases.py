"""Cases of the JAX plugin."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Case, Create, Tree
from tests.conformance.documents import (
    COMPLETED,
    FAILED,
    container,
    counts,
    env,
    replicated_job,
    reported,
    resumed_until,
    runtime,
    train_job,
)


def jax(*jobs: Tree, nodes: int | None = None, **fields: Any) -> Tree:
    """Return a runtime with the JAX policy."""
    policy: Tree = {"jax": {}}
    if nodes is not None:
        policy["numNodes"] = nodes
    return runtime(*jobs, policy=policy, **fields)


CASES = (
    Case(
        "19 JAX with 100 nodes, user's image, command, args, env and resources",
        (
            Create(
                train_job(
                    trainer={
                        "image": "test:trainjob",
                        "command": ["python", "train.py"],
                        "args": ["--epochs=1"],
                        "env": env(A="1"),
                        "resourcesPerNode": {"requests": {"cpu": "1", "memory": "4Gi"}},
                    }
                )
            ),
        ),
        (jax(nodes=100),),
    ),
    Case(
        "20 JAX suspended, resumed, complete",
        resumed_until(reported(counts(succeeded=1), conditions=(COMPLETED,))),
        (jax(nodes=100),),
    ),
    Case(
        "21 JAX suspended, resumed, failed",
        resumed_until(reported(counts(failed=1), conditions=(FAILED,))),
        (jax(nodes=100),),
    ),
    Case("JAX with nodes of the TrainJob", (Create(train_job(trainer={"numNodes": 3})),), (jax(nodes=2),)),
    Case("JAX with no nodes", (Create(train_job(trainer={"numNodes": 0})),), (jax(nodes=2),)),
    Case("JAX with an empty trainer", (Create(train_job(trainer={})),), (jax(nodes=2),)),
    Case("JAX without a trainer", (Create(train_job()),), (jax(nodes=2),)),
    Case(
        "JAX: the user's own variables win",
        (Create(train_job(trainer={"env": env(JAX_COORDINATOR_ADDRESS="elsewhere:1", JAX_PROCESS_ID="7")})),),
        (jax(nodes=2),),
    ),
    Case(
        "JAX: the runtime's own variables give way",
        (Create(train_job(trainer={})),),
        (jax(replicated_job(containers=[container(env=env(JAX_NUM_PROCESSES="9", Z="z"))]), nodes=2),),
    ),
    Case(
        "JAX with processes on a node",
        (Create(train_job(trainer={"command": ["train"], "numProcPerNode": 4})),),
        (jax(nodes=2),),
    ),
    Case(
        "JAX in a subdomain",
        (Create(train_job(trainer={"numNodes": 2})),),
        (jax(network={"subdomain": "elsewhere"}),),
    ),
    Case(
        "JAX in a job of another name",
        (Create(train_job(trainer={"numNodes": 2})),),
        (jax(replicated_job("host")),),
    ),
    Case(
        "JAX beside an unnamed port",
        (Create(train_job(trainer={})),),
        (jax(replicated_job(containers=[container(ports=[{"containerPort": 9000}])])),),
    ),
    Case(
        "JAX beside its own port",
        (Create(train_job(trainer={})),),
        (jax(replicated_job(containers=[container(ports=[{"name": "dist", "containerPort": 29500}])])),),
    ),
    Case(
        "JAX on a port of the runtime's",
        (Create(train_job(trainer={})),),
        (jax(metadata={"annotations": {"trainer.kubeflow.org/port": "1234"}}),),
    ),
)
