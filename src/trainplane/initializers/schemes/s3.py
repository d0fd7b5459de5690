"""`s3://bucket/path`: Amazon's store and all that speak like it (ENDPOINT).

Keys come as ACCESS_KEY_ID and SECRET_ACCESS_KEY (SESSION_TOKEN) or under their AWS_ names; without them from the pod's
workload identity (IRSA, pod identity, the machine's role), with ANONYMOUS=true from nowhere.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import obstore
from obstore import exceptions
from obstore.store import S3Store

from trainplane.initializers.errors import InvalidError
from trainplane.initializers.schemes.objects import Bucket, given, place, settings
from trainplane.initializers.schemes.uploads import Upload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.initializers.destination import Destination
    from trainplane.initializers.errors import InitializerError
    from trainplane.initializers.request import Request
    from trainplane.initializers.schemes.roles import AssumedRole
    from trainplane.initializers.source import File, PauseError, Source
    from trainplane.initializers.web import Web

T = TypeVar("T")

_MD5: Final = re.compile(r'"?([0-9a-f]{32})"?')
_TOKENS: Final = {"AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"}
"""Variables by which the library finds credentials that have a session token."""
_ENCRYPTION: Final = "x-amz-server-side-encryption"


class S3Bucket(Bucket):
    """A bucket whose ETags are MD5s, mostly."""

    role: AssumedRole | None = None

    guarded = False
    """A token is sent to an endpoint that somebody named."""

    async def open(self) -> None:
        """Refuse an endpoint that redirects elsewhere: the library would follow with the session token in a header.

        The question carries the token in its signed URL, which a redirect does not take along.
        """
        if not self.guarded:
            return
        try:
            elsewhere = await self._asked(lambda web, url: web.redirect(url), self.prefix or "-")
        except (exceptions.BaseError, OSError) as error:
            raise self.translate(error) from None
        if elsewhere:
            raise InvalidError(
                f"ENDPOINT redirects to {elsewhere}, and a session token is not sent there", "name that as ENDPOINT"
            )
        self.guarded = False

    def failure(self) -> InitializerError | PauseError | None:
        """Return why the role could not be assumed."""
        return None if self.role is None else self.role.failure

    def checksum(self, etag: str) -> tuple[str, str]:
        """Return the MD5 that the ETag of an object is that was sent in one piece."""
        match = _MD5.fullmatch(etag)
        return ("md5", match[1]) if match else ("", "")

    async def verdict(self, file: File, digest: str) -> bool:
        """Excuse an object that the store encrypts with keys of its own: its ETag is no MD5."""
        del digest

        async def ask(web: Web, url: str) -> bool:
            async with web.get(url, {"Range": "bytes=0-0"}) as response:
                return response.headers.get(_ENCRYPTION, "AES256") != "AES256"

        return await self._asked(ask, file.key)

    async def _asked(self, question: Callable[[Web, str], Awaitable[T]], key: str) -> T:
        """Ask something with a signed URL."""
        url = await obstore.sign_async(self.store, "GET", key, timedelta(minutes=5))  # type: ignore[call-overload]
        from trainplane.initializers.web import Web  # noqa: PLC0415 its library is slow to load, and few need it

        web = Web()
        try:
            return await question(web, url)
        finally:
            await web.close()


def _bucket(request: Request) -> S3Bucket:
    """Return what a URI names, with the credentials of the environment."""
    bucket, prefix = place(request)
    env = request.env
    config: dict[str, Any] = given(
        env,
        access_key_id="ACCESS_KEY_ID",
        secret_access_key="SECRET_ACCESS_KEY",  # noqa: S106 a variable's name
        session_token="SESSION_TOKEN",  # noqa: S106 a variable's name
        endpoint="ENDPOINT",
    )
    config["region"] = env.get("REGION") or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
    if ("access_key_id" in config) != ("secret_access_key" in config):
        raise InvalidError("of ACCESS_KEY_ID and SECRET_ACCESS_KEY one is set and the other is not")
    role = _assumed(request, config)
    if role is not None:
        for name in ("access_key_id", "secret_access_key", "session_token"):
            config.pop(name, None)
    provider: Any = role
    store = S3Store(bucket, **settings(request, config), credential_provider=provider)
    named = S3Bucket(store, f"s3://{bucket}", prefix)
    named.role = role
    named.guarded = "ENDPOINT" in env and ("session_token" in config or role is not None or bool(_TOKENS & env.keys()))
    return named


def open_source(request: Request) -> Source:
    """Return what is read."""
    return _bucket(request)


def open_destination(request: Request) -> Destination:
    """Return what is written to."""
    return Upload(_bucket(request), request.limits.parallel)


def _assumed(request: Request, config: dict[str, Any]) -> AssumedRole | None:
    """Return the role that keys assume; one that the pod's web identity assumes is the library's own business."""
    env = request.env
    role = env.get("ROLE_ARN")
    if role is None:
        return None
    if "AWS_WEB_IDENTITY_TOKEN_FILE" in env and "access_key_id" not in config:
        config["role_arn"] = role
        return None
    if "access_key_id" not in config:
        raise InvalidError(
            "ROLE_ARN is set, and there is nothing to assume the role with: no keys, and no web identity of the pod",
            "give ACCESS_KEY_ID and SECRET_ACCESS_KEY, or bind the role to the step's service account",
        )
    from trainplane.initializers.schemes.roles import AssumedRole, Keys  # noqa: PLC0415 as above

    keys = Keys(config["access_key_id"], config["secret_access_key"], config.get("session_token", ""))
    return AssumedRole(keys, role, config["region"], env.get("AWS_ENDPOINT_URL_STS", ""), request.learn)
