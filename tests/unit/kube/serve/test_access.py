"""Tokens and what their users may: who is let in, what is asked of the API server, and what is remembered."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import aiohttp
import pytest

from trainplane.kube.access import User
from trainplane.kube.errors import ForbiddenError, KubeError, TransportError, UnauthorizedError
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.metrics import Metrics
from trainplane.kube.pathaccess import PathAccess
from trainplane.kube.testing.clock import FakeClock

NAME = "system:serviceaccount:monitoring:prometheus"
SCRAPER = {
    "username": NAME,
    "uid": "7",
    "groups": ["g"],
    "extra": {"k": ["v"]},
}


class Cluster:
    """Knows some tokens, and who may read metrics."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, Any]] = {"good": SCRAPER, "poor": {"username": "poor"}}
        self.allowed = {NAME}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.error: Exception | None = None
        self.under_way = self.most_under_way = 0

    async def create(self, resource: Any, review: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((resource.plural, review["spec"]))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.error is not None:
            raise self.error
        if resource.plural == "tokenreviews":
            user = self.tokens.get(review["spec"]["token"])
            return {"status": {"authenticated": user is not None, **({"user": user} if user else {"error": "no"})}}
        return {"status": {"allowed": review["spec"]["user"] in self.allowed, "reason": "RBAC: none"}}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def access(cluster: Cluster, clock: FakeClock) -> PathAccess:
    return PathAccess(cluster, clock)


async def test_the_cluster_is_asked_for_token_and_path(cluster: Cluster, access: PathAccess) -> None:
    user = await access.check("Bearer good", "get", "/metrics")
    assert user == User(NAME, ("g",), "7", (("k", ("v",)),))
    assert cluster.asked == [
        ("tokenreviews", {"token": "good"}),
        (
            "subjectaccessreviews",
            {
                "user": NAME,
                "groups": ["g"],
                "uid": "7",
                "extra": {"k": ["v"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            },
        ),
    ]


@pytest.mark.parametrize("header", ["", "good", "Basic good", "Bearer", "Bearer  ", "Bearer gö", "Bearer \udcff"])
async def test_without_a_token_nobody_is_asked(cluster: Cluster, access: PathAccess, header: str) -> None:
    with pytest.raises(UnauthorizedError):
        await access.check(header, "get", "/metrics")
    assert cluster.asked == []


async def test_a_token_of_another_or_without_the_right_is_refused(access: PathAccess) -> None:
    with pytest.raises(UnauthorizedError):
        await access.check("Bearer made-up", "get", "/metrics")
    with pytest.raises(ForbiddenError, match='user "poor" cannot get path "/metrics": RBAC: none'):
        await access.check("Bearer poor", "get", "/metrics")


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"authenticated": "true", "user": SCRAPER},
        {"authenticated": True},
        {"authenticated": True, "user": {"username": ""}},
        {"authenticated": True, "user": SCRAPER, "error": "over"},
    ],
)
async def test_only_a_plain_yes_is_one(clock: FakeClock, status: dict[str, Any]) -> None:
    class Odd:
        async def create(self, resource: Any, _: Any) -> dict[str, Any]:
            return {"status": status if resource.plural == "tokenreviews" else {"allowed": True}}

    with pytest.raises(UnauthorizedError):
        await PathAccess(Odd(), clock).check("Bearer good", "get", "/metrics")


async def test_answers_are_remembered_a_yes_longer_than_a_no(
    cluster: Cluster, clock: FakeClock, access: PathAccess
) -> None:
    for _ in range(3):
        await access.check("Bearer good", "get", "/metrics")
        with pytest.raises(UnauthorizedError):
            await access.check("Bearer made-up", "get", "/metrics")
    assert len(cluster.asked) == 3
    await clock.advance(10.1)
    cluster.tokens["made-up"] = SCRAPER
    await access.check("Bearer made-up", "get", "/metrics")
    assert len(cluster.asked) == 4
    cluster.allowed.clear()
    await clock.advance(60.1)
    with pytest.raises(ForbiddenError):
        await access.check("Bearer good", "get", "/metrics")


async def test_made_up_tokens_push_out_no_known_one_and_are_asked_a_few_at_a_time(
    cluster: Cluster, access: PathAccess
) -> None:
    await access.check("Bearer good", "get", "/metrics")
    asked = (access.check(f"Bearer made-up-{number}", "get", "/metrics") for number in range(3000))
    assert all(isinstance(one, UnauthorizedError) for one in await asyncio.gather(*asked, return_exceptions=True))
    before = len(cluster.asked)
    await access.check("Bearer good", "get", "/metrics")
    assert len(cluster.asked) == before
    assert len(access._tokens._unknown) == 1024
    assert cluster.most_under_way <= 4


async def test_the_same_token_many_times_at_once_is_asked_a_few_times(cluster: Cluster, access: PathAccess) -> None:
    await asyncio.gather(*(access.check("Bearer good", "get", "/metrics") for _ in range(50)))
    assert [kind for kind, _ in cluster.asked].count("tokenreviews") <= 4


async def test_what_cannot_be_asked_is_refused_and_not_remembered(cluster: Cluster, access: PathAccess) -> None:
    cluster.error = TransportError("no answer")
    with pytest.raises(KubeError):
        await access.check("Bearer good", "get", "/metrics")
    cluster.error = None
    await access.check("Bearer good", "get", "/metrics")


async def test_metrics_are_served_to_whom_the_cluster_lets_in(
    cluster: Cluster, access: PathAccess, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def status(session: aiohttp.ClientSession, *headers: str, path: str = "/metrics") -> tuple[int, str]:
        url = f"http://127.0.0.1:{listener.port}{path}"
        async with session.get(url, headers=[("Authorization", each) for each in headers]) as answer:
            return answer.status, await answer.text()

    server = Metrics(clock).server(ListenerSettings(0, "127.0.0.1"), access=access)
    async with server as listener, aiohttp.ClientSession() as session:
        with caplog.at_level(logging.DEBUG):
            assert (await status(session))[0] == 401
            assert (await status(session, "Bearer made-up"))[0] == 401
            assert (await status(session, "Bearer good", "Bearer poor"))[0] == 401
            assert (await status(session, "Bearer poor"))[0] == 403
            assert (await status(session, path="/"))[0] == 401, "not even what there is"
            code, text = await status(session, "Bearer good")
            assert code == 200
            assert "workqueue_depth" in text
            cluster.error = TransportError("no answer to Bearer secret-token")
            code, text = await status(session, "Bearer secret-token")
            assert code == 503
    assert "secret-token" not in text + caplog.text
