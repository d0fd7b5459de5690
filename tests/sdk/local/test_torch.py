"""torch and MPI for real: a function of the user's, by torchrun and mpirun, on two nodes of both local backends.

The machine's own Python has no torch. For processes, the interpreter that the user names is one of the lab's torch
image: the root folder mounted in a namespace of its own, and everything else of this machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lab.images import IMAGES
from tests.sdk.local.documents import mpi_runtime, printed, write_runtime
from tests.sdk.local.trainings import sum_ranks, train
from tests.sdk.tutorial.interpreter import make_interpreter
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.backends.container import ContainerBackend
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.types.backends import TrainingRuntimeSource
from trainplane.client.types.jobs import COMPLETE
from trainplane.client.types.trainers import CustomTrainer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainplane.client.backends.local.backend import LocalBackend
    from trainplane.client.types.backends import ContainerBackendConfig, LocalProcessBackendConfig

IMAGE = IMAGES["torch"].reference


@pytest.fixture
async def torch_backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalBackend]:
    """Return each backend in turn, with torch, and a runtime for MPI beside those that we ship."""
    source = TrainingRuntimeSource([str(write_runtime(tmp_path / "runtimes", mpi_runtime(IMAGE)))])
    backend: LocalBackend
    if request.param == "process":
        processes: LocalProcessBackendConfig = request.getfixturevalue("process_config")
        backend = ProcessBackend(
            replace(processes, python=str(make_interpreter("torch", tmp_path)), runtime_source=source)
        )
    else:
        containers: ContainerBackendConfig = request.getfixturevalue("container_config")
        backend = ContainerBackend(replace(containers, runtime_source=source))
    yield backend
    for job in await backend.list_jobs():
        await backend.delete_job(job.name)


@pytest.mark.parametrize("torch_backend", ["process", "container"], indirect=True)
async def test_torchrun_on_two_nodes(torch_backend: LocalBackend) -> None:
    client = AsyncTrainerClient(backend=torch_backend)
    trainer = CustomTrainer(
        train,
        {"steps": 60},
        image=IMAGE,
        num_nodes=2,
        resources_per_node={"cpu": 1, "memory": "2Gi"},
        env={"USE_LIBUV": "0", "OMP_NUM_THREADS": "1"},
    )
    name = await client.train("torch-distributed", trainer=trainer)
    job = await client.wait_for_job_status(name, timeout=240)
    assert job.status == COMPLETE
    lines = [line for line in await printed(torch_backend, name) if "slope" in line]
    assert sorted(lines) == [f"[node-{rank}] node {rank}: sum 3 of 2, slope 3.00" for rank in range(2)]


@pytest.mark.parametrize("torch_backend", ["process", "container"], indirect=True)
async def test_mpirun_on_two_nodes(torch_backend: LocalBackend) -> None:
    client = AsyncTrainerClient(backend=torch_backend)
    name = await client.train("mpi", trainer=CustomTrainer(sum_ranks, num_nodes=2))
    await client.wait_for_job_status(name, timeout=240)
    assert "[node-0] 2 processes, sum 3" in await printed(torch_backend, name)
