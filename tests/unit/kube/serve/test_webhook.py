"""The webhook server over real TLS on loopback: every verdict, all kinds of nonsense, a changing certificate."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import pytest

from trainplane.kube.admission import AdmissionRequest, Verdict, allow, deny, encode_answer, mutate
from trainplane.kube.certificates import ServingContext
from trainplane.kube.listener import Listener, ListenerSettings
from trainplane.kube.pki import CertificatePolicy, Material, renew
from trainplane.kube.webhook import WebhookServer

POLICY = CertificatePolicy(("localhost",))
MATERIAL, _ = renew(None, POLICY, datetime.now(UTC))
LOOPBACK = ListenerSettings(0, host="127.0.0.1", body_limit=100_000)


class Job(msgspec.Struct):
    """A stand-in for a kind of the caller's."""

    metadata: dict[str, Any]
    replicas: int = 1


def review(uid: str = "u-1", operation: str = "CREATE", **fields: Any) -> dict[str, Any]:
    request = {
        "uid": uid,
        "operation": operation,
        "kind": {"group": "batch.example", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch.example", "version": "v1", "resource": "jobs"},
        "name": "a",
        "namespace": "ns",
        "userInfo": {"username": "kim", "groups": ["dev"], "extra": {"scopes": ["x"]}},
        "object": {"metadata": {"name": "a"}, "replicas": 2},
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **fields}}


class Seen:
    """A handler that remembers what it was asked and answers as told."""

    def __init__(self, verdict: Verdict | Exception) -> None:
        self.verdict = verdict
        self.asked: list[AdmissionRequest] = []

    def __call__(self, request: AdmissionRequest) -> Verdict:
        self.asked.append(request)
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


class Observed:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def started(self, path: str) -> None:
        self.calls.append(("started", path))

    def finished(self, path: str, code: int, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append(("finished", path, code))


class Rig:
    """A running server and a client that trusts its CA."""

    def __init__(self, listener: Listener, session: aiohttp.ClientSession) -> None:
        self.listener = listener
        self.session = session

    def url(self, path: str) -> str:
        return f"https://localhost:{self.listener.port}{path}"

    async def send(self, path: str, body: bytes, **options: Any) -> tuple[int, bytes]:
        async with self.session.post(self.url(path), data=body, **options) as response:
            return response.status, await response.read()

    async def ask(self, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
        status, body = await self.send(path, json.dumps(question).encode())
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: dict[str, Any] = answer["response"]
        return response


def trusting(ca: bytes) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cadata=ca.decode())
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))


def serving(material: Material = MATERIAL) -> ServingContext:
    context = ServingContext()
    context.load(material.tls_crt, material.tls_key)
    return context


@pytest.fixture
async def rig() -> AsyncIterator[Callable[..., Any]]:
    stops: list[Any] = []

    async def start(routes: Mapping[str, Any], **options: Any) -> Rig:
        server = WebhookServer(routes, LOOPBACK, tls=serving().context, **options)
        await server.listener.start()
        session = trusting(MATERIAL.ca_crt)
        stops.extend([session.close, server.listener.stop])
        return Rig(server.listener, session)

    yield start
    for stop in stops:
        await stop()


Start = Callable[..., Any]


async def test_a_request_arrives_typed_with_objects_undecoded(rig: Start) -> None:
    handler = Seen(allow())
    running: Rig = await rig({"/validate": handler})
    assert await running.ask("/validate?timeout=10s", review()) == {"uid": "u-1", "allowed": True}
    [asked] = handler.asked
    assert (asked.operation, asked.kind.kind, asked.resource.resource) == ("CREATE", "Job", "jobs")
    assert (asked.namespace, asked.name, asked.sub_resource) == ("ns", "a", "")
    assert (asked.user_info.username, asked.user_info.groups) == ("kim", ["dev"])
    assert asked.user_info.extra == {"scopes": ["x"]}
    assert asked.dry_run is False
    assert asked.decode(Job) == Job({"name": "a"}, 2)
    assert json.loads(bytes(asked.object)) == {"metadata": {"name": "a"}, "replicas": 2}
    assert bytes(asked.old_object) == b"null"


async def test_an_update_carries_both_forms(rig: Start) -> None:
    handler = Seen(allow())
    running: Rig = await rig({"/validate": handler})
    await running.ask("/validate", review(operation="UPDATE", oldObject={"metadata": {}, "replicas": 1}))
    assert handler.asked[0].decode_old(Job).replicas == 1
    assert handler.asked[0].decode(Job).replicas == 2


async def test_a_denial_carries_code_reason_message_and_warnings(rig: Start) -> None:
    running: Rig = await rig({"/v": Seen(deny("spec.replicas: at most 5", code=422, warnings=["old field"]))})
    assert await running.ask("/v", review("u-9")) == {
        "uid": "u-9",
        "allowed": False,
        "status": {"code": 422, "reason": "Invalid", "message": "spec.replicas: at most 5"},
        "warnings": ["old field"],
    }


async def test_a_mutation_is_a_base64_json_patch(rig: Start) -> None:
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "ü"}}]

    async def handler(request: AdmissionRequest) -> Verdict:
        await asyncio.sleep(0)
        return mutate(patch, warnings=["defaulted"])

    running: Rig = await rig({"/mutate": handler})
    answer = await running.ask("/mutate", review())
    assert json.loads(base64.b64decode(answer.pop("patch"))) == patch
    assert answer == {"uid": "u-1", "allowed": True, "patchType": "JSONPatch", "warnings": ["defaulted"]}


def test_a_mutation_of_nothing_sends_no_patch() -> None:
    answer = json.loads(encode_answer("u", mutate([])))
    assert answer["response"] == {"uid": "u", "allowed": True}


async def test_a_handler_that_raises_becomes_a_denial_that_takes_the_blame(
    rig: Start, caplog: pytest.LogCaptureFixture
) -> None:
    running: Rig = await rig({"/v": Seen(ZeroDivisionError("secret detail"))})
    with caplog.at_level(logging.ERROR):
        answer = await running.ask("/v", review())
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 500
    assert answer["status"]["reason"] == "InternalError"
    assert "fault of the webhook and not of the object" in answer["status"]["message"]
    assert "secret detail" not in answer["status"]["message"]
    [record] = caplog.records
    assert (record.message, record.__dict__["review"]) == ("admission handler failed", "u-1")


async def test_an_async_handler_that_hangs_becomes_a_denial(rig: Start, caplog: pytest.LogCaptureFixture) -> None:
    async def hang(request: AdmissionRequest) -> Verdict:
        await asyncio.Event().wait()
        raise AssertionError

    running: Rig = await rig({"/v": hang}, handler_seconds=0.01)
    answer = await running.ask("/v", review())
    assert answer["status"]["code"] == 504
    assert "longer than 0.01 s" in answer["status"]["message"]
    assert caplog.records[0].message == "admission handler timed out"


async def test_an_object_that_does_not_fit_is_the_users_to_mend(rig: Start) -> None:
    def handler(request: AdmissionRequest) -> Verdict:
        request.decode(Job)
        return allow()

    running: Rig = await rig({"/v": handler})
    answer = await running.ask("/v", review(object={"metadata": {}, "replicas": "two"}))
    assert answer["status"]["code"] == 422
    assert "replicas" in answer["status"]["message"]
    answer = await running.ask("/v", review(operation="DELETE", object=None))
    assert "object is empty in this DELETE review" in answer["status"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        json.dumps(review() | {"apiVersion": "admission.k8s.io/v1beta1"}).encode(),
        json.dumps(review() | {"request": None}).encode(),
        json.dumps(review(uid=7)).encode(),  # type: ignore[arg-type] # on purpose
        b"\xff\xfe",
    ],
)
async def test_what_is_no_review_is_400(rig: Start, body: bytes) -> None:
    handler = Seen(allow())
    running: Rig = await rig({"/v": handler})
    status, text = await running.send("/v", body)
    assert status == 400
    assert b"no AdmissionReview of admission.k8s.io/v1" in text
    assert handler.asked == []


async def test_paths_and_methods_that_are_none(rig: Start) -> None:
    running: Rig = await rig({"/v": Seen(allow())})
    assert (await running.send("/other", b"{}"))[0] == 404
    async with running.session.get(running.url("/v")) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"


async def test_a_body_over_the_limit_is_not_read_to_its_end(rig: Start) -> None:
    running: Rig = await rig({"/v": Seen(allow())})
    fits = json.dumps(review(object={"metadata": {}, "x": "y" * 90_000})).encode()
    assert (await running.send("/v", fits))[0] == 200
    status, text = await running.send("/v", b" " * 100_001)
    assert status == 413
    assert b"100000 bytes" in text


async def test_the_observer_hears_of_each_review_and_its_code(rig: Start) -> None:
    observed = Observed()
    running: Rig = await rig({"/v": Seen(allow())}, observer=observed)
    await running.ask("/v", review())
    await running.send("/v", b"nonsense")
    await running.send("/nowhere", b"{}")
    assert observed.calls == [("started", "/v"), ("finished", "/v", 200), ("started", "/v"), ("finished", "/v", 400)]


async def test_connections_are_kept_and_many_reviews_pass_at_once(rig: Start) -> None:
    running: Rig = await rig({"/v": Seen(allow())})
    answers = await asyncio.gather(*(running.ask("/v", review(f"u-{number}")) for number in range(200)))
    assert [answer["uid"] for answer in answers] == [f"u-{number}" for number in range(200)]


async def test_a_new_certificate_counts_from_the_next_connection() -> None:
    other, _ = renew(None, POLICY, datetime.now(UTC))
    context = serving()
    server = WebhookServer({"/v": Seen(allow())}, LOOPBACK, tls=context.context)
    async with server.listener, trusting(MATERIAL.ca_crt) as old, trusting(other.ca_crt) as new:
        was, now = Rig(server.listener, old), Rig(server.listener, new)
        await was.ask("/v", review())
        context.load(other.tls_crt, other.tls_key)
        await was.ask("/v", review())  # on its open connection
        await now.ask("/v", review())
        async with trusting(MATERIAL.ca_crt) as fresh:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await Rig(server.listener, fresh).ask("/v", review())


async def test_plain_http_gets_no_answer_from_tls(rig: Start) -> None:
    running: Rig = await rig({"/v": Seen(allow())})
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.post(f"http://localhost:{running.listener.port}/v", data=b"{}")


def test_a_reason_can_be_said_in_place_of_the_codes_own() -> None:
    assert deny("no").reason == "Forbidden"
    assert deny("no", code=418).reason == ""
    assert deny("no", code=409, reason="AlreadyExists").reason == "AlreadyExists"
    assert allow(warnings=["w"]).warnings == ("w",)
