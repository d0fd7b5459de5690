"""Who asks, and may they: the two questions before any answer.

Who: the API server has authenticated the user and says so in headers. It is believed because its client certificate is
signed by the authority that the cluster publishes for this, in ConfigMap extension-apiserver-authentication of
kube-system, and carries a name that is listed there. Nobody else is: a request without that certificate has no user.

May they: the hub's API server is asked by SubjectAccessReview, so its RBAC decides, with `trainjobs/log` of our group
like `pods/log` of the core's. Answers are remembered for seconds, as the API server's own webhooks do.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from trainplane.api import names
from trainplane.kube.access import AccessReviews, User
from trainplane.kube.errors import ConfigError, ForbiddenError, UnauthorizedError
from trainplane.kube.tls import Tls
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.kube.access import Reviewer
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

log = logging.getLogger(__name__)

GROUP: Final = names.HUB_GROUP
VERSION: Final = names.HUB_VERSION
CONFIG_MAP: Final = "extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """Whom the cluster lets speak for users, and in which headers they do."""

    authority: str
    """PEM of the authorities that sign the proxy's client certificate."""
    names: frozenset[str] = frozenset()
    """Common names that the certificate may carry; empty: any, as for Kubernetes."""
    user_headers: tuple[str, ...] = ("X-Remote-User",)
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    uid_headers: tuple[str, ...] = ("X-Remote-Uid",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)


def front_proxy(config_map: Mapping[str, Any]) -> FrontProxy:
    """Return what the ConfigMap says, read as Kubernetes reads it: a list that is absent is empty.

    So nobody is believed about a header that the API server does not list: it passes on what users send in such.

    Raises:
        UnauthorizedError: it names nobody, or not in a way that can be read; then nobody is believed.
    """
    data: Mapping[str, str] = config_map.get("data") or {}
    authority = data.get("requestheader-client-ca-file")
    if not authority:
        raise _unusable(
            "has no requestheader-client-ca-file: start the hub's API server with --requestheader-client-ca-file and "
            "--proxy-client-cert-file"
        )
    if not _is_authority(authority):
        raise _unusable("has a requestheader-client-ca-file that is no certificate in PEM: nobody is believed")
    return FrontProxy(
        authority,
        frozenset(_listed(data, "requestheader-allowed-names")),
        _listed(data, "requestheader-username-headers"),
        _listed(data, "requestheader-group-headers"),
        _listed(data, "requestheader-uid-headers"),
        _listed(data, "requestheader-extra-headers-prefix"),
    )


def _is_authority(text: str) -> bool:
    try:
        Tls(ca=text).context()
    except ConfigError:
        return False
    return text.isascii()


async def load_front_proxy(client: Client) -> FrontProxy:
    """Read the cluster's ConfigMap; raises UnauthorizedError where it names nobody, or cannot be read."""
    return front_proxy(await client.get(CONFIG_MAPS, CONFIG_MAP, "kube-system"))


def _listed(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Return a list, empty if it is absent or null; an empty name in one would be in every certificate and header."""
    try:
        listed = tuple(msgspec.json.decode(data.get(key) or "null", type=list[str] | None) or ())
    except msgspec.MsgspecError:
        listed = ("",)
    if not all(name.strip() for name in listed):
        raise _unusable(f"has a {key} that is no JSON list of names: nobody is believed")
    return listed


def _unusable(problem: str) -> UnauthorizedError:
    return UnauthorizedError(f"ConfigMap kube-system/{CONFIG_MAP} {problem}")


def authenticate(proxy: FrontProxy, certificate: Mapping[str, Any] | None, headers: Sequence[tuple[str, str]]) -> User:
    """Return who asks. `certificate` is the peer's as `ssl` gives it, verified against the proxy's authority.

    Raises:
        UnauthorizedError: it is not the API server that asks, or it names no user.
    """
    if not certificate:
        raise UnauthorizedError("only the API server is answered here: ask it, for example with kubectl get --raw")
    names = {value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"}
    if proxy.names and not names & proxy.names:
        raise UnauthorizedError("the client certificate's common name is none that may speak for users")
    return user_in(proxy, headers)


def user_in(proxy: FrontProxy, headers: Sequence[tuple[str, str]]) -> User:
    """Return the user that somebody who is believed names in headers; raises UnauthorizedError if there is none."""
    user = _first(headers, proxy.user_headers)
    if not user:
        raise UnauthorizedError("the request names no user")
    return User(user, _all(headers, proxy.group_headers), _first(headers, proxy.uid_headers), _extra(proxy, headers))


def _first(headers: Sequence[tuple[str, str]], wanted: Sequence[str]) -> str:
    return next((value for name in wanted for value in _all(headers, (name,)) if value), "")


def _all(headers: Sequence[tuple[str, str]], wanted: Sequence[str]) -> tuple[str, ...]:
    lowered = {name.lower() for name in wanted}
    return tuple(value for name, value in headers if name.lower() in lowered)


def _extra(proxy: FrontProxy, headers: Sequence[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        for prefix in proxy.extra_prefixes:
            if name.lower().startswith(prefix.lower()):
                found.setdefault(unquote(name.lower()[len(prefix) :]), []).append(value)
    return tuple((key, tuple(values)) for key, values in sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Access:
    """What somebody wants to do."""

    verb: str
    namespace: str
    name: str
    subresource: str
    resource: str = "trainjobs"

    def __str__(self) -> str:
        part = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        named = f' "{self.name}"' if self.name else ""
        where = f' in the namespace "{self.namespace}"' if self.namespace else " in all namespaces"
        return f"{self.verb} {part}.{GROUP}{named}{where}"


class Authorizer:
    """Asks the hub's API server what a user may.

    A yes is remembered for 10 s: `kubectl get --raw` in a loop costs one review, and a role that is taken away counts
    within seconds. A no for 2 s.
    """

    def __init__(self, client: Reviewer, clock: Clock, *, most: int = 4096) -> None:
        self._reviews = AccessReviews(client, clock, allowed_seconds=10.0, denied_seconds=2.0, most=most)

    async def check(self, user: User, access: Access) -> None:
        """Return if the user may; raises ForbiddenError."""
        attributes = {
            "group": GROUP,
            "version": VERSION,
            "resource": access.resource,
            "subresource": access.subresource,
            "namespace": access.namespace,
            "name": access.name,
            "verb": access.verb,
        }
        refusal = await self._reviews.refusal(user, {"resourceAttributes": attributes})
        if refusal is not None:
            raise ForbiddenError(f'user "{user.name}" cannot {access}' + (f": {refusal}" if refusal else ""))
