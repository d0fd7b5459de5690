"""The SDK on a hub, without credentials of any worker: steps, logs, events, queue and cause of a dispatched job."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from lab import hub
from tests.fleet import objects
from tests.fleet.hub.stage import FAILING, STEADY, whole
from tests.sdk.kubernetes.stage import PATIENCE, Stage, texts
from trainplane.explain.explain import explain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.fleet.hub.stage import Seen
    from trainplane.client.types.jobs import LogLine


RBAC = "rbac.authorization.k8s.io"
RULES = [
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["hub.trainplane.dev"], "resources": ["*"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list", "watch"]},
]


class Dispatching(NamedTuple):
    """A team on the fleet, and what its user sees through the SDK, on the hub alone."""

    seen: Seen
    stage: Stage


@pytest.fixture
async def dispatching(seen: Seen) -> AsyncIterator[Dispatching]:
    hub, namespace = seen.team.fleet.hub, seen.team.namespace
    user = f"user-{uuid.uuid4().hex[:6]}"
    meta = {"name": user, "namespace": namespace}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": RULES}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
        "roleRef": {"kind": "Role", "name": user, "apiGroup": RBAC},
    }
    hub.apply(role, binding)
    async with Stage(hub, namespace, hub.user(user, user)) as stage:
        yield Dispatching(seen, stage)


async def test_a_dispatched_job_is_seen_from_its_hub(dispatching: Dispatching) -> None:
    seen, stage = dispatching
    team, backend = seen.team, stage.backend
    too_much = objects.train_job("big", team.namespace, runtime=f"hub-{STEADY}", cpu="1000")
    await backend.submit(too_much)
    document = objects.train_job("steady", team.namespace, runtime=f"hub-{STEADY}", nodes=2, cpu="100m")
    assert await backend.submit(document) == "steady"

    found: list[LogLine] = []
    lines = backend.read_logs("steady", None, follow=True)
    async with aclosing(lines):
        await stage.until(lines, found, 300)
        job = await stage.wait("steady", "Running")
        assert (job.cluster, job.queue) == ("worker1", objects.QUEUE)
        assert [(step.name, step.cluster, step.status) for step in job.steps] == [
            ("node-0", "worker1", "Running"),
            ("node-1", "worker1", "Running"),
        ]
        by_name = {one.name: one for one in await backend.list_jobs()}
        assert (by_name["steady"].cluster, by_name["steady"].status) == ("worker1", "Running")
        assert by_name["big"].status == "Suspended"

        fleet = team.fleet
        fleet.hub.kill(hub.ENGINE)
        fleet.hub.revive(hub.ENGINE)
        await asyncio.to_thread(hub.wait_ready, fleet.hub)
        await stage.until(lines, found, len(found) + 300)
        await asyncio.to_thread(seen.tell, "steady")
        async with asyncio.timeout(PATIENCE):
            found += [line async for line in lines]
    for step in ("node-0", "node-1"):
        assert whole(texts(found, step))
    assert len(found) == len(texts(found, "node-0")) + len(texts(found, "node-1"))

    job = await stage.wait("steady", "Complete", "Failed")
    assert (job.status, job.cluster) == ("Complete", "worker1")
    await asyncio.to_thread(team.wait_gone, "steady", on="worker1")
    last = await stage.logs("steady", tail=1)
    assert sorted(line.step for line in last) == ["node-0", "node-1"]
    assert all(line.text.startswith("end ") for line in last)

    events = await stage.told("steady", ("TrainJob", "Completed"), ("Pod", "Started"), ("Workload", "MultiKueue"))
    told = {(event.cluster, event.involved_object_kind, event.reason) for event in events}
    assert {("worker1", "TrainJob", "Completed"), ("worker1", "Pod", "Started")} <= told
    assert any(cluster is None and kind == "Workload" for cluster, kind, _ in told)

    waiting = await backend.get_job("big")
    assert waiting.cause is not None
    assert (waiting.status, waiting.cause.reason) == ("Suspended", "Queued")
    why = await backend.explain_queue("big")
    assert why is not None
    assert "cpu" in str(why)


async def test_what_went_wrong_is_told_from_the_hub_when_the_worker_has_nothing_left(dispatching: Dispatching) -> None:
    seen, stage = dispatching
    seen.submit("broken", FAILING)
    await asyncio.to_thread(seen.team.wait_running, "broken", on="worker1")
    await asyncio.to_thread(seen.tell, "broken")
    await asyncio.to_thread(seen.team.wait_done, "broken", "Failed")
    await asyncio.to_thread(seen.team.wait_gone, "broken", on="worker1")
    # The hub mirrors its workers: it may see what was told last a moment after the copy is gone.
    await asyncio.to_thread(seen.team.wait, "the hub to know why", lambda: _cause(seen, "broken") == "PythonError")
    view = seen.tree("broken")["status"]
    assert (view["cluster"], view["firstFault"]["cause"]) == ("worker1", "PythonError")
    assert view["firstFault"]["log"][-1] == "KeyError: 'lable'"
    job = await stage.backend.get_job("broken")
    assert [one.stage for one in job.timeline] == [
        *("Queued", "Admitted", "Scheduled", "Pulled", "Running", "Failed"),
    ]
    assert job.timeline[-1].reason == "PythonError in node 0"
    told = explain(await stage.backend.collect("broken"), datetime.now(UTC))
    assert (told.cause, told.step, told.log[-1]) == ("PythonError", "node-0", "KeyError: 'lable'")


def _cause(seen: Seen, name: str) -> str | None:
    """Return why a job failed, as the hub tells; None while it does not know."""
    cause: str | None = (seen.tree(name)["status"].get("firstFault") or {}).get("cause")
    return cause
