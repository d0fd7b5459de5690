"""Pages on this machine's loopback, with the caller's own credentials. Reads only.

Each page is asked of the cluster when a browser asks for it, and nothing is kept: what a person sees is what they may
read now. `guard` decides who is answered.
"""

from __future__ import annotations

import re
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from trainplane.client.errors import NotFoundError, TrainplaneError
from trainplane.client.types.jobs import FINISHED
from trainplane.explain.cleaning import clean
from trainplane.page.asking import ask
from trainplane.page.fleet import fleet_page
from trainplane.page.following import follow
from trainplane.page.guard import HEADERS, Guard, refuse
from trainplane.page.job import job_page
from trainplane.page.jobs import job_address, jobs_page
from trainplane.page.look import MOST_LINES
from trainplane.page.shell import script, served, style_sheet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.page.guard import Handler
    from trainplane.page.markup import Html

MOST_STREAMS: Final = 16
"""Pages that are followed at a time: each holds a stream to every pod of its job."""
REFRESH: Final = 15
"""Seconds after which a list is looked at again."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""What a TrainJob can be called."""


def _now() -> datetime:
    return datetime.now(UTC)


class Pages:
    """What is answered. One for each server."""

    def __init__(self, client: AsyncTrainerClient, namespace: str, now: Callable[[], datetime] = _now) -> None:
        self._client = client
        self._namespace = namespace
        self._now = now
        self._streams = 0

    def routes(self) -> list[web.RouteDef]:
        """Return which address is answered by what."""
        return [
            web.get("/", self.fleet),
            web.get("/jobs", self.jobs),
            web.get("/jobs/{name}", self.job),
            web.get("/jobs/{name}/stream", self.stream, allow_head=False),
            web.get("/style.css", self.style),
            web.get("/script.js", self.script),
        ]

    async def fleet(self, request: web.Request) -> web.Response:
        """Answer with the fleet at a glance."""
        del request
        seen = await self._client.get_overview()
        body = fleet_page(seen, self._now(), namespace=self._namespace)
        return self._page("Fleet", body, place="/", refresh=REFRESH)

    async def jobs(self, request: web.Request) -> web.Response:
        """Answer with the TrainJobs of the namespace."""
        wanted = clean(request.query.get("q", ""), 200)
        listed = await self._client.list_jobs()
        body = jobs_page(listed, self._now(), namespace=self._namespace, wanted=wanted)
        return self._page("TrainJobs", body, place="/jobs", refresh=REFRESH)

    async def job(self, request: web.Request) -> web.Response:
        """Answer with one TrainJob."""
        name = _name(request)
        look = await ask(self._client, name, self._now)
        tail = max(1, MOST_LINES // max(1, len(look.job.steps)))
        stream = "" if look.job.status in FINISHED else f"{job_address(name)}/stream?tail={tail}"
        return self._page(name, job_page(look, following=bool(stream)), stream=stream)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Answer with what happens to a TrainJob, as it happens."""
        name, tail = _name(request), request.query.get("tail", "1")
        if not (tail.isdecimal() and int(tail[:4]) <= MOST_LINES):
            raise web.HTTPNotFound
        if self._streams >= MOST_STREAMS:
            return refuse(HTTPStatus.TOO_MANY_REQUESTS, f"{MOST_STREAMS} pages are followed already: close some")
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        self._streams += 1
        try:
            await answer.prepare(request)
            async with aclosing(follow(self._client, name, tail=int(tail))) as events:
                async for event in events:
                    await answer.write(event)
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._streams -= 1
        return answer

    async def style(self, request: web.Request) -> web.Response:
        """Answer with the style sheet."""
        del request
        return web.Response(text=style_sheet(), content_type="text/css", headers=HEADERS)

    async def script(self, request: web.Request) -> web.Response:
        """Answer with the script."""
        del request
        return web.Response(text=script(), content_type="text/javascript", headers=HEADERS)

    def _page(self, title: str, body: Html, *, place: str = "", refresh: int = 0, stream: str = "") -> web.Response:
        text = served(title, body, self._now(), place=place, refresh=refresh, stream=stream)
        return web.Response(text=text, content_type="text/html", headers=HEADERS)


@asynccontextmanager
async def serving(client: AsyncTrainerClient, namespace: str, port: int = 0) -> AsyncIterator[Guard]:
    """Serve pages on a port of the loopback, a free one if it is 0, while the context lasts; yields its guard.

    Raises:
        OSError: somebody has the port.
    """
    guards: list[Guard] = []

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await guards[0].watch(request, _answered(handler))

    application = web.Application(middlewares=[guarded], client_max_size=1024)
    application.add_routes(Pages(client, namespace).routes())
    # The address has the token in it: no log of requests. A browser that is gone ends what is done for it.
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        guards.append(Guard(runner.addresses[0][1]))
        yield guards[0]
    finally:
        await runner.cleanup()


def _answered(handler: Handler) -> Handler:
    """Return a handler whose failures are told in a line."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            return refuse(HTTPStatus(error.status), "there is no such page")
        except NotFoundError as error:
            return refuse(HTTPStatus.NOT_FOUND, clean(str(error)))
        except TrainplaneError as error:
            return refuse(HTTPStatus.BAD_GATEWAY, clean(str(error)))

    return answer


def _name(request: web.Request) -> str:
    name = request.match_info["name"]
    if not _NAME.fullmatch(name):
        raise web.HTTPNotFound
    return name
