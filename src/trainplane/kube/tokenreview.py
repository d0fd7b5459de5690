"""Delegated authentication: the API server is asked whose bearer token this is (TokenReview).

Answers are remembered for seconds, by the token's digest and never the token itself. An API server that cannot be asked
knows nobody: the error is raised, and who asks is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.kube.access import Remembered, User, reviewed
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from trainplane.kube.access import Reviewer
    from trainplane.kube.clock import Clock

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
LONGEST: Final = 16 << 10
"""Bytes of the longest token that is asked about; those of service accounts have about one thousand."""
ASKED_AT_ONCE: Final = 4
"""Tokens that are asked about at the same time: who sends made-up ones loads the API server no more than that."""


@dataclass
class TokenReviewer:
    """Asks whose tokens these are."""

    client: Reviewer
    clock: Clock
    audiences: tuple[str, ...] = ()
    """Whom tokens must be meant for; none: the API server itself."""
    seconds: float = 10.0
    """Seconds that a user is remembered: a token that was taken back counts no longer."""
    unknown_seconds: float = 10.0
    """Seconds that a token is remembered which the API server does not accept."""
    most: int = 1024
    """Answers of each kind remembered at once: a flood of made-up tokens forgets no good one."""

    def __post_init__(self) -> None:
        self._known = Remembered[User](self.clock, self.seconds, self.most)
        self._unknown = Remembered[bool](self.clock, self.unknown_seconds, self.most)
        self._turn = asyncio.Semaphore(ASKED_AT_ONCE)

    async def user_of(self, token: str) -> User | None:
        """Return whose token this is, None if the API server does not accept it. Raises KubeError if it cannot say."""
        if not token or len(token) > LONGEST or not token.isascii():
            return None
        digest = hashlib.sha256(token.encode()).digest()
        user = self._known.get(digest)
        if user is not None or self._unknown.get(digest):
            return user
        async with self._turn:
            user = self._known.get(digest)  # somebody else may have asked, while we waited
            if user is None and not self._unknown.get(digest):
                user = await self._ask(token)
                if user is None:
                    self._unknown.put(digest, answer=True)
                else:
                    self._known.put(digest, user)
        return user

    async def _ask(self, token: str) -> User | None:
        spec: dict[str, Any] = {"token": token}
        if self.audiences:
            spec["audiences"] = list(self.audiences)
        status = await reviewed(self.client, TOKEN_REVIEWS, spec)
        user = status.get("user") or {}
        if status.get("authenticated") is not True or status.get("error") or not user.get("username"):
            return None
        if self.audiences and not set(self.audiences) & set(status.get("audiences") or ()):
            return None  # an API server that knows no audiences has judged by its own
        extra = sorted((key, tuple(values)) for key, values in (user.get("extra") or {}).items())
        return User(str(user["username"]), tuple(user.get("groups") or ()), str(user.get("uid") or ""), tuple(extra))
