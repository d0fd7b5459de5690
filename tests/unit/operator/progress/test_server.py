"""The status server over HTTP: routes, codes, and callers that mean harm."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest

from tests.unit.operator.objects import NAMESPACE, condition, train_job
from tests.unit.operator.progress.test_callers import Cluster, token
from trainplane.kube.clock import SystemClock
from trainplane.kube.errors import ForbiddenError, TransportError
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.resource import Key
from trainplane.operator.progress.callers import Callers
from trainplane.operator.progress.server import StatusServer
from trainplane.operator.progress.training import Trainings
from trainplane.operator.stores import Stores
from trainplane.resources import JOB_SETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/{}/status"
REPORT = {"trainerStatus": {"progressPercentage": 5, "lastUpdatedTime": "2026-01-31T08:15:00Z"}}
JOBSET = "uid-of-the-jobset"


class Scene:
    """A server on some mirrors, and what it took."""

    def __init__(self, **limits: Any) -> None:
        self.stores = Stores()
        self.cluster = Cluster()
        self.taken: list[tuple[Key, str, Any]] = []
        self.codes: list[int] = []
        self.synced = True
        self.trainings = Trainings(self.cluster.pods)
        self.server = StatusServer(
            ListenerSettings(0, "127.0.0.1", **limits),
            Callers(self.cluster, self.cluster.pods, SystemClock()),
            self,  # type: ignore[arg-type] # as above
            self.trainings,
            self.stores,
            tls=None,
            is_synced=lambda: self.synced,
            answered=self.codes.append,
        )
        self.version = 1

    def take(self, key: Key, uid: str, report: Any) -> None:
        self.taken.append((key, uid, report.status))

    def put(self, name: str = "job", *, status: Any = None, meta: Any = None, owner: str = "", **spec: Any) -> None:
        self.version += 1
        job = train_job(name, meta={"resourceVersion": str(self.version), **(meta or {})}, **spec)
        job["status"] = status or {}
        self.stores.train_jobs.put(self.stores.train_jobs.read(msgspec.Raw(msgspec.json.encode(job))))
        reference = {"apiVersion": "v1", "kind": "TrainJob", "name": name, "controller": True}
        jobset = {
            "apiVersion": JOB_SETS.api_version,
            "kind": "JobSet",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": JOBSET,
                "resourceVersion": str(self.version),
                "ownerReferences": [{**reference, "uid": owner or f"uid-{name}"}],
            },
        }
        self.stores.job_sets.put(self.stores.job_sets.read(msgspec.Raw(msgspec.json.encode(jobset))))

    def header(self, name: str = "job", salt: str = "") -> dict[str, str]:
        audience = f"trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/{name}/status"
        signed = self.cluster.sign(token(SystemClock(), audience, salt=salt))  # type: ignore[arg-type] # a clock
        return {"Authorization": f"Bearer {signed}"}

    async def post(
        self, name: str = "job", *, data: Any = None, headers: Any = None, path: str = ""
    ) -> tuple[int, Any]:
        url = f"http://127.0.0.1:{self.server.listener.port}{path or PATH.format(name)}"
        body = json.dumps(REPORT) if data is None else data
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=self.header(name) if headers is None else headers) as response,
        ):
            assert response.headers["Content-Type"] == "application/json"
            return response.status, await response.json()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    scene.put()
    scene.cluster.run()
    async with scene.server.listener:
        yield scene


async def test_a_report_is_taken_and_echoed(scene: Scene) -> None:
    assert await scene.post() == (200, REPORT)
    assert scene.taken == [(Key(NAMESPACE, "job"), "uid-job", REPORT["trainerStatus"])]
    assert scene.codes == [200]


async def test_nothing_said_is_answered_and_not_taken(scene: Scene) -> None:
    assert await scene.post(data=b'{"trainerStatus": null}') == (200, {})
    assert scene.taken == []


@pytest.mark.parametrize(
    ("code", "reason", "ask"),
    [
        (404, "NotFound", {"path": "/"}),
        (404, "NotFound", {"path": PATH.format("job") + "/more"}),
        (401, "Unauthorized", {"headers": {}}),
        (401, "Unauthorized", {"headers": {"Authorization": "Bearer made.up.token"}}),
        (413, "RequestEntityTooLarge", {"data": b"x" * 65_537}),
        (422, "Invalid", {"data": b"{"}),
        (422, "Invalid", {"data": b'{"trainerStatus": {"progressPercentage": 101}}'}),
        (404, "NotFound", {"name": "absent"}),
    ],
)
async def test_refusals_are_statuses(scene: Scene, code: int, reason: str, ask: dict[str, Any]) -> None:
    found, status = await scene.post(**ask)
    assert (found, status["code"], status["reason"], status["status"]) == (code, code, reason, "Failure")
    assert status["message"]
    assert scene.taken == []


async def test_other_methods_are_not_found(scene: Scene) -> None:
    url = f"http://127.0.0.1:{scene.server.listener.port}{PATH.format('job')}"
    async with aiohttp.ClientSession() as session:
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            async with session.request(method, url) as response:
                assert response.status == 404


async def test_trainjobs_that_take_none(scene: Scene) -> None:
    for name, code, parts in (
        ("over", 409, {"status": {"conditions": [condition("Complete", "x")]}}),
        ("failed", 409, {"status": {"conditions": [condition("Failed", "x")]}}),
        ("going", 409, {"meta": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ("elsewhere", 404, {"managedBy": "kueue.x-k8s.io/multikueue"}),
        ("others", 403, {"owner": "another TrainJob of that name"}),
    ):
        scene.put(name, **parts)
        assert (await scene.post(name))[0] == code, name
    scene.put("held", suspend=True)
    assert (await scene.post("held"))[0] == 200, "its pods say their last words"
    assert len(scene.taken) == 1


async def test_a_replica_that_has_just_begun_asks_to_come_back(scene: Scene) -> None:
    scene.synced = False
    assert (await scene.post())[0] == 503
    scene.synced = True
    assert (await scene.post())[0] == 200


async def test_the_api_servers_trouble_is_not_told_to_pods(scene: Scene) -> None:
    scene.cluster.error = TransportError("10.1.2.3: secret things")
    code, status = await scene.post()
    assert code == 503
    assert "10.1.2.3" not in json.dumps(status)


async def test_the_operators_missing_right_is_told_to_the_admin_alone(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.cluster.error = ForbiddenError("tokenreviews.authentication.k8s.io is forbidden")
    code, status = await scene.post()
    assert (code, "tokenreviews" in json.dumps(status)) == (503, False)
    (record,) = (one for one in caplog.records if one.message == "a caller could not be judged")
    assert "create tokenreviews.authentication.k8s.io" in record.__dict__["do"]


async def test_a_streamed_body_past_the_bound_is_cut(scene: Scene) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b" " * 1024

    assert (await scene.post(data=endless()))[0] == 413


async def slow_bodies(scene: Scene) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Begin a hundred reports that do not go on."""
    header = scene.header()["Authorization"]
    slow = []
    for _ in range(100):
        reader, writer = await asyncio.open_connection("127.0.0.1", scene.server.listener.port)
        lines = f"POST {PATH.format('job')} HTTP/1.1", "Host: x", f"Authorization: {header}", "Content-Length: 500"
        writer.write("\r\n".join((*lines, "", '{"trainer')).encode())
        slow.append((reader, writer))
    return slow


async def test_slow_bodies_hold_up_nobody() -> None:
    scene = Scene(body_seconds=120, header_seconds=120)
    scene.put()
    scene.cluster.run()
    async with scene.server.listener:
        slow = await slow_bodies(scene)
        async with asyncio.timeout(60):
            assert (await scene.post())[0] == 200
        for _, writer in slow:
            writer.close()
    assert len(scene.taken) == 1


async def test_a_slow_body_is_cut() -> None:
    scene = Scene(body_seconds=0.5, header_seconds=0.5)
    scene.put()
    scene.cluster.run()
    async with scene.server.listener:
        slow = await slow_bodies(scene)
        async with asyncio.timeout(60):
            for reader, writer in slow:
                await reader.read()
                writer.close()
    assert scene.taken == []


async def test_a_job_that_spams_does_not_delay_others(scene: Scene) -> None:
    """As many reports of one TrainJob as it can send: another's are answered in their turn."""
    scene.put("other")
    loud, quiet = scene.header("job", "loud"), scene.header("other", "quiet")
    base = f"http://127.0.0.1:{scene.server.listener.port}"
    body = json.dumps(REPORT)
    sent = 0
    stop = asyncio.Event()

    async def spam(session: aiohttp.ClientSession) -> None:
        nonlocal sent
        while not stop.is_set():
            async with session.post(base + PATH.format("job"), data=body, headers=loud) as response:
                assert response.status == 200
            sent += 1

    first = []
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(spam(session))
        for _ in range(20):
            before = sent
            async with session.post(base + PATH.format("other"), data=body, headers=quiet) as response:
                assert response.status == 200
            first.append(sent - before)
            await asyncio.sleep(0.05)
        stop.set()
    assert sent > 500
    assert max(first) <= 60, "reports of the loud one that were answered before the quiet one's"
