"""How quick the command line is: its help, and a list of many jobs from a real API server."""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

from tests.cli.tenant import SCRIPTS
from tests.sdk.kubernetes.stage import runtime
from trainplane.cli.commands import COMMANDS
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.tenant import Tenant
    from tests.suite import SuiteReport

JOBS = 1000
AT_ONCE = 32
MOST_CPU_HELP, MOST_CPU_LIST = 0.6, 4.0
"""Seconds of CPU, several times what is promised (0.15 and 0.5): caches are cold next to another suite."""


def median(times: int, run: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a program takes, and the seconds of CPU that it uses."""
    taken, used = [], []
    for _ in range(times):
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(time.perf_counter() - begin)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken), statistics.median(used)


def test_help_is_there_at_once(report: SuiteReport) -> None:
    words = [str(SCRIPTS / "trainplane"), "--help"]
    seconds, cpu_seconds = median(5, lambda: subprocess.run(words, capture_output=True, check=True))
    report.figure("help_s", seconds)
    report.figure("commands", len(COMMANDS))
    assert cpu_seconds < MOST_CPU_HELP


def test_a_list_of_a_thousand_jobs(tenant: Tenant, report: SuiteReport) -> None:
    """They are dispatched, so that no pod has to run for a figure of reading."""
    tenant.apply(runtime("shell", "true"))
    asyncio.run(_create(tenant))
    assert len(tenant.run("list", "-o", "name").splitlines()) == JOBS
    seconds, cpu_seconds = median(3, lambda: tenant.run("list"))
    report.figure("list_1000_s", seconds)
    assert cpu_seconds < MOST_CPU_LIST


async def _create(tenant: Tenant) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def create(number: int) -> None:
        async with places:
            await client.create(TRAIN_JOBS, _job(number), tenant.namespace)

    async with Client.connect(load_config(str(tenant.kubeconfig))) as client:
        await asyncio.gather(*(create(number) for number in range(JOBS)))


def _job(number: int) -> dict[str, Any]:
    """Return a TrainJob as practitioners write them: a command, an environment, resources, labels."""
    env = [{"name": name, "value": str(number)} for name in ("SEED", "EPOCHS", "BATCH", "RUN")]
    trainer = {
        "image": "registry.example.com/team/training:2026.11",
        "command": ["torchrun", "train.py", "--seed", str(number)],
        "numNodes": 4,
        "env": env,
        "resourcesPerNode": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}},
    }
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {
            "name": f"sweep-{number:04}",
            "labels": {"kueue.x-k8s.io/queue-name": "gpus", "team": "vision", "run": str(number)},
        },
        "spec": {
            "suspend": True,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "runtimeRef": {"name": "shell", "kind": "TrainingRuntime"},
            "trainer": trainer,
        },
    }
