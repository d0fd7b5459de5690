"""The server that the API server's aggregation layer calls: TLS with client certificates, failures as Status."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import msgspec
from aiohttp import web

from trainplane.hub.apiserver.delegated_auth import authenticate, load_front_proxy
from trainplane.hub.apiserver.status import status_of
from trainplane.hub.errors import FrontProxyChangedError, HubError
from trainplane.kube.errors import KubeError
from trainplane.kube.listener import Listener, path_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.hub.apiserver.delegated_auth import FrontProxy
    from trainplane.hub.apiserver.fronts import Fronts
    from trainplane.kube.access import User
    from trainplane.kube.certificates import ServingContext
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.listener import ListenerSettings

log = logging.getLogger(__name__)

PROXY_SECONDS: Final = 30.0
"""Seconds between looks at who may speak for users."""
_HEALTH: Final = frozenset({"/healthz", "/livez", "/readyz"})


class Answers(Protocol):
    """What answers authenticated requests: `api.Api`."""

    async def answer(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        """Answer; what it raises is answered as a Status."""


class Server:
    """Serves an `Api` to the API server. Start and stop it through its `listener`.

    Args:
        api: answers.
        proxy: who may speak for users.
        settings: where to listen.
        tls: the serving context; client certificates are asked for and verified against the proxy's authority.
        ready: says what is not ready yet, None when all is.
        fronts: which replicas of ours may speak for users, too; None: none.
        answered: hears of each answer: the request's method and path, and the code.
    """

    def __init__(
        self,
        api: Answers,
        proxy: FrontProxy,
        settings: ListenerSettings,
        *,
        tls: ServingContext,
        ready: Callable[[], str | None],
        fronts: Fronts | None = None,
        answered: Callable[[str, str, int], None] = lambda *_: None,
    ) -> None:
        self.proxy = proxy
        """Replaced as the cluster's ConfigMap changes; another authority needs another server."""
        self._api = api
        self._ready = ready
        self._fronts = fronts
        self._answered = answered
        # Optional, so that a probe without a certificate gets an answer, and a stranger one that says why not.
        tls.verify_clients(proxy.authority)
        self.listener = Listener(self._serve, settings, tls=tls.context)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        path = path_of(request)
        if path in _HEALTH:
            problem = self._ready() if path == "/readyz" else None
            return web.Response(status=503 if problem else 200, text=problem or "ok")
        answer = await self._answer(request, path)
        self._answered(request.method, path, answer.status)
        return answer

    async def _answer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        try:
            return await self._api.answer(request, await self._who(request))
        except (KubeError, HubError) as error:
            return _failure(error)
        except ConnectionError:
            raise  # the reader left: there is nobody to tell
        except Exception as error:  # the boundary: any bug must still become an answer
            log.exception("request failed", extra={"path": path})
            return _failure(error)

    async def _who(self, request: web.BaseRequest) -> User:
        certificate, headers = _certificate(request), list(request.headers.items())
        if certificate is None and self._fronts is not None:
            return await self._fronts.authenticate(headers)
        return authenticate(self.proxy, certificate, headers)


async def follow_front_proxy(client: Client, server: Server, clock: Clock) -> NoReturn:
    """Take over what changes about who may speak for users.

    A context cannot forget an authority, so a new one ends the process: the next one trusts it alone, and goes on where
    this one was.
    """
    while True:
        await clock.sleep(PROXY_SECONDS)
        try:
            found = await load_front_proxy(client)
        except KubeError as error:
            log.warning("front proxy's ConfigMap cannot be read", extra={"error": str(error)})
            continue
        if found.authority != server.proxy.authority:
            raise FrontProxyChangedError("the cluster's front-proxy authority was replaced: start again to trust it")
        server.proxy = found


def _certificate(request: web.BaseRequest) -> dict[str, Any] | None:
    return None if request.transport is None else request.transport.get_extra_info("peercert")


def _failure(error: Exception) -> web.Response:
    status = status_of(error)
    return web.Response(body=msgspec.json.encode(status), status=status["code"], content_type="application/json")
