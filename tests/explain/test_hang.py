"""A training that stands still says where: on this machine, in pods, and with gloo between them."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lab import reference
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.explain import stuck
from tests.explain.failures import NAMESPACE
from tests.explain.making import PATIENCE
from tests.sdk.kubernetes.stage import runtime
from tests.sdk.local.documents import trainjob
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.types.trainers import CustomTrainer
from trainplane.explain.bundle import read_bundle, write_bundle
from trainplane.explain.explain import explain

if TYPE_CHECKING:
    from tests.sdk.kubernetes.stage import Stage
    from trainplane.client.backends.backend import Backend
    from trainplane.client.backends.local.backend import LocalBackend
    from trainplane.explain.explanation import Explanation

SOON = {"TRAINPLANE_STALL_SECONDS": "2"}


async def test_on_this_machine(backend: LocalBackend) -> None:
    command = [sys.executable, stuck.__file__]
    variables = [{"name": name, "value": value} for name, value in SOON.items()]
    name = await backend.submit(trainjob("stuck", "", trainer={"command": command, "env": variables}))
    told = await _hang(backend, name)
    assert (told.step, "read_shard" in told.summary) == ("node-1", True)
    await backend.delete_job(name)


async def test_in_pods(stages: dict[str, Stage]) -> None:
    stage = stages[NAMESPACE]
    stage.apply(runtime("stands", "true"))
    client = AsyncTrainerClient(backend=stage.backend)
    name = await client.train("stands", trainer=CustomTrainer(stuck.train, num_nodes=2, env=SOON))
    told = await _hang(stage.backend, name)
    assert (told.step, told.pod[: len(name) + 9], "read_shard" in told.summary) == ("node-1", f"{name}-node-0-1", True)
    await client.delete_job(name)


@pytest.mark.full
async def test_between_pods_that_wait_for_each_other(stages: dict[str, Stage]) -> None:
    stage = stages[NAMESPACE]
    (torch,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    stage.cluster.apply(reference.with_image(torch, image("torch")))
    client = AsyncTrainerClient(backend=stage.backend)
    name = await client.train("torch-distributed", trainer=CustomTrainer(stuck.reduce, num_nodes=2, env=SOON))
    others = "where it waits for others"
    told = await _hang(stage.backend, name, others)
    assert (told.step, "read_shard" in told.summary) == ("node-1", True)
    assert others in told.detail
    await client.delete_job(name)


async def _hang(backend: Backend, name: str, words: str = "") -> Explanation:
    """Return the explanation as soon as it is one of a hang, and its detail has these words.

    Each node prints where it stands when it notices: one is told before the others are.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            told = explain(read_bundle(write_bundle(await backend.collect(name))), datetime.now(UTC))
            if told.cause == "Hang" and told.step and words in told.detail:
                return told
            await asyncio.sleep(1)
