"""Pages as a browser asks for them, before a fake API server: who is answered, and with what."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
import pytest
from yarl import URL

from tests.unit.client.kubernetes.stage import PATIENCE, Stage
from tests.unit.client.reading.documents import condition, ended, runtime
from tests.unit.page.hostile import dangers
from trainplane.client.aio import AsyncTrainerClient
from trainplane.kube.testing.server import FakeServer
from trainplane.page import server as pages
from trainplane.page.following import follow, frame
from trainplane.page.guard import HEADERS, Guard
from trainplane.page.server import serving
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, EVENTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class Visit:
    """A server of pages, and somebody who asks it."""

    stage: Stage
    guard: Guard
    session: aiohttp.ClientSession

    async def get(self, path: str, *, enter: bool = True, **headers: str) -> tuple[int, str]:
        if enter:
            headers.setdefault("Cookie", f"{self.guard.cookie}={self.guard.token}")
        return await self.ask("GET", path, **headers)

    async def ask(self, method: str, path: str, **headers: str) -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        address = URL(f"http://127.0.0.1:{self.guard.port}{path}", encoded=True)  # sent as it is, dots and all
        async with self.session.request(method, address, headers=named, allow_redirects=False) as answer:
            for name, value in HEADERS.items():
                assert answer.headers[name] == value
            assert "Access-Control-Allow-Origin" not in answer.headers
            return answer.status, await answer.text()


@asynccontextmanager
async def visiting() -> AsyncIterator[Visit]:
    async with FakeServer() as server, server.client() as client:
        stage = Stage(server, client)
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, runtime())
        async with (
            serving(AsyncTrainerClient(backend=stage.backend), "team") as guard,
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        ):
            yield Visit(stage, guard, session)


@pytest.fixture
async def visit() -> AsyncIterator[Visit]:
    async with visiting() as one:
        yield one


async def test_the_address_lets_in_once_and_the_cookie_from_then_on(visit: Visit) -> None:
    async with visit.session.get(visit.guard.address, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        said = answer.headers["Set-Cookie"]
    assert "HttpOnly" in said
    assert "SameSite=Strict" in said
    assert visit.guard.token not in answer.headers["Location"]
    status, text = await visit.get("/jobs", enter=False, Cookie=said.partition(";")[0])
    assert status == 200
    assert "TrainJobs" in text


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/a", "/jobs/a/stream", "/style.css", "/script.js", "/nothing"])
async def test_nobody_is_answered_without_the_token(visit: Visit, path: str) -> None:
    visit.stage.job()
    wrong = visit.guard.token[:-1] + ("A" if visit.guard.token[-1] != "A" else "B")
    for cookie in ("", f"{visit.guard.cookie}={wrong}", f"{visit.guard.cookie}=", f"other={visit.guard.token}"):
        assert (await visit.get(path, enter=False, Cookie=cookie))[0] == 403
    assert (await visit.get(f"{path}?token={wrong}", enter=False))[0] == 403
    assert (await visit.get(f"{path}?token=%00%ff", enter=False))[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""])
async def test_a_name_that_was_made_to_point_here_gets_nothing(visit: Visit, host: str) -> None:
    status, text = await visit.get("/jobs", Host=host)
    assert status in {400, 403}
    assert "<table" not in text


async def test_localhost_is_this_machine_too(visit: Visit) -> None:
    assert (await visit.get("/jobs", Host=f"localhost:{visit.guard.port}"))[0] == 200


async def test_another_page_in_the_same_browser_gets_nothing(visit: Visit) -> None:
    for site in ("cross-site", "same-site"):
        assert (await visit.get("/jobs", Sec_Fetch_Site=site, Origin="http://evil.example"))[0] == 403
    assert (await visit.get("/jobs", Sec_Fetch_Site="same-origin"))[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_pages_are_read_only(visit: Visit, method: str) -> None:
    cookie = f"{visit.guard.cookie}={visit.guard.token}"
    assert (await visit.ask(method, "/jobs", Cookie=cookie))[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/..%2f..%2fapi%2fv1%2fsecrets",
        "/jobs/a%2f..%2fb",
        "/jobs/%2e%2e",
        "/jobs/A",
        "/jobs/a%00",
        "/jobs/a%0d%0aX:%20y",
        "/jobs/" + "a" * 300,
        "/..%2f..%2fetc%2fpasswd",
        "//evil.example/",
        "/jobs/a/stream?tail=-1",
        "/jobs/a/stream?tail=999999999999",
        "/jobs/a/stream?tail=x",
    ],
)
async def test_no_path_leads_out_of_the_pages(visit: Visit, path: str) -> None:
    visit.stage.job()
    asked = len(visit.stage.server.requests)
    status, text = await visit.get(path)
    assert (status, text.partition(":")[0]) == (404, "Not Found")
    assert len(visit.stage.server.requests) == asked


async def test_a_job_is_shown_with_its_cause_lines_and_origins(visit: Visit) -> None:
    visit.stage.job(condition("Failed", "FailedJobs", "failed"))
    log = visit.stage.pod()
    visit.stage.print(log, "Traceback (most recent call last):", '  File "x.py", line 1, in f', "KeyError: '</script>'")
    visit.stage.end(log, 0, 1)
    status, text = await visit.get("/jobs/a")
    assert status == 200
    for one in ("PythonError", "KeyError: &#x27;&lt;/script&gt;&#x27;", "from the runtime", "What could not be read"):
        assert one in text
    assert dangers(text) == []
    assert "data-stream" not in text


async def test_a_job_that_is_not_there_says_so_in_a_line(visit: Visit) -> None:
    status, text = await visit.get("/jobs/gone")
    assert (status, text) == (404, "Not Found: there is no TrainJob gone in namespace team\n")


async def test_jobs_are_listed_and_searched(visit: Visit) -> None:
    visit.stage.job(name="one")
    visit.stage.job(name="two")
    _, text = await visit.get("/jobs?q=%3Cb%3Etwo")
    assert "0 of 2 TrainJobs" in text
    assert dangers(text) == []
    _, text = await visit.get("/jobs?q=two")
    assert "/jobs/two" in text
    assert "/jobs/one" not in text


async def test_the_fleet_is_shown_and_what_may_not_be_read_is_named(visit: Visit) -> None:
    visit.stage.job()
    status, text = await visit.get("/")
    assert status == 200
    assert "Fleet" in text
    assert dangers(text) == []


async def test_lines_and_changes_come_as_they_happen(visit: Visit) -> None:
    visit.stage.job()
    log = visit.stage.pod()
    visit.stage.print(log, "before", "second")
    _, text = await visit.get("/jobs/a")
    assert 'data-stream="/jobs/a/stream?tail=200"' in text
    cookie = {"Cookie": f"{visit.guard.cookie}={visit.guard.token}"}
    address = f"http://127.0.0.1:{visit.guard.port}/jobs/a/stream?tail=5"
    texts, events = [], set()
    async with asyncio.timeout(PATIENCE), visit.session.get(address, headers=cookie) as answer:
        assert answer.content_type == "text/event-stream"
        async for event, data in heard(answer):
            events.add(event)
            text = data.get("text", "")
            if event == "line":
                texts.append(text)
            if text == "second":
                visit.stage.print(log, "after")
            if text == "after":
                visit.stage.end(log)
                visit.stage.complete()
    assert texts == ["before", "second", "after"]
    assert events == {"line", "changed", "end"}


async def heard(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """Yield the events of a stream as a browser hears them, until it ends."""
    while said := (await answer.content.readuntil(b"\n\n")).decode().splitlines():
        if said[0].startswith("event: "):
            event, data = said[0].removeprefix("event: "), json.loads(said[1].removeprefix("data: "))
            yield event, data
            if event == "end":
                return


async def test_no_more_pages_are_followed_than_there_is_room_for(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_STREAMS", 1)
    visit.stage.job()
    visit.stage.pod()
    cookie = {"Cookie": f"{visit.guard.cookie}={visit.guard.token}"}
    address = f"http://127.0.0.1:{visit.guard.port}/jobs/a/stream"
    async with asyncio.timeout(PATIENCE):
        async with visit.session.get(address, headers=cookie) as first:
            assert first.status == 200
            assert (await visit.get("/jobs/a/stream"))[0] == 429
            first.close()
        status = 429
        while status == 429:  # until the server has seen that the first is gone
            await asyncio.sleep(0.01)
            async with visit.session.get(address, headers=cookie) as second:
                status = second.status
                second.close()
    assert status == 200


async def test_a_job_that_cannot_be_followed_says_why_and_ends(visit: Visit) -> None:
    client = AsyncTrainerClient(backend=visit.stage.backend)
    async with asyncio.timeout(PATIENCE):
        told = [one async for one in follow(client, "gone", tail=1)]
    assert told[-1] == frame("end", {})
    assert {one.partition(b"\n")[0] for one in told[:-1]} == {b"event: trouble"}


async def test_silence_is_broken_so_that_a_browser_that_is_gone_is_noticed(visit: Visit) -> None:
    visit.stage.job()
    visit.stage.pod()
    events = follow(AsyncTrainerClient(backend=visit.stage.backend), "a", tail=1, heartbeat=0.01)
    async with asyncio.timeout(PATIENCE):
        async for one in events:
            if one == b": here\n\n":
                break
    await events.aclose()


def test_no_data_can_begin_another_event() -> None:
    assert frame("line", {"text": "a\n\nevent: end\rdata: {}\u2028"}).count(b"\n") == 3


async def test_events_that_tenants_wrote_stay_text(visit: Visit) -> None:
    visit.stage.job()
    visit.stage.pod(state=ended(1, message="<img src=x onerror=alert(1)>"))
    visit.stage.server.put(
        EVENTS,
        {
            "metadata": {"name": "e", "namespace": "team"},
            "involvedObject": {"kind": "TrainJob", "name": "a"},
            "reason": "<script>",
            "message": "</td><script>alert(1)</script>" * 10_000,
            "firstTimestamp": "2026-11-15T05:00:10Z",
        },
    )
    status, text = await visit.get("/jobs/a")
    assert status == 200
    assert "&lt;script&gt;" in text
    assert dangers(text) == []
    assert len(text) < 200_000


async def test_a_port_that_is_taken_is_told(visit: Visit) -> None:
    with pytest.raises(OSError, match="address"):
        async with serving(AsyncTrainerClient(backend=visit.stage.backend), "team", visit.guard.port):
            pass


def test_the_token_is_not_printed_with_its_guard() -> None:
    guard = Guard(1)
    assert guard.token not in repr(guard)
    assert len(guard.token) > 40
    assert guard.token != Guard(1).token
