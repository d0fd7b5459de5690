"""The front: replicas without state that the API server calls, before the one server that owns the volume.

While an aggregated API cannot be discovered, Kubernetes finishes no deletion of a namespace anywhere in the cluster
(NamespaceDeletionDiscoveryFailure), because nobody can say what is left in it. A server with a volume of its own is
away at every upgrade. So discovery is answered here, by two replicas on different nodes that need nothing but a
certificate; what needs logs or lists is handed on, and answered 503 while the owner of the volume is away. A namespace
waits for neither: the view has nothing in it that could be deleted.

A front tells the owner who asks in the headers that it was told, and proves who it is itself by the token of its
service account, which the owner has reviewed (`fronts`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import aiohttp
import msgspec
from aiohttp import web

from trainplane.hub.apiserver.discovery import documents
from trainplane.hub.kinds import TRAIN_JOB
from trainplane.kube.errors import NotFoundError, UnavailableError
from trainplane.kube.listener import path_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

    from trainplane.hub.kinds import JobKind
    from trainplane.kube.access import User

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 5.0
"""Seconds within which the owner must take a connection: it is in the same cluster."""
ANSWER_SECONDS: Final = 45.0
"""Seconds within which the owner must begin to answer: under the API server's own 60."""
RETRY_AFTER: Final = 5
"""Seconds after which to ask again: about as long as the owner takes to start."""
_PASSED_BACK: Final = ("Content-Type", "Warning", "Retry-After")
_CHUNK: Final = 64 << 10


class Front:
    """Answers discovery itself and hands everything else to the owner of the volume. `close` it in the end.

    Args:
        owner: URL of the owner, without a path.
        trust: gives the TLS context to reach it by; asked at each connection, for certificates are renewed.
        token: gives the token of this replica's service account.
        kinds: the kinds of jobs that the owner looks after.
    """

    def __init__(
        self,
        owner: str,
        trust: Callable[[], ssl.SSLContext],
        token: Callable[[], str],
        kinds: Iterable[JobKind] = (TRAIN_JOB,),
    ) -> None:
        self._owner = owner.rstrip("/")
        self._trust = trust
        self._token = token
        self._documents = documents(kinds)
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        """Answer a request of a user; raises UnavailableError while the owner is away."""
        path = path_of(request)
        document = self._documents.get(path.rstrip("/") or "/")
        if document is not None:
            return web.Response(body=msgspec.json.encode(document), content_type="application/json")
        if not path.startswith("/apis/"):
            raise NotFoundError("the server could not find the requested resource")
        try:
            answer = await self._ask(request, user)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.info("owner cannot be reached", extra={"error": type(error).__name__})
            raise UnavailableError(
                "the hub server that has the logs is away for the moment (a restart or an upgrade takes seconds): ask "
                "again",
                code=503,
                retry_after=RETRY_AFTER,
            ) from error
        async with answer:
            return await self._pass_back(request, answer)

    async def close(self) -> None:
        """Close connections to the owner."""
        if self._session is not None:
            await self._session.close()

    async def _ask(self, request: web.BaseRequest, user: User) -> aiohttp.ClientResponse:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False)
        headers = [("Authorization", f"Bearer {self._token()}"), *identity(user)]
        headers += [(name, value) for name in ("Accept",) if (value := request.headers.get(name))]
        async with asyncio.timeout(ANSWER_SECONDS):
            return await self._session.request(
                request.method, f"{self._owner}{request.raw_path}", headers=headers, ssl=self._trust()
            )

    async def _pass_back(self, request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """Copy the answer as it comes; one that breaks off breaks off here, too, and is not taken for whole."""
        response = web.StreamResponse(status=answer.status)
        for name in _PASSED_BACK:
            for value in answer.headers.getall(name, ()):
                response.headers.add(name, value)
        await response.prepare(request)
        try:
            async for chunk in answer.content.iter_chunked(_CHUNK):
                await response.write(chunk)
        except (aiohttp.ClientError, TimeoutError) as error:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("the owner's answer broke off") from error
        await response.write_eof()
        return response


def identity(user: User) -> list[tuple[str, str]]:
    """Return the headers that say who asks, by the names that the API server uses itself."""
    headers = [("X-Remote-User", user.name)]
    headers += [("X-Remote-Uid", user.uid)] if user.uid else []
    headers += [("X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra:
        headers += [(f"X-Remote-Extra-{quote(key, safe='')}", value) for value in values]
    return headers
