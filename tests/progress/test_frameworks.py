"""Callbacks with the frameworks themselves, in pods, to the operator: three steps each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from lab.images import reference as image
from lab.paths import REPOSITORY
from tests.progress import frameworks
from tests.progress.test_pods import shown
from tests.sdk.kubernetes.stage import PATIENCE, runtime
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.types.trainers import CustomTrainer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sdk.kubernetes.stage import Stage

PACKAGES = REPOSITORY / "build/callbacks"
"""Transformers and Lightning for the Python and the torch of the lab's image."""
RUNS: list[tuple[Callable[[], None], str, str]] = [
    (frameworks.with_transformers, "torch", "loss"),
    (frameworks.with_transformers_own, "torch", "loss"),
    (frameworks.with_lightning, "torch", "loss"),
    (frameworks.with_keras, "frameworks", "loss"),
]


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_each_framework_reports_by_its_own_callbacks(stage: Stage) -> None:
    mounts = [{"name": "packages", "mountPath": "/packages", "readOnly": True}]
    for name in ("torch", "frameworks"):
        container = {
            "image": image(name),
            "volumeMounts": mounts,
            "env": [{"name": "PYTHONPATH", "value": "/packages"}],
        }
        if name == "frameworks":
            container["env"] = []
        volumes = [{"name": "packages", "hostPath": {"path": str(PACKAGES)}}]
        stage.apply(runtime(name, "true", container=container, volumes=volumes))
    client = AsyncTrainerClient(backend=stage.backend)

    async def reported(train: Callable[[], None], name: str) -> tuple[str, int | None, dict[str, str]]:
        job = await client.train(name, trainer=CustomTrainer(train))
        over = await client.wait_for_job_status(job, {"Complete", "Failed"}, timeout=PATIENCE * 2)
        assert over.status == "Complete", [str(line) for line in await stage.logs(job)][-20:]
        found = await shown(stage, job, lambda one: one.progress and one.progress.percent == 100)
        assert found.progress is not None
        return train.__name__, found.progress.percent, dict(found.progress.metrics)

    told = await asyncio.gather(*(reported(train, name) for train, name, _ in RUNS))
    for (train, _, metric), (name, percent, metrics) in zip(RUNS, told, strict=True):
        assert (name, percent) == (train.__name__, 100)
        assert metric in metrics or metrics.get("step") == "3", (name, metrics)
