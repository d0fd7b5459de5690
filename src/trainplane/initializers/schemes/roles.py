"""A role of Amazon's that keys assume: ACCESS_KEY_ID and SECRET_ACCESS_KEY with ROLE_ARN.

One request to the token service, signed in its URL (Signature Version 4), so that no redirect can take a header along.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypedDict
from urllib.parse import quote, urlsplit

from trainplane.initializers.errors import DeniedError, ExpiredError, HostileError, InitializerError, InvalidError
from trainplane.initializers.source import PauseError
from trainplane.initializers.web import Web

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_ANSWER: Final = 65_536
_EXPIRES_SECONDS: Final = 300
NOTHING: Final = hashlib.sha256(b"").hexdigest()
"""The digest of an empty body."""


@dataclass(frozen=True)
class Keys:
    """What signs."""

    key: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


class Credential(TypedDict):
    """What the store's library wants to have."""

    access_key_id: str
    secret_access_key: str
    token: str
    expires_at: datetime


def sign(
    url: str, parameters: Mapping[str, str], keys: Keys, scope: tuple[str, str], when: datetime, **how: str
) -> str:
    """Return a URL for a GET that is signed in its query; `scope` is region and service."""
    parts = urlsplit(url)
    day, moment = when.strftime("%Y%m%d"), when.strftime("%Y%m%dT%H%M%SZ")
    place = f"{day}/{scope[0]}/{scope[1]}/aws4_request"
    query = {
        **parameters,
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{keys.key}/{place}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": how.get("expires", str(_EXPIRES_SECONDS)),
        "X-Amz-SignedHeaders": "host",
    }
    if keys.token:
        query["X-Amz-Security-Token"] = keys.token
    encoded = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(query.items())
    )
    path = parts.path or "/"
    request = f"GET\n{path}\n{encoded}\nhost:{parts.netloc}\n\nhost\n{how.get('payload', NOTHING)}"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{place}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{keys.secret}".encode()
    for step in (day, *scope, "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return f"{parts.scheme}://{parts.netloc}{path}?{encoded}&X-Amz-Signature={signature}"


class AssumedRole:
    """Asks the token service for credentials of a role whenever the store's library wants fresh ones."""

    def __init__(self, keys: Keys, role: str, region: str, endpoint: str, learn: Callable[[str], None]) -> None:
        self._keys = keys
        self._role = role
        self._region = region
        self._endpoint = endpoint or f"https://sts.{region}.amazonaws.com"
        self._learn = learn
        self.failure: InitializerError | PauseError | None = None
        """Why the last time failed: the store's library keeps only words of an error."""

    async def __call__(self) -> Credential:
        """Return credentials of the role."""
        self.failure = None
        try:
            return await self._ask()
        except (InitializerError, PauseError) as error:
            self.failure = error
            raise

    async def _ask(self) -> Credential:
        parameters = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": self._role,
            "RoleSessionName": "trainplane-initializer",
        }
        url = sign(self._endpoint, parameters, self._keys, (self._region, "sts"), datetime.now(UTC))
        web = Web()
        try:
            async with web.get(url, {}) as response:
                answer = (await response.content.read(_MAX_ANSWER)).decode(errors="replace")
        except ExpiredError:
            raise
        except (DeniedError, InvalidError) as error:
            raise DeniedError(
                f"these keys may not assume the role {self._role[:200]}: {error}", "check ROLE_ARN and the role's trust"
            ) from None
        finally:
            await web.close()
        return self._read(answer)

    def _read(self, answer: str) -> Credential:
        found = {}
        for name in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"):
            match = re.search(rf"<{name}>([^<]{{1,4096}})</{name}>", answer)
            if match is None:
                raise HostileError(f"the token service answers without {name}")
            found[name] = match[1].strip()
        for name in ("SecretAccessKey", "SessionToken"):
            self._learn(found[name])
        try:
            expires = datetime.fromisoformat(found["Expiration"])
        except ValueError:
            raise HostileError("the token service answers with a time that is none") from None
        return Credential(
            access_key_id=found["AccessKeyId"],
            secret_access_key=found["SecretAccessKey"],
            token=found["SessionToken"],
            expires_at=expires if expires.tzinfo else expires.replace(tzinfo=UTC),
        )
