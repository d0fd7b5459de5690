"""Who may ask the server, and what a browser may do with the answer.

The pages show what the caller may read in the cluster, so nobody else may have them: not another user of this machine,
for whoever asks must know the token; not another page in the caller's browser, for the cookie is SameSite, and no
answer allows another origin; not a name that was made to point here (DNS rebinding), for the Host must be ours.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer."""
TOKEN: Final = "token"  # noqa: S105 a name in the address
_OWN: Final = frozenset({"none", "same-origin"})
"""What a browser says of a request that the person made, or this page."""


@dataclass(frozen=True)
class Guard:
    """Lets in who knows the token, by the address once, then by a cookie."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def address(self) -> str:
        """What a person opens."""
        return f"http://127.0.0.1:{self.port}/?{TOKEN}={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name. Browsers share cookies between ports, so two servers need two."""
        return f"trainplane-{self.port}"

    async def watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request by its handler, if it may be answered at all."""
        refusal = self.refusal(request)
        if refusal:
            return refuse(*refusal)
        if self._enters(request):
            answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": "/"})
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
            return answer
        return await handler(request)

    def refusal(self, request: web.Request) -> tuple[HTTPStatus, str] | None:
        """Return why a request is refused; None if it is not."""
        if request.headers.get("Host") not in {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}:
            return HTTPStatus.FORBIDDEN, "this server answers to 127.0.0.1 alone"
        if request.method not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, "these pages are read-only"
        if self._enters(request):
            return None
        if not self._knows(request.cookies.get(self.cookie)):
            return HTTPStatus.FORBIDDEN, "open the address that `trainplane ui` printed: the token in it is the key"
        if request.headers.get("Sec-Fetch-Site", "none") not in _OWN:
            return HTTPStatus.FORBIDDEN, "another page may not ask"
        return None

    def _enters(self, request: web.Request) -> bool:
        return request.path == "/" and self._knows(request.query.get(TOKEN))

    def _knows(self, token: str | None) -> bool:
        return token is not None and hmac.compare_digest(token.encode(), self.token.encode())


def refuse(status: HTTPStatus, why: str) -> web.Response:
    """Return an answer that says why there is none."""
    return web.Response(status=status, text=f"{status.phrase}: {why}\n", headers=HEADERS)
