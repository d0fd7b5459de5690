"""Who somebody is and what they may: questions to the API server about others than ourselves.

A server of ours that people call directly asks as Kubernetes' own do: TokenReview says whose a bearer token is, and
SubjectAccessReview what that user may, so the cluster's RBAC decides. Whoever asks needs the right to create both
(ClusterRole system:auth-delegator). Answers are remembered for a while; what cannot be asked is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from trainplane.kube.errors import ForbiddenError, UnauthorizedError
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from trainplane.kube.clock import Clock

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
ASKED_AT_ONCE: Final = 4
"""Tokens that are reviewed at the same time: whoever sends tokens of their own making loads the API server no more."""

V = TypeVar("V")


class Reviewer(Protocol):
    """What asking needs of `Client`."""

    async def create(self, resource: Resource, obj: Any) -> Any:
        """Create an object, and return it as the server answers."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, as the API server knows them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass
class Remembered(Generic[V]):
    """Answers of the last seconds; the oldest goes when there are too many."""

    clock: Clock
    seconds: float
    most: int
    _known: dict[Hashable, tuple[float, V]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable) -> V | None:
        """Return an answer that still counts."""
        until, answer = self._known.get(key, (0.0, None))
        return answer if until > self.clock.monotonic() else None

    def put(self, key: Hashable, answer: V) -> None:
        """Remember an answer from now on."""
        self._known.pop(key, None)
        if len(self._known) >= self.most:
            del self._known[next(iter(self._known))]
        self._known[key] = self.clock.monotonic() + self.seconds, answer


class AccessReviews:
    """Asks what a user may.

    Args:
        client: of the API server that decides.
        clock: tells how old an answer is.
        allowed_seconds: how long a yes is remembered: so late a right that was taken away counts.
        denied_seconds: how long a no is remembered: short, for somebody is about to grant it.
        most: answers of each kind remembered at once; a flood of refused ones pushes out no yes.
    """

    def __init__(
        self, client: Reviewer, clock: Clock, *, allowed_seconds: float, denied_seconds: float, most: int = 4096
    ) -> None:
        self._client = client
        self._allowed = Remembered[bool](clock, allowed_seconds, most)
        self._denied = Remembered[str](clock, denied_seconds, most)

    async def refusal(self, user: User, attributes: Mapping[str, Mapping[str, str]]) -> str | None:
        """Return None if a user may, else the reason, which may be empty. Raises KubeError if that cannot be asked.

        `attributes` are the review's: `resourceAttributes` or `nonResourceAttributes`.
        """
        key = user, *((kind, *sorted(values.items())) for kind, values in attributes.items())
        if self._allowed.get(key):
            return None
        refusal = self._denied.get(key)
        if refusal is None:
            refusal = await self._ask(user, attributes)
            if refusal is None:
                self._allowed.put(key, answer=True)
            else:
                self._denied.put(key, refusal)
        return refusal

    async def _ask(self, user: User, attributes: Mapping[str, Mapping[str, str]]) -> str | None:
        spec = {
            "user": user.name,
            "groups": list(user.groups),
            "uid": user.uid,
            "extra": {key: list(values) for key, values in user.extra},
            **attributes,
        }
        status = await _reviewed(self._client, SUBJECT_ACCESS_REVIEWS, spec)
        if status.get("allowed") is True and not status.get("denied"):
            return None
        return str(status.get("reason") or status.get("evaluationError") or "")


class TokenReviews:
    """Asks whose a bearer token is. Tokens are remembered by their digest, and stand in no message and no log."""

    def __init__(
        self, client: Reviewer, clock: Clock, *, known_seconds: float, unknown_seconds: float, most: int = 1024
    ) -> None:
        self._client = client
        self._known = Remembered[User](clock, known_seconds, most)
        self._unknown = Remembered[bool](clock, unknown_seconds, most)
        self._turn = asyncio.Semaphore(ASKED_AT_ONCE)

    async def user_of(self, token: str) -> User:
        """Return whose a token is; raises UnauthorizedError, or KubeError if that cannot be asked."""
        key = hashlib.sha256(token.encode()).digest()
        user = self._known.get(key)
        if user is None and not self._unknown.get(key):
            async with self._turn:
                user = self._known.get(key)  # asked for somebody else, while we waited
                if user is None and not self._unknown.get(key):
                    user = await self._ask(token)
                    if user is None:
                        self._unknown.put(key, answer=True)
                    else:
                        self._known.put(key, user)
        if user is None:
            raise UnauthorizedError("the bearer token is none that this cluster knows, or is over")
        return user

    async def _ask(self, token: str) -> User | None:
        status = await _reviewed(self._client, TOKEN_REVIEWS, {"token": token})
        found = status.get("user") or {}
        name = found.get("username")
        if status.get("authenticated") is not True or status.get("error") or not name:
            return None
        extra = sorted((key, tuple(values)) for key, values in (found.get("extra") or {}).items())
        return User(str(name), tuple(found.get("groups") or ()), str(found.get("uid") or ""), tuple(extra))


class PathAccess:
    """Lets in who may read a path of ours, as controller-runtime's filter of metrics does.

    Remembered are a token's user and what that user may for 60 s, as there for a token, so a scrape every few seconds
    costs two reviews a minute; and a no of either kind for 10 s.
    """

    def __init__(self, client: Reviewer, clock: Clock) -> None:
        self._tokens = TokenReviews(client, clock, known_seconds=60.0, unknown_seconds=10.0)
        self._access = AccessReviews(client, clock, allowed_seconds=60.0, denied_seconds=10.0, most=1024)

    async def check(self, authorization: str, verb: str, path: str) -> User:
        """Return who asks, by the request's header; raises UnauthorizedError or ForbiddenError, else KubeError."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            raise UnauthorizedError("send a bearer token: Authorization: Bearer TOKEN")
        user = await self._tokens.user_of(token)
        attributes = {"nonResourceAttributes": {"path": path, "verb": verb}}
        refusal = await self._access.refusal(user, attributes)
        if refusal is not None:
            reason = f": {refusal}" if refusal else ""
            raise ForbiddenError(f'user "{user.name}" cannot {verb} path "{path}"{reason}')
        return user


async def _reviewed(client: Reviewer, resource: Resource, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
    return (await client.create(resource, review)).get("status") or {}
