"""What Kueue does to a job, explained to its user: queued, in a queue that is not there, preempted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from tests.fleet import objects
from trainplane.client.backends.kubernetes import KubernetesBackend
from trainplane.client.types.backends import KubernetesBackendConfig
from trainplane.explain.explain import explain

if TYPE_CHECKING:
    from tests.fleet.one_cluster.team import Team
    from trainplane.explain.explanation import Explanation


def test_what_keeps_a_queued_job_is_explained(team: Team) -> None:
    low, high = (f"{team.namespace}-{word}" for word in ("low", "high"))
    team.create(objects.priority_class(low, 10))
    team.create(objects.priority_class(high, 100))
    team.open_queue({"cpu": "2"}, preemption={"withinClusterQueue": "LowerPriority"})
    team.submit("first", cpu="2", runtime=objects.HELD, labels={objects.PRIORITY_LABEL: low})
    team.wait_running("first")
    team.wait("nothing to hold first", partial(_is_called, team, "first", ""))
    team.submit("second", cpu="2", runtime=objects.HELD, labels={objects.PRIORITY_LABEL: high})
    team.submit("third", cpu="2", runtime=objects.HELD, labels={objects.PRIORITY_LABEL: low})
    team.submit("astray", cpu="1", runtime=objects.HELD, queue="nowhere")
    team.wait_running("second")
    for name, cause in (("first", "PreemptedByKueue"), ("third", "Queued"), ("astray", "QueueMissing")):
        team.wait(f"{name} to be called {cause}", partial(_is_called, team, name, cause))
        told = _explained(team, name)
        assert (told.state, bool(told.detail), bool(told.remedy)) == ("Held", True, True)


def _is_called(team: Team, name: str, cause: str) -> bool:
    return _explained(team, name).cause == cause


def _explained(team: Team, name: str) -> Explanation:
    async def look() -> Explanation:
        config = KubernetesBackendConfig(namespace=team.namespace, config_file=str(team.cluster.kubeconfig))
        backend = KubernetesBackend(config)
        try:
            return explain(await backend.collect(name), datetime.now(UTC))
        finally:
            await backend.close()

    return asyncio.run(look())
