"""Who may read a path of a server of ours, as controller-runtime's filter of metrics decides it.

A TokenReview says whose the bearer token is, a SubjectAccessReview whether that user may. Whoever asks needs the right
to create both (ClusterRole system:auth-delegator).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.kube.access import AccessReviews
from trainplane.kube.errors import ForbiddenError, UnauthorizedError
from trainplane.kube.tokenreview import TokenReviewer

if TYPE_CHECKING:
    from trainplane.kube.access import Reviewer, User
    from trainplane.kube.clock import Clock


class PathAccess:
    """Lets in who may read a path of ours, as controller-runtime's filter of metrics does.

    Remembered are a token's user and what that user may for 60 s, as there for a token, so a scrape every few seconds
    costs two reviews a minute; and a no of either kind for 10 s.
    """

    def __init__(self, client: Reviewer, clock: Clock) -> None:
        self._tokens = TokenReviewer(client, clock, seconds=60.0)
        self._access = AccessReviews(client, clock, allowed_seconds=60.0, denied_seconds=10.0, most=1024)

    async def check(self, authorization: str, verb: str, path: str) -> User:
        """Return who asks, by the request's header; raises UnauthorizedError or ForbiddenError, else KubeError."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise UnauthorizedError("send a bearer token: Authorization: Bearer TOKEN")
        user = await self._tokens.user_of(token)
        if user is None:
            raise UnauthorizedError("the bearer token is none that this cluster knows, or is over")
        attributes = {"nonResourceAttributes": {"path": path, "verb": verb}}
        refusal = await self._access.refusal(user, attributes)
        if refusal is not None:
            reason = f": {refusal}" if refusal else ""
            raise ForbiddenError(f'user "{user.name}" cannot {verb} path "{path}"{reason}')
        return user
