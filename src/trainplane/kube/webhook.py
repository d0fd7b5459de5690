"""The webhook server: AdmissionReview v1 in, verdict out; and ConversionReview v1 in, the same with its answer out.

    server = WebhookServer({"/validate-trainjob": validate}, ListenerSettings(9443), tls=context)
    async with server.listener: ...

A handler is a function, plain or async, of `AdmissionRequest` that returns a `Verdict`. Whatever goes wrong inside it
becomes a well-formed denial, since an API server that gets no verdict can tell the user only that the webhook failed.
A conversion is a plain function from review to answered review; its failure, too, is answered in words.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from aiohttp import web

from trainplane.kube.admission import AdmissionRequest, AdmissionReview, Verdict, deny, encode_answer
from trainplane.kube.errors import DecodeError
from trainplane.kube.listener import Listener, ListenerSettings, body_of, path_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping

    Review = Callable[[AdmissionRequest], Verdict | Awaitable[Verdict]]
    Conversion = Callable[[Any], dict[str, Any]]
    Answering = Callable[[web.BaseRequest], Awaitable[web.Response]]

log = logging.getLogger(__name__)

HANDLER_SECONDS = 9.0
"""Limit for an async handler: just under the 10 seconds after which an API server stops waiting by default."""

CALM_SECONDS = 0.02
"""Seconds without a review after which no more are on their way: clients that create one after the other ask sooner."""
CALM_LOOKS = 10
"""How often `calm` looks whether another came, so that nobody stops our work by asking for ever."""

_JSON = {"Content-Type": "application/json"}

_UID = re.compile(rb'"request":\s*\{\s*"uid":\s*"([-0-9A-Za-z]{1,128})"')
_UID_WITHIN = 1024
"""Bytes of a review within which an API server has written its uid."""

_decoder = msgspec.json.Decoder(AdmissionReview)


class WebhookObserver(Protocol):
    """Hears of reviews; `metrics.WebhookMetrics` counts them."""

    def started(self, path: str) -> None:
        """A request for a known path came in."""

    def finished(self, path: str, code: int, seconds: float) -> None:
        """It was answered with this HTTP code."""


class WebhookServer:
    """Answers reviews by path. Start and stop it through its `listener`.

    Args:
        routes: path to handler; the path is what the webhook configuration's clientConfig names.
        settings: where to listen; `body_limit` bounds a review.
        tls: the serving context; None serves plain HTTP, which only a test or a proxy in the same pod can use.
        conversions: path to conversion, as a CRD's clientConfig names it.
        observer: told of each review.
        handler_seconds: limit for one run of an async handler.
    """

    def __init__(
        self,
        routes: Mapping[str, Review],
        settings: ListenerSettings,
        *,
        conversions: Mapping[str, Conversion] | None = None,
        tls: ssl.SSLContext | None = None,
        observer: WebhookObserver | None = None,
        handler_seconds: float = HANDLER_SECONDS,
    ) -> None:
        self._routes: dict[str, Answering] = {path: partial(self._answer, review) for path, review in routes.items()}
        for path, conversion in (conversions or {}).items():
            self._routes[path] = partial(self._convert, conversion)
        self._limit = settings.body_limit
        self._observer = observer
        self._handler_seconds = handler_seconds
        self._asked_at = float("-inf")
        self._calmed: asyncio.Event | None = None
        self.listener = Listener(self._serve, settings, tls=tls)

    async def calm(self) -> None:
        """Return when no review came for a moment, or after a while: a person waits for a review, and nobody for us."""
        calmed = self._calmed
        if calmed is None:
            calmed = self._calmed = asyncio.Event()
            self._look_for_calm(calmed, CALM_LOOKS)
        await calmed.wait()

    def _look_for_calm(self, calmed: asyncio.Event, looks: int) -> None:
        """Look once for all who wait: 32 workers with a timer each would wake the loop 1,600 times a second."""
        left = self._asked_at + CALM_SECONDS - time.monotonic() if looks else 0.0
        if left <= 0:
            self._calmed = None
            calmed.set()
            return
        asyncio.get_running_loop().call_later(left, self._look_for_calm, calmed, looks - 1)

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        path = path_of(request)
        self._asked_at = time.monotonic()
        answering = self._routes.get(path)
        if answering is None:
            return web.Response(status=404, text=f"no webhook at {path}\n")
        if request.method != "POST":
            return web.Response(status=405, text="a review is sent with POST\n", headers={"Allow": "POST"})
        observer = self._observer
        if observer is None:
            return await answering(request)
        observer.started(path)
        began = time.perf_counter()
        code = 500
        try:
            response = await answering(request)
            code = response.status
        finally:
            observer.finished(path, code, time.perf_counter() - began)
        return response

    async def _answer(self, review: Review, request: web.BaseRequest) -> web.Response:
        body = b""
        try:
            body = await body_of(request, self._limit)
            question = _decoder.decode(body).request
        except RecursionError:
            return _answer_unread(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return web.Response(status=400, text=f"this is no AdmissionReview of admission.k8s.io/v1: {error}\n")
        except web.HTTPRequestEntityTooLarge:
            return self._too_large()
        verdict = await self._judge(review, question)
        return web.Response(body=encode_answer(question.uid, verdict), headers=_JSON)

    async def _convert(self, conversion: Conversion, request: web.BaseRequest) -> web.Response:
        try:
            review = msgspec.json.decode(await body_of(request, self._limit))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return web.Response(status=400, text=f"this is no ConversionReview of apiextensions.k8s.io/v1: {error}\n")
        except web.HTTPRequestEntityTooLarge:
            return self._too_large()
        try:
            answer = conversion(review)
        except Exception as error:  # the boundary: any bug must still become an answer
            log.exception("conversion failed")
            answer = _unconverted(review, error)
        return web.Response(body=msgspec.json.encode(answer), headers=_JSON)

    def _too_large(self) -> web.Response:
        text = f"a review of more than {self._limit} bytes is not read\n"
        return web.Response(status=413, text=text, headers={"Connection": "close"})

    async def _judge(self, review: Review, question: AdmissionRequest) -> Verdict:
        try:
            verdict = review(question)
            if inspect.isawaitable(verdict):
                async with asyncio.timeout(self._handler_seconds):
                    return await verdict
        except DecodeError as error:
            return deny(f"{question.kind.kind} {question.name!r} cannot be read: {error}", code=422)
        except RecursionError:
            return _too_deep(question.kind.kind, question.name)
        except TimeoutError:
            log.exception("admission handler timed out", extra=_keys(question))
            return _our_fault(question, 504, f"took longer than {self._handler_seconds:g} s")
        except Exception as error:  # the boundary: any bug must still become a verdict
            log.exception("admission handler failed", extra=_keys(question))
            return _our_fault(question, 500, f"failed ({type(error).__name__})")
        return verdict


def _answer_unread(body: bytes) -> web.Response:
    """Answer a review whose object is nested too deep to be skipped even. Its uid stands before the object."""
    uid = _UID.search(body, 0, _UID_WITHIN)
    if uid is None:
        return web.Response(status=400, text="this AdmissionReview is nested too deep to be read\n")
    return web.Response(body=encode_answer(uid[1].decode(), _too_deep("object", "")), headers=_JSON)


def _unconverted(review: Any, error: Exception) -> dict[str, Any]:
    """Return the answer to a review that the conversion itself broke at: a fault of ours, said as such."""
    request = review.get("request") if isinstance(review, dict) else None
    uid = request.get("uid") if isinstance(request, dict) else None
    message = f"the conversion webhook itself failed ({type(error).__name__}): its log has the details"
    response = {"uid": uid or "", "result": {"status": "Failure", "message": message}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}


def _too_deep(kind: str, name: str) -> Verdict:
    named = f"{kind} {name!r}" if name else f"this {kind}"
    return deny(f"{named} is nested too deep to be read: no field of it is nested so", code=422)


def _our_fault(question: AdmissionRequest, code: int, what: str) -> Verdict:
    return deny(
        f"the admission webhook itself {what} while looking at {question.kind.kind} {question.name!r}: this is a fault "
        f"of the webhook and not of the object; its log has the details under review {question.uid}",
        code=code,
    )


def _keys(question: AdmissionRequest) -> dict[str, str]:
    return {
        "review": question.uid,
        "kind": question.kind.kind,
        "namespace": question.namespace,
        "object": question.name,
        "operation": question.operation,
    }
