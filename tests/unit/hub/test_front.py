"""A front before the hub server: what it answers itself, what it hands on, and what it says while the owner is away."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.unit.hub.hubstage import ROOT, Answer, HubStage
from trainplane.hub.apiserver.delegated_auth import FrontProxy
from trainplane.hub.apiserver.fronts import Fronts
from trainplane.hub.apiserver.serving import Server
from trainplane.hub.front import forward
from trainplane.hub.front.forward import Front, identity
from trainplane.hub.front.main import parse
from trainplane.kube.access import User
from trainplane.kube.certificates import ServingContext
from trainplane.kube.errors import UnauthorizedError
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.tokenreview import LONGEST, TokenReviewer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ACCOUNT = "system:serviceaccount:trainplane-hub:trainplane-hub-front"
TOKENS = {"good": User(ACCOUNT), "other": User("system:serviceaccount:team:default")}


class Reviewer:
    async def user_of(self, token: str) -> User | None:
        return TOKENS.get(token)


FRONTS = Fronts(Reviewer(), ACCOUNT)  # type: ignore[arg-type]


class FrontStage:
    """A front on its own port before a `HubStage`."""

    def __init__(self, hub: HubStage) -> None:
        self.hub = hub
        self.token = "good"
        authority = hub.folder / "pki/ca.crt"
        tls = ServingContext()
        pair = hub.authority.issue("front-serving", "front", hosts=("127.0.0.1",))
        tls.load(pair.certificate.read_bytes(), pair.key.read_bytes())
        proxy = FrontProxy(authority.read_text(), frozenset({"front-proxy"}))
        self.front = Front(
            f"https://127.0.0.1:{hub.port}",
            lambda: ssl.create_default_context(cafile=str(authority)),
            lambda: self.token,
        )
        listen = ListenerSettings(0, "127.0.0.1", stop_seconds=0.1)
        self.server = Server(self.front, proxy, listen, tls=tls, ready=lambda: None)

    async def get(self, path: str, user: str = "ana", common_name: str | None = "front-proxy") -> Answer:
        session = self.hub.session(common_name)
        async with session:
            url = f"https://127.0.0.1:{self.server.listener.port}{path}"
            async with session.get(url, headers={"X-Remote-User": user}) as answer:
                return Answer(answer.status, dict(answer.headers), await answer.read())


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[FrontStage]:
    async with HubStage(tmp_path) as hub:
        hub.server._fronts = FRONTS
        front = FrontStage(hub)
        async with front.server.listener:
            yield front
            await front.front.close()


async def test_what_needs_the_owner_is_handed_on_with_who_asks(stage: FrontStage) -> None:
    stage.hub.put_job()
    logs = stage.hub.put_pod()
    stage.hub.print(logs, 3)
    await stage.hub.until_log(3)
    listed = await stage.get(f"{ROOT}/namespaces/team/trainjobs")
    assert [item["metadata"]["name"] for item in json.loads(listed.body)["items"]] == ["x"]
    answer = await stage.get(f"{ROOT}/namespaces/team/trainjobs/x/log", user="ben")
    assert answer.text.splitlines() == ["line 0", "line 1", "line 2"]
    assert stage.hub.rules.asked[-1][0].name == "ben"


@pytest.mark.finding("hub-and-sdk", 2, "while the hub server was down, no namespace of the hub could be deleted")
async def test_discovery_needs_no_owner_and_the_rest_says_that_it_is_away(stage: FrontStage) -> None:
    await stage.hub.server.listener.stop()
    for path in ("/apis", ROOT, "/openapi/v2"):
        assert (await stage.get(path)).status == 200
    answer = await stage.get(f"{ROOT}/namespaces/team/trainjobs")
    assert answer.status == 503
    status = json.loads(answer.body)
    assert status["reason"] == "ServiceUnavailable"
    assert "ask again" in status["message"]


async def test_a_refusal_of_the_owner_is_passed_on(stage: FrontStage) -> None:
    stage.hub.rules.denied.add(("eve", "log"))
    stage.hub.put_job()
    answer = await stage.get(f"{ROOT}/namespaces/team/trainjobs/x/log", user="eve")
    assert answer.status == 403
    assert json.loads(answer.body)["message"].startswith('user "eve" cannot get trainjobs/log')


async def test_a_followed_log_comes_as_it_is_printed(stage: FrontStage) -> None:
    stage.hub.put_job()
    logs = stage.hub.put_pod()
    stage.hub.print(logs, 1)
    await stage.hub.until_log(1)
    session = stage.hub.session()
    async with session:
        path = f"{ROOT}/namespaces/team/trainjobs/x/log?follow=true"
        url = f"https://127.0.0.1:{stage.server.listener.port}{path}"
        async with session.get(url, headers={"X-Remote-User": "ana"}) as answer:
            assert await asyncio.wait_for(answer.content.readline(), 30) == b"line 0\n"
            stage.hub.print(logs, 1, first=1)
            assert await asyncio.wait_for(answer.content.readline(), 30) == b"line 1\n"
            await stage.hub.server.listener.stop()
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await asyncio.wait_for(answer.content.read(), 30)


@pytest.mark.parametrize("token", ["other", "made-up", ""])
async def test_the_owner_believes_no_other_account(stage: FrontStage, token: str) -> None:
    stage.token = token
    assert (await stage.get(f"{ROOT}/namespaces/team/trainjobs")).status == 401


async def test_only_the_api_server_speaks_to_a_front(stage: FrontStage) -> None:
    assert (await stage.get(ROOT, common_name=None)).status == 401
    assert (await stage.get(ROOT, common_name="stranger")).status == 401


async def test_two_tokens_are_none() -> None:
    with pytest.raises(UnauthorizedError):
        await FRONTS.authenticate(
            [("Authorization", "Bearer good"), ("authorization", "Bearer good"), ("X-Remote-User", "a")]
        )


def test_a_user_is_told_in_full() -> None:
    user = User("ana", ("a", "b"), "7", (("scopes/x", ("1", "2")),))
    assert identity(user) == [
        ("X-Remote-User", "ana"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "b"),
        ("X-Remote-Extra-scopes%2Fx", "1"),
        ("X-Remote-Extra-scopes%2Fx", "2"),
    ]


def test_flags_have_defaults_that_the_manifests_use() -> None:
    settings = parse(["--namespace", "n"])
    assert (settings.service, settings.owner, settings.listen.port) == ("trainplane-hub", None, 8443)
    assert forward.ANSWER_SECONDS < 60


class Reviews:
    """An API server that reviews tokens, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.audiences: list[str] = ["trainplane-hub"]

    async def create(self, *_: object) -> dict[str, object]:
        self.asked += 1
        return {"status": {"authenticated": True, "audiences": self.audiences, "user": {"username": "a"}}}


class Stopped:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


async def test_an_answer_about_a_token_is_remembered_for_seconds() -> None:
    reviews, clock = Reviews(), Stopped()
    reviewer = TokenReviewer(reviews, clock, ("trainplane-hub",), most=2)  # type: ignore[arg-type]
    for _ in range(3):
        assert await reviewer.user_of("t") == User("a")
    assert reviews.asked == 1
    clock.now = 11.0
    await reviewer.user_of("t")
    assert reviews.asked == 2
    for number in range(5):
        await reviewer.user_of(str(number))
    assert len(reviewer._known) == 2


async def test_a_token_for_somebody_else_or_without_end_is_none() -> None:
    reviews = Reviews()
    reviewer = TokenReviewer(reviews, Stopped(), ("trainplane-hub",))  # type: ignore[arg-type]
    reviews.audiences = ["https://kubernetes.default.svc"]
    assert await reviewer.user_of("t") is None
    assert await reviewer.user_of("x" * (LONGEST + 1)) is None
    assert reviews.asked == 1
