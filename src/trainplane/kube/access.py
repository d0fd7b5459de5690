"""Delegated authorization: the API server is asked what a user may (SubjectAccessReview), so its RBAC decides.

Answers are remembered for seconds. What cannot be asked is not allowed: the error is raised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from trainplane.kube.clock import Clock

SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

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
        status = await reviewed(self._client, SUBJECT_ACCESS_REVIEWS, spec)
        if status.get("allowed") is True and not status.get("denied"):
            return None
        return str(status.get("reason") or status.get("evaluationError") or "")


async def reviewed(client: Reviewer, resource: Resource, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask the API server to review something; return what it found."""
    review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
    return (await client.create(resource, review)).get("status") or {}
