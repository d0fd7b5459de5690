"""Who reports: a pod of the very TrainJob, or nobody.

    token      signed by this cluster, not over, meant for this TrainJob's status       TokenReview
    namespace  of the TrainJob                                                          the account's name
    pod        that the token is bound to, by name and uid, and that is still there     TokenReview
    TrainJob   the pod is of the JobSet that this TrainJob controls                     the mirror of pods, by uid

401 says that the token counts for nothing here, 403 that it is a good one of somebody else. A cluster's tokens carry
their audience, pod and end in the clear, so what is no token, is over or names nothing is refused before anybody is
asked; what is left costs the API server one TokenReview a minute for each pod.

**What a tenant can forge.** Not a token: the API server signs it, for a pod that exists and that uses the account. Who
may create pods in the namespace can create one with the labels of another TrainJob's pods and a token for its
audience, and so report for that TrainJob; as they could delete its pods. Who has a token of one TrainJob, a token that
is bound to no pod (`kubectl create token`), or a pod of another namespace, cannot.

A token that is taken to another place counts until its pod is gone from the mirror.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.kube.errors import TooManyRequestsError
from trainplane.kube.resource import Key
from trainplane.kube.tokenreview import LONGEST, Guesses, TokenReviewer
from trainplane.operator.progress.refusal import RefusalError
from trainplane.operator.stores import Meta

if TYPE_CHECKING:
    from trainplane.kube.access import Reviewer, User
    from trainplane.kube.clock import Clock
    from trainplane.kube.store import Store

REMEMBERED_SECONDS: Final = 60.0
"""Seconds for which a good token is good: 2,000 jobs cost 33 reviews a second."""
AT_ONCE: Final = 16
"""Tokens that are asked about at once: after a start, all of them are new; fewer than may be wrong from one address."""
MOST: Final = 16384
"""Tokens that are remembered at once."""

_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_ACCOUNT: Final = "system:serviceaccount:"


class Claims(msgspec.Struct, frozen=True):
    """What a token says of itself, which counts for nothing until the API server has judged it."""

    aud: list[str] | str = []
    exp: float = 0.0

    @property
    def audiences(self) -> list[str]:
        """Whom the token says it is meant for."""
        return [self.aud] if isinstance(self.aud, str) else self.aud


class _Pod(msgspec.Struct, frozen=True):
    """The little of a pod that says whose it is."""

    metadata: Meta = Meta()


class Callers:
    """Judges who may report the progress of a TrainJob."""

    def __init__(self, client: Reviewer, pods: Store, clock: Clock) -> None:
        self._pods = pods
        self._clock = clock
        self._tokens = TokenReviewer(
            client, clock, seconds=REMEMBERED_SECONDS, most=MOST, at_once=AT_ONCE, guesses=Guesses(clock)
        )

    async def identify(self, authorization: str, job: Key, source: str) -> User:
        """Return whose token it is that a request for a TrainJob's status carries, if it is meant for that.

        Raises:
            RefusalError: 401, there is no token or none that counts; 403, it is for something else; 429, many from
                there were wrong of late.
            KubeError: the API server cannot say.
        """
        token = _bearer(authorization)
        claims = read_claims(token)
        if claims is None or claims.exp <= self._clock.now().timestamp() or not claims.audiences:
            raise RefusalError(401, "the bearer token is none of this cluster's, or is over: read its file again")
        audience = names.status_audience(job.namespace, job.name)
        meant = audience in claims.audiences
        try:
            user = await self._tokens.user_of(token, (audience if meant else claims.audiences[0],), source=source)
        except TooManyRequestsError as error:
            raise RefusalError(429, error.message, retry_after=error.retry_after) from error
        if user is None:
            raise RefusalError(401, "the bearer token is none that this cluster knows, or its pod is gone")
        if not meant:
            raise RefusalError(403, f"the bearer token is not for this TrainJob: its audience must be {audience}")
        if user.name.removeprefix(_ACCOUNT).partition(":")[0] != job.namespace:
            raise RefusalError(403, f"the bearer token is of an account that is not in namespace {job.namespace}")
        return user

    def check_member(self, user: User, job: Key, jobset_uid: str) -> str:
        """Return the name of a token's pod, which must be one of a JobSet; raises RefusalError."""
        extra = dict(user.extra)
        pod, uid = (extra.get(name, ("",))[0] for name in (_POD_NAME, _POD_UID))
        if not pod or not uid:
            raise RefusalError(403, "the bearer token is bound to no pod: only a TrainJob's pods report its progress")
        if not jobset_uid:
            raise RefusalError(403, f"TrainJob {job} has no pods: its JobSet is not there")
        seen = self._pods.decode(Key(job.namespace, pod), _Pod)
        if seen is None or seen.metadata.uid != uid or seen.metadata.labels.get(names.LABEL_JOBSET_UID) != jobset_uid:
            raise RefusalError(403, f"pod {pod} is none of TrainJob {job}: only its own pods report its progress")
        return pod


def _bearer(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token.split()) != 1:
        raise RefusalError(401, "send a bearer token: Authorization: Bearer TOKEN")
    return token


def read_claims(token: str) -> Claims | None:
    """Return what a token says of itself; None if it is none."""
    parts = token.split(".")
    if len(token) > LONGEST or len(parts) != 3 or not all(parts):
        return None
    payload = parts[1]
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=Claims)
    except (ValueError, RecursionError):
        return None
