"""What a fleet does to a job, explained from the hub: its worker is lost, or has another runtime of that name."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.hub.stage import STEADY
from trainplane.client.backends.kubernetes import KubernetesBackend
from trainplane.client.types.backends import KubernetesBackendConfig
from trainplane.explain.bundle import read_bundle, write_bundle
from trainplane.explain.explain import explain

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from tests.fleet.hub.stage import Seen
    from trainplane.explain.explanation import Explanation

OTHER = "registry.invalid/train:2"


@pytest.mark.full
def test_what_a_worker_does_to_a_job_is_explained_from_the_hub(seen: Seen, real_worker: Cluster) -> None:
    team = seen.team
    for cluster in ("hub", "worker2"):
        team.api(cluster).apply(objects.namespaced(objects.runtime("different"), team.namespace))
    team.api("worker1").apply(objects.namespaced(objects.runtime("different", image=OTHER), team.namespace))
    team.submit_seen("different", runtime="different", kind="TrainingRuntime")
    seen.submit("lost", STEADY)
    seen.wait_lines("lost", 10)
    team.wait("nothing to hold lost", partial(_is_called, seen, "lost", ""))
    team.wait("different to be called so", partial(_is_called, seen, "different", "RuntimeDiffers"))
    team.fleet.cut(real_worker)
    try:
        team.wait("the worker to be called lost", partial(_is_called, seen, "lost", "WorkerLost"))
    finally:
        team.fleet.mend(real_worker)
        team.fleet.hurry()
    team.wait("the worker to be back", partial(_is_called, seen, "lost", ""))
    seen.tell("lost")
    team.wait_done("lost")


def _is_called(seen: Seen, name: str, cause: str) -> bool:
    return _explained(seen, name).cause == cause


def _explained(seen: Seen, name: str) -> Explanation:
    async def look() -> Explanation:
        hub = seen.team.fleet.hub
        config = KubernetesBackendConfig(namespace=seen.team.namespace, config_file=str(hub.kubeconfig))
        backend = KubernetesBackend(config)
        try:
            return explain(read_bundle(write_bundle(await backend.collect(name))), datetime.now(UTC))
        finally:
            await backend.close()

    return asyncio.run(look())
