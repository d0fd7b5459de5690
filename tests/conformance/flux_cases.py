"""Cases of the Flux plugin.

The reference breaks without `spec.trainer` or its `numNodes`; such cases show that ours does not. Its scripts are its
own, and so are ours: of the ConfigMap, the names of the keys are compared.
"""

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


def flux(*jobs: Tree, nodes: int | None = None, processes: int | None = None, **fields: Any) -> Tree:
    """Return a runtime with the Flux policy."""
    policy: Tree = {"flux": {}}
    if nodes is not None:
        policy["numNodes"] = nodes
    if processes is not None:
        policy["flux"]["numProcPerNode"] = processes
    return runtime(*jobs, policy=policy, **fields)


OBJECTS = (
    Case(
        "25 Flux with user's image, command and args",
        (
            Create(
                train_job(
                    trainer={
                        "image": "test:trainjob",
                        "numNodes": 100,
                        "command": ["trainjob"],
                        "args": ["trainjob"],
                        "resourcesPerNode": {"requests": {"cpu": "1", "memory": "4Gi"}},
                    }
                )
            ),
        ),
        (flux(nodes=100),),
    ),
    Case(
        "26 Flux suspended, resumed, complete",
        resumed_until(reported(counts(succeeded=1), conditions=(COMPLETED,)), numNodes=100),
        (flux(nodes=100),),
    ),
    Case(
        "27 Flux suspended, resumed, failed",
        resumed_until(reported(counts(failed=1), conditions=(FAILED,)), numNodes=100),
        (flux(nodes=100),),
    ),
    Case(
        "Flux with the runtime's command",
        (Create(train_job(trainer={"numNodes": 2, "args": ["-v", "2"]})),),
        (flux(replicated_job(containers=[container(command=["lmp", "-in", "x"])])),),
    ),
    Case("Flux without a command", (Create(train_job(trainer={"numNodes": 2})),), (flux(),)),
    Case(
        "Flux with words that a shell would split",
        (Create(train_job(trainer={"numNodes": 2, "command": ["python", "-c", "print('a b')"]})),),
        (flux(),),
    ),
    Case(
        "Flux with the runtime's args",
        (Create(train_job(trainer={"numNodes": 2})),),
        (flux(replicated_job(containers=[container(command=["lmp"], args=["-v"])])),),
    ),
    Case(
        "Flux with the runtime's args, and words that a shell would split",
        (Create(train_job(trainer={"numNodes": 2})),),
        (flux(replicated_job(containers=[container(command=["sh", "-c", "echo a b"], args=["-v"])])),),
    ),
    Case(
        "Flux with settings of the runtime and of the user",
        (
            Create(
                train_job(
                    trainer={
                        "numNodes": 2,
                        "numProcPerNode": 4,
                        "env": env(FLUX_VIEW_IMAGE="view:user", FLUX_QUEUE_POLICY="easy", A="1"),
                    }
                )
            ),
        ),
        (
            flux(
                replicated_job(
                    containers=[container(env=env(FLUX_VIEW_IMAGE="view:runtime", FLUX_NETWORK_DEVICE="ib0"))]
                ),
                processes=2,
            ),
        ),
    ),
    Case(
        "Flux beside volumes, mounts and init containers of the runtime",
        (Create(train_job(trainer={"numNodes": 2, "command": ["x"]})),),
        (
            flux(
                replicated_job(
                    containers=[container(volumeMounts=[{"name": "data", "mountPath": "/data"}]), container("side")],
                    initContainers=[container("fetch")],
                    volumes=[{"name": "data", "emptyDir": {}}],
                )
            ),
        ),
    ),
    Case(
        "Flux with GPUs",
        (Create(train_job(trainer={"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}})),),
        (flux(),),
    ),
    Case("Flux without a trainer", (Create(train_job()),), (flux(nodes=2),)),
    Case("Flux with an empty trainer", (Create(train_job(trainer={})),), (flux(nodes=2),)),
    Case("Flux without a number of nodes", (Create(train_job(trainer={"command": ["x"]})),), (flux(nodes=2),)),
)

ADMISSION = (
    Case(
        "61 Flux with no process on a node",
        (Create(train_job(trainer={"numNodes": 1, "numProcPerNode": 0})),),
        (flux(),),
    ),
    Case(
        "62 Flux beside an init container of its name",
        (Create(train_job(trainer={"numNodes": 1})),),
        (flux(replicated_job(initContainers=[container("flux-installer")])),),
    ),
)

CASES = (*OBJECTS, *ADMISSION)
