"""Headers of the front proxy, and the ConfigMap that says whom to believe: a User or an UnauthorizedError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from tests.security.fuzz.mutations import Mutator, encode
from tests.security.fuzz.pems import CERTIFICATE
from tests.security.fuzz.target import BrokenPromiseError, Target
from trainplane.hub.apiserver.delegated_auth import FrontProxy, authenticate, front_proxy
from trainplane.kube.errors import UnauthorizedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

Tree = dict[str, Any]

_SEED: Final[Tree] = {
    "data": {
        "requestheader-client-ca-file": CERTIFICATE,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    },
    "names": ["front-proxy-client"],
    "headers": [
        ["X-Remote-User", "somebody"],
        ["X-Remote-Group", "a"],
        ["X-Remote-Group", "b"],
        ["X-Remote-Extra-Scopes%2fa", "x"],
        ["Host", "hub"],
    ],
}


class FrontProxies(Target):
    """Who asks, as headers and a certificate say."""

    name: ClassVar[str] = "front-proxies"
    cases: ClassVar[int] = 60_000

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        case = msgspec.json.decode(msgspec.json.encode(_SEED))
        if mutator.chance(0.3):
            case["names"] = mutator.pick(([], ["mallory"], ["mallory", "front-proxy-client"], ["Front-Proxy-Client"]))
        return encode(mutator.tree(case, mutator.few(5)))

    def run(self, data: bytes) -> str:
        try:
            case = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no case"
        if not isinstance(case, dict):
            return "no case"
        # What the API server stores in a ConfigMap, and HTTP in headers, are texts; a certificate is read by OpenSSL.
        stored = case.get("data")
        stored = {str(k): v for k, v in stored.items() if isinstance(v, str)} if isinstance(stored, dict) else None
        names = [name for name in _listed(case.get("names")) if isinstance(name, str)]
        headers = [
            (header[0], header[1])
            for header in _listed(case.get("headers"))
            if isinstance(header, list) and len(header) > 1 and all(isinstance(part, str) for part in header)
        ]
        try:
            proxy = front_proxy({"data": stored})
            subject = tuple((("commonName", name),) for name in names)
            user = authenticate(proxy, {"subject": subject} if names else None, headers)
        except UnauthorizedError:
            return "refused"
        self._check(proxy, stored or {}, names)
        if not user.name:
            raise BrokenPromiseError("a user without a name")
        return "believed"

    def _check(self, proxy: FrontProxy, stored: dict[str, str], names: list[str]) -> None:
        """Raise if somebody is believed whom the cluster does not name, or cannot be understood to name."""
        text = stored.get("requestheader-allowed-names")
        try:
            allowed = msgspec.json.decode(text or "null", type=list[str] | None)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise BrokenPromiseError("names that cannot be read let anybody in") from None
        if not names or (allowed and not set(names) & set(allowed)):
            raise BrokenPromiseError(f"{names} is believed, {allowed} may speak for users, {proxy.names} is held")

    def seeds(self) -> Iterable[bytes]:
        """Return the good case."""
        return (msgspec.json.encode(_SEED),)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
