"""Who may report: attacks with tokens, and what they cost the API server."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import msgspec
import pytest

from trainplane.kube.errors import ForbiddenError
from trainplane.kube.resource import Key
from trainplane.kube.testing.clock import FakeClock
from trainplane.operator.progress.callers import REMEMBERED_SECONDS, Callers, read_claims
from trainplane.operator.progress.refusal import RefusalError
from trainplane.operator.stores import Stores

JOB = Key("team", "job")
AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/job/status"
JOBSET = "uid-of-the-jobset"


def token(clock: FakeClock, audience: Any = AUDIENCE, *, lasts: float = 3600, salt: str = "") -> str:
    claims = {"aud": [audience] if isinstance(audience, str) else audience, "exp": clock.now().timestamp() + lasts}
    payload = base64.urlsafe_b64encode(json.dumps({**claims, "salt": salt}).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2lnbmVk"


class Cluster:
    """Knows the tokens that it signed, and pods."""

    def __init__(self) -> None:
        self.signed: dict[str, dict[str, Any]] = {}
        self.pods = Stores().pods
        self.version = 1
        self.reviews: list[dict[str, Any]] = []
        self.error: Exception | None = None

    async def create(self, resource: Any, review: dict[str, Any]) -> dict[str, Any]:
        assert resource.plural == "tokenreviews"
        self.reviews.append(review["spec"])
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        found = self.signed.get(review["spec"]["token"])
        claims = read_claims(review["spec"]["token"])
        shared = [one for one in review["spec"]["audiences"] if claims and one in claims.audiences]
        if found is None or not shared:
            return {"status": {"authenticated": False}}
        return {"status": {"authenticated": True, "user": found, "audiences": shared}}

    def sign(self, signed: str, *, pod: str = "job-node-0-0-x", uid: str = "1", namespace: str = "team") -> str:
        extra = {
            "authentication.kubernetes.io/pod-name": [pod],
            "authentication.kubernetes.io/pod-uid": [uid],
        }
        self.signed[signed] = {"username": f"system:serviceaccount:{namespace}:default", "extra": extra if pod else {}}
        return signed

    def run(self, pod: str = "job-node-0-0-x", uid: str = "1", jobset: str = JOBSET) -> None:
        labels = {"jobset.sigs.k8s.io/jobset-uid": jobset, "jobset.sigs.k8s.io/jobset-name": "job"}
        self.version += 1
        meta = {"name": pod, "namespace": "team", "uid": uid, "labels": labels, "resourceVersion": str(self.version)}
        tree = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": {}}
        self.pods.put(self.pods.read(msgspec.Raw(msgspec.json.encode(tree))))

    def end(self, pod: str = "job-node-0-0-x") -> None:
        self.pods.remove(Key("team", pod), self.version + 1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def callers(cluster: Cluster, clock: FakeClock) -> Callers:
    return Callers(cluster, cluster.pods, clock)


async def judge(callers: Callers, header: str, *, source: str = "10.0.0.1", jobset: str = JOBSET) -> int:
    """Return the code of the answer."""
    try:
        user = await callers.identify(header, JOB, source)
        callers.check_member(user, JOB, jobset)
    except RefusalError as refusal:
        return refusal.code
    return 200


async def test_a_pod_of_the_trainjob_may(callers: Callers, cluster: Cluster, clock: FakeClock) -> None:
    cluster.run()
    mine = cluster.sign(token(clock))
    for _ in range(20):
        assert await judge(callers, f"Bearer {mine}") == 200
        await clock.advance(2.9)
    assert [one["audiences"] for one in cluster.reviews] == [[AUDIENCE]]
    await clock.advance(REMEMBERED_SECONDS)
    assert await judge(callers, f"bearer  {mine}") == 200
    assert len(cluster.reviews) == 2


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic e30.e30.x", "Bearer a b", "Bearer x", "Bearer a.b", "Bearer a.b.c", "Bearer ..",
     "Bearer e30.e30.x", "Bearer e30.W10.x", "Bearer e30.eyJhdWQiOiI.x", "Bearer \udcff.e30.x", "Bearer ä.e30.x",
     "Bearer e30." + "A" * 20000 + ".x", "Bearer e30." + "W1tb" * 3000 + ".x"],
)  # fmt: skip
async def test_what_is_no_token_asks_nobody(callers: Callers, cluster: Cluster, header: str) -> None:
    assert await judge(callers, header) == 401
    assert cluster.reviews == []


async def test_a_token_that_is_over_asks_nobody(callers: Callers, cluster: Cluster, clock: FakeClock) -> None:
    cluster.run()
    mine = cluster.sign(token(clock, lasts=30))
    assert await judge(callers, f"Bearer {mine}") == 200
    await clock.advance(31)
    assert await judge(callers, f"Bearer {mine}") == 401
    assert len(cluster.reviews) == 1


async def test_a_forged_token_is_none(callers: Callers, cluster: Cluster, clock: FakeClock) -> None:
    cluster.run()
    assert await judge(callers, f"Bearer {token(clock)}") == 401


async def test_good_tokens_of_others_are_told_apart(callers: Callers, cluster: Cluster, clock: FakeClock) -> None:
    cluster.run()
    cluster.run("other-node-0-0-y", "2", "uid-of-another-jobset")
    other = AUDIENCE.replace("/job/", "/other/")
    for salt, audience, signing in (
        ("another TrainJob's", other, {"pod": "other-node-0-0-y", "uid": "2"}),
        ("the API server's", "https://kubernetes.default.svc", {}),
        ("another TrainJob's pod, our audience", AUDIENCE, {"pod": "other-node-0-0-y", "uid": "2"}),
        ("another namespace's account", AUDIENCE, {"namespace": "team2"}),
        ("bound to no pod", AUDIENCE, {"pod": ""}),
        ("a former pod of that name", AUDIENCE, {"uid": "0"}),
        ("a pod that is gone", AUDIENCE, {"pod": "gone", "uid": "9"}),
    ):
        signed = cluster.sign(token(clock, audience, salt=salt), **signing)
        assert await judge(callers, f"Bearer {signed}") == 403, salt


async def test_a_trainjob_without_a_jobset_has_no_pods(callers: Callers, cluster: Cluster, clock: FakeClock) -> None:
    cluster.run()
    mine = cluster.sign(token(clock))
    assert await judge(callers, f"Bearer {mine}", jobset="") == 403
    assert await judge(callers, f"Bearer {mine}") == 200
    assert await judge(callers, f"Bearer {mine}", jobset="of a later TrainJob of that name") == 403


async def test_a_token_counts_as_long_as_its_pod(callers: Callers, cluster: Cluster, clock: FakeClock) -> None:
    cluster.run()
    mine = cluster.sign(token(clock))
    assert await judge(callers, f"Bearer {mine}") == 200
    cluster.end()
    assert await judge(callers, f"Bearer {mine}") == 403, "the review is remembered, the pod is seen to be gone"
    cluster.signed.clear()  # the API server judges tokens by their pods
    await clock.advance(REMEMBERED_SECONDS + 1)
    assert await judge(callers, f"Bearer {mine}") == 401
    cluster.run(uid="2")
    again = cluster.sign(token(clock), uid="1")
    assert await judge(callers, f"Bearer {again}") == 403, "another pod of that name"


async def test_a_flood_of_forged_tokens_is_no_flood_of_reviews(
    callers: Callers, cluster: Cluster, clock: FakeClock
) -> None:
    cluster.run()
    known = cluster.sign(token(clock, salt="known"))
    assert await judge(callers, f"Bearer {known}") == 200
    forged = [f"Bearer {token(clock, salt=str(number))}" for number in range(3000)]
    codes = await asyncio.gather(*(judge(callers, one, source="10.0.0.66") for one in forged[:1000]))
    assert {codes.count(401), codes.count(429)} == {32, 968}
    elsewhere = cluster.sign(token(clock, salt="new, from elsewhere"))
    assert await judge(callers, f"Bearer {elsewhere}", source="10.0.0.2") == 200
    for number, one in enumerate(forged[1000:]):
        await judge(callers, one, source=f"10.0.1.{number}")
    assert len(cluster.reviews) <= 256 + 2
    assert await judge(callers, f"Bearer {known}", source="10.0.0.66") == 200
    await clock.advance(REMEMBERED_SECONDS + 1)
    assert await judge(callers, f"Bearer {known}", source="10.0.0.66") == 200


async def test_one_forged_token_costs_one_review(callers: Callers, cluster: Cluster, clock: FakeClock) -> None:
    forged = token(clock)
    assert {await judge(callers, f"Bearer {forged}") for _ in range(100)} == {401}
    assert len(cluster.reviews) == 1


async def test_an_api_server_that_cannot_say_lets_nobody_in(
    callers: Callers, cluster: Cluster, clock: FakeClock
) -> None:
    mine = cluster.sign(token(clock))
    cluster.error = ForbiddenError("the operator cannot create tokenreviews")
    for _ in range(100):
        with pytest.raises(ForbiddenError):
            await callers.identify(f"Bearer {mine}", JOB, "10.0.0.1")
    cluster.error = None
    cluster.run()
    assert await judge(callers, f"Bearer {mine}") == 200
