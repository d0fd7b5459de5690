from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.hub.fakeworker import cluster
from trainplane.hub.apiserver.delegated_auth import (
    CONFIG_MAP,
    Access,
    Authorizer,
    FrontProxy,
    authenticate,
    front_proxy,
    load_front_proxy,
)
from trainplane.kube.access import User
from trainplane.kube.errors import ForbiddenError, NotFoundError, UnauthorizedError
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import CONFIG_MAPS

PEM = base64.b64decode(cluster("")["certificate-authority-data"]).decode()
PROXY = FrontProxy(PEM, frozenset({"front-proxy"}))
CERTIFICATE = {"subject": ((("organizationName", "lab"),), (("commonName", "front-proxy"),))}
HEADERS = [("X-Remote-User", "ana"), ("X-Remote-Group", "dev"), ("x-remote-group", "system:authenticated")]
LOG = Access("get", "team", "x", "log")


def test_the_configmap_says_whom_to_believe() -> None:
    data = {
        "requestheader-client-ca-file": PEM,
        "requestheader-allowed-names": '["front-proxy","other"]',
        "requestheader-username-headers": '["X-User"]',
        "requestheader-group-headers": '["X-Group"]',
        "requestheader-uid-headers": "[]",
        "requestheader-extra-headers-prefix": '["X-More-"]',
    }
    names = frozenset({"front-proxy", "other"})
    assert front_proxy({"data": data}) == FrontProxy(PEM, names, ("X-User",), ("X-Group",), (), ("X-More-",))


@pytest.mark.parametrize("empty", ["", "[]", "null"])
def test_an_empty_list_of_names_is_any_as_for_kubernetes(empty: str) -> None:
    data = {"requestheader-client-ca-file": PEM, "requestheader-username-headers": '["X-Remote-User"]'}
    for given in (data, {**data, "requestheader-allowed-names": empty}):
        proxy = front_proxy({"data": given})
        assert authenticate(proxy, {"subject": ((("commonName", "any"),),)}, HEADERS) == User("ana")


def test_headers_that_the_api_server_does_not_list_are_users_words() -> None:
    proxy = front_proxy({"data": {"requestheader-client-ca-file": PEM}})
    assert (proxy.user_headers, proxy.group_headers, proxy.uid_headers, proxy.extra_prefixes) == ((), (), (), ())
    with pytest.raises(UnauthorizedError, match="names no user"):
        authenticate(proxy, CERTIFICATE, HEADERS)


LISTS = (
    "requestheader-allowed-names",
    "requestheader-username-headers",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-extra-headers-prefix",
)


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize(
    "value", ["[front-proxy]", "front-proxy", '"front-proxy"', "{}", "[1]", '["a", ""]', '[" "]', "["]
)
def test_a_list_that_cannot_be_read_is_believed_by_nobody(key: str, value: str) -> None:
    data = dict.fromkeys(LISTS, '["X"]') | {"requestheader-client-ca-file": PEM, key: value}
    with pytest.raises(UnauthorizedError, match=f"has a {key} that is no JSON list of names: nobody is believed"):
        front_proxy({"data": data})


@pytest.mark.parametrize("authority", ["PEM", "-----BEGIN CERTIFICATE-----", "\u00e9", PEM + "\u00e9", None, ""])
def test_an_authority_that_is_none_is_believed_by_nobody(authority: str | None) -> None:
    with pytest.raises(UnauthorizedError, match="requestheader-client-ca-file"):
        front_proxy({"data": {"requestheader-client-ca-file": authority}})


async def test_a_cluster_without_aggregation_is_told() -> None:
    async with FakeServer() as server, server.client() as client:
        with pytest.raises(NotFoundError):
            await load_front_proxy(client)
        server.put(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP, "namespace": "kube-system"}, "data": {}})
        with pytest.raises(UnauthorizedError, match="--requestheader-client-ca-file"):
            await load_front_proxy(client)
        data = {"requestheader-client-ca-file": PEM}
        server.put(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP, "namespace": "kube-system"}, "data": data})
        assert (await load_front_proxy(client)).authority == PEM


def test_the_api_server_says_who_asks() -> None:
    extra = [("X-Remote-Extra-Scopes", "a"), ("X-Remote-Extra-Scopes", "b"), ("X-Remote-Extra-example.com%2fKey", "c")]
    user = authenticate(PROXY, CERTIFICATE, [*HEADERS, ("X-Remote-Uid", "7"), *extra])
    assert user == User(
        "ana", ("dev", "system:authenticated"), "7", (("example.com/key", ("c",)), ("scopes", ("a", "b")))
    )


@pytest.mark.parametrize(
    ("certificate", "headers", "message"),
    [
        (None, HEADERS, "only the API server is answered here"),
        ({}, HEADERS, "only the API server is answered here"),
        ({"subject": ((("commonName", "ana"),),)}, HEADERS, "none that may speak for users"),
        ({"subject": ((("organizationName", "front-proxy"),),)}, HEADERS, "none that may speak for users"),
        (CERTIFICATE, HEADERS[1:], "names no user"),
        (CERTIFICATE, [("X-Remote-User", "")], "names no user"),
    ],
)
def test_nobody_else_is_believed(certificate: Any, headers: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UnauthorizedError, match=message):
        authenticate(PROXY, certificate, headers)


def test_without_names_any_certificate_of_the_authority_will_do() -> None:
    assert authenticate(FrontProxy(PEM), {"subject": ((("commonName", "any"),),)}, HEADERS).name == "ana"


class Reviewer:
    """Answers SubjectAccessReviews."""

    def __init__(self, **status: Any) -> None:
        self.status = status
        self.reviews: list[dict[str, Any]] = []

    async def create(self, resource: Any, review: dict[str, Any]) -> dict[str, Any]:
        assert resource.path() == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        self.reviews.append(review["spec"])
        return {**review, "status": self.status}


def authorizer(reviewer: Reviewer, **settings: Any) -> tuple[Authorizer, FakeClock]:
    clock = FakeClock()
    return Authorizer(reviewer, clock, **settings), clock


async def test_the_hub_is_asked_with_all_that_it_knows_of_the_user() -> None:
    reviewer = Reviewer(allowed=True)
    asks, _ = authorizer(reviewer)
    await asks.check(User("ana", ("dev",), "7", (("scopes", ("a",)),)), LOG)
    assert reviewer.reviews == [
        {
            "user": "ana",
            "groups": ["dev"],
            "uid": "7",
            "extra": {"scopes": ["a"]},
            "resourceAttributes": {
                "group": "hub.trainplane.dev",
                "version": "v1alpha1",
                "resource": "trainjobs",
                "subresource": "log",
                "namespace": "team",
                "name": "x",
                "verb": "get",
            },
        }
    ]


@pytest.mark.parametrize("status", [{}, {"allowed": False}, {"allowed": True, "denied": True}])
async def test_what_is_not_allowed_is_forbidden_in_words(status: dict[str, Any]) -> None:
    asks, _ = authorizer(Reviewer(**status))
    text = 'user "ana" cannot get trainjobs/log.hub.trainplane.dev "x" in the namespace "team"'
    with pytest.raises(ForbiddenError) as raised:
        await asks.check(User("ana"), LOG)
    assert raised.value.message == text
    with pytest.raises(ForbiddenError, match=r"list trainjobs\.hub\.trainplane\.dev in all namespaces"):
        await asks.check(User("ana"), Access("list", "", "", ""))


async def test_the_reason_is_passed_on() -> None:
    asks, _ = authorizer(Reviewer(allowed=False, reason="no RBAC policy matched"))
    with pytest.raises(ForbiddenError, match="no RBAC policy matched"):
        await asks.check(User("ana"), LOG)


async def test_answers_are_remembered_for_seconds_each_for_its_user_and_object() -> None:
    reviewer = Reviewer(allowed=True)
    asks, clock = authorizer(reviewer)
    for _ in range(3):
        await asks.check(User("ana"), LOG)
    assert len(reviewer.reviews) == 1
    await asks.check(User("ben"), LOG)
    await asks.check(User("ana", ("dev",)), LOG)
    await asks.check(User("ana"), Access("get", "team", "y", "log"))
    assert len(reviewer.reviews) == 4
    await clock.advance(10.1)
    await asks.check(User("ana"), LOG)
    assert len(reviewer.reviews) == 5


async def test_a_no_is_soon_asked_again() -> None:
    reviewer = Reviewer(allowed=False)
    asks, clock = authorizer(reviewer)
    for _ in range(2):
        with pytest.raises(ForbiddenError):
            await asks.check(User("ana"), LOG)
    assert len(reviewer.reviews) == 1
    reviewer.status = {"allowed": True}
    await clock.advance(2.1)
    await asks.check(User("ana"), LOG)


async def test_the_memory_is_bounded() -> None:
    reviewer = Reviewer(allowed=True)
    asks, _ = authorizer(reviewer, most=10)
    for number in range(30):
        await asks.check(User(f"user-{number}"), LOG)
    assert len(asks._reviews._allowed) == 10
    await asks.check(User("user-29"), LOG)
    assert len(reviewer.reviews) == 30
