"""Delegated authentication: the API server is asked whose bearer token this is (TokenReview).

Answers are remembered for seconds, by the token's digest and never the token itself. An API server that cannot be asked
knows nobody: the error is raised, and who asks is refused.

Who sends made-up tokens, each another one, would have the API server asked about each. Where anybody may call,
`Guesses` bounds how many that are, from one address and from all; a token that proved right is asked about freely.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.kube.access import Remembered, User, reviewed
from trainplane.kube.errors import TooManyRequestsError
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from trainplane.kube.access import Reviewer
    from trainplane.kube.clock import Clock

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
LONGEST: Final = 16 << 10
"""Bytes of the longest token that is asked about; those of service accounts have about one thousand."""
ASKED_AT_ONCE: Final = 4
"""Tokens that are asked about at the same time: who sends made-up ones loads the API server no more than that."""


PROVED_SECONDS: Final = 3600.0
"""Seconds for which a token that proved right is no guess; as long as most tokens of pods last."""


@dataclass
class Guesses:
    """How many wrong tokens are asked about in a while: of one address, and of all."""

    clock: Clock
    each: int = 32
    """Wrong tokens of one address. Many pods may share one, and a pod whose Secret is stale sends few."""
    all: int = 256
    """Wrong tokens of everybody."""
    seconds: float = 10.0
    """How long a while is."""

    def __post_init__(self) -> None:
        self._until = 0.0
        self._total = 0
        self._by_source: dict[str, int] = {}

    def take(self, source: str) -> None:
        """Count a token that may be wrong; raises TooManyRequestsError if too many of late were."""
        now = self.clock.monotonic()
        if now >= self._until:
            self._until, self._total = now + self.seconds, 0
            self._by_source.clear()
        if self._total >= self.all or self._by_source.get(source, 0) >= self.each:
            raise TooManyRequestsError(
                "too many tokens of late were none that this cluster knows: a new one is looked at in some seconds",
                retry_after=self._until - now,
            )
        self._total += 1
        self._by_source[source] = self._by_source.get(source, 0) + 1

    def give_back(self, source: str) -> None:
        """Count one less: it was right, or nobody could say."""
        self._total = max(0, self._total - 1)
        self._by_source[source] = max(0, self._by_source.get(source, 0) - 1)


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
    at_once: int = ASKED_AT_ONCE
    """Tokens that are asked about at the same time."""
    guesses: Guesses | None = None
    """How many wrong ones are asked about; None: all, a few at a time."""

    def __post_init__(self) -> None:
        self._known = Remembered[User](self.clock, self.seconds, self.most)
        self._unknown = Remembered[bool](self.clock, self.unknown_seconds, self.most)
        self._proved = Remembered[bool](self.clock, PROVED_SECONDS, self.most)
        self._turn = asyncio.Semaphore(self.at_once)

    async def user_of(self, token: str, audiences: tuple[str, ...] | None = None, *, source: str = "") -> User | None:
        """Return whose token this is, None if the API server does not accept it. Raises KubeError if it cannot say.

        Args:
            token: the token.
            audiences: whom it must be meant for; None: the reviewer's own.
            source: the caller's address, by which `guesses` counts; past them, raises TooManyRequestsError.
        """
        if not token or len(token) > LONGEST or not token.isascii():
            return None
        meant = self.audiences if audiences is None else audiences
        key = hashlib.sha256(token.encode()).digest(), meant
        user = self._known.get(key)
        if user is not None or self._unknown.get(key):
            return user
        async with self._turn:
            user = self._known.get(key)  # somebody else may have asked, while we waited
            if user is None and not self._unknown.get(key):
                user = await self._guess(token, key, source)
        return user

    async def _guess(self, token: str, key: tuple[bytes, tuple[str, ...]], source: str) -> User | None:
        guesses = None if self._proved.get(key) else self.guesses
        if guesses is not None:
            guesses.take(source)
        user, is_wrong = None, False
        try:
            user = await self._ask(token, key[1])
            is_wrong = user is None
        finally:
            if guesses is not None and not is_wrong:
                guesses.give_back(source)
        if user is None:
            self._unknown.put(key, answer=True)
            return None
        self._known.put(key, user)
        self._proved.put(key, answer=True)
        return user

    async def _ask(self, token: str, audiences: tuple[str, ...]) -> User | None:
        spec: dict[str, Any] = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        status = await reviewed(self.client, TOKEN_REVIEWS, spec)
        user = status.get("user") or {}
        if status.get("authenticated") is not True or status.get("error") or not user.get("username"):
            return None
        if audiences and not set(audiences) & set(status.get("audiences") or ()):
            return None  # an API server that knows no audiences has judged by its own
        extra = sorted((key, tuple(values)) for key, values in (user.get("extra") or {}).items())
        return User(str(user["username"]), tuple(user.get("groups") or ()), str(user.get("uid") or ""), tuple(extra))
