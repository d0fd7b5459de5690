from __future__ import annotations

import asyncio
import logging
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from tests.unit.kube.io.support import until
from trainplane.kube import errors
from trainplane.kube.config import Config
from trainplane.kube.credentials import Credential, StaticCredentials, TokenFile, bearer
from trainplane.kube.execplugin import API_VERSIONS, ExecCredentials, ExecPlugin
from trainplane.kube.limiter import LimiterSettings
from trainplane.kube.resource import PODS
from trainplane.kube.testing.faults import Drop, Hang, Refuse
from trainplane.kube.transport import Transport, TransportSettings, _warning_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.unit.kube.io.support import JumpingClock
    from trainplane.kube.testing.server import FakeServer

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
    Serve = Callable[[Handler], Awaitable[str]]


@pytest.fixture
async def transport(server: FakeServer, clock: JumpingClock) -> AsyncIterator[Transport]:
    async with Transport(server.config(), clock=clock, jitter=lambda: 0.5) as open_:
        yield open_


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Run one handler for all paths; for answers that the fake server does not give."""
    runners: list[web.AppRunner] = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


class TestRetries:
    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
    @pytest.mark.parametrize("code", [429, 503])
    async def test_retry_after_is_obeyed_for_every_verb(
        self, server: FakeServer, transport: Transport, clock: JumpingClock, method: str, code: int
    ) -> None:
        server.add_fault(Refuse(code=code, retry_after=3, times=2))
        await transport.request(method, "/version", body=b"{}")
        assert clock.slept == [3 * 1.125, 3 * 1.125], "never sooner than asked, and jittered"
        assert len(server.requests) == 3

    @pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("PUT", 3), ("DELETE", 3), ("POST", 1), ("PATCH", 1)])
    @pytest.mark.parametrize(
        "fault", [Drop, lambda times: Refuse(code=503, times=times), lambda times: Refuse(code=504, times=times)]
    )
    async def test_without_a_word_of_when_only_what_may_happen_twice_is_repeated(
        self, server: FakeServer, transport: Transport, method: str, sent: int, fault: Any
    ) -> None:
        server.add_fault(fault(times=2))
        if sent == 1:
            with pytest.raises((errors.TransportError, errors.UnavailableError, errors.ServerTimeoutError)):
                await transport.request(method, "/version", body=b"{}")
        else:
            await transport.request(method, "/version", body=b"{}" if method != "GET" else None)
        # aiohttp itself repeats an idempotent request once if a kept connection turns out dead.
        assert sent <= len(server.requests) <= sent + 1

    async def test_a_patch_that_may_happen_twice_is_repeated_when_said_so(
        self, server: FakeServer, transport: Transport
    ) -> None:
        server.add_fault(Drop())
        await transport.request("PATCH", "/version", body=b"{}", idempotent=True)
        assert len(server.requests) == 2

    async def test_a_post_whose_answer_was_lost_acts_once(self, server: FakeServer, transport: Transport) -> None:
        server.add_fault(Drop(acted=True))
        body = b'{"metadata":{"name":"a"}}'
        with pytest.raises(errors.TransportError) as caught:
            await transport.request("POST", PODS.path("default"), body=body)
        assert caught.value.retryable
        assert not isinstance(caught.value, errors.ConnectError)
        assert len(server.objects(PODS)) == len(server.requests) == 1

    @pytest.mark.parametrize(
        ("fault", "in_doubt"),
        [(Drop(acted=True), True), (Refuse(code=429, retry_after=0), False)],
        ids=["lost", "refused"],
    )
    async def test_a_refusal_tells_whether_an_earlier_try_may_have_acted(
        self, server: FakeServer, transport: Transport, fault: Any, in_doubt: bool
    ) -> None:
        server.add_fault(fault)
        server.add_fault(Refuse(code=409))
        with pytest.raises(errors.ConflictError) as caught:
            await transport.request("PATCH", "/version", body=b"{}", idempotent=True)
        assert caught.value.in_doubt is in_doubt

    async def test_a_retry_after_of_nothing_still_backs_off(
        self, server: FakeServer, transport: Transport, clock: JumpingClock
    ) -> None:
        server.add_fault(Refuse(code=429, retry_after=0, times=2))
        await transport.request("GET", "/version")
        assert clock.slept == [0.05, 0.1]

    async def test_pauses_grow_and_attempts_end(
        self, server: FakeServer, transport: Transport, clock: JumpingClock
    ) -> None:
        server.add_fault(Refuse(code=429, times=None))
        with pytest.raises(errors.TooManyRequestsError):
            await transport.request("GET", "/version")
        assert clock.slept == [0.05, 0.1, 0.2, 0.4, 0.8]
        assert len(server.requests) == 6

    async def test_a_wait_past_our_patience_is_left_to_the_caller(
        self, server: FakeServer, transport: Transport, clock: JumpingClock
    ) -> None:
        server.add_fault(Refuse(code=429, retry_after=300))
        with pytest.raises(errors.TooManyRequestsError) as caught:
            await transport.request("GET", "/version")
        assert caught.value.retry_after == 300.0
        assert clock.slept == []

    async def test_patience_counts_from_the_first_attempt(
        self, server: FakeServer, transport: Transport, clock: JumpingClock
    ) -> None:
        server.add_fault(Refuse(code=503, retry_after=20, times=None))
        with pytest.raises(errors.UnavailableError):
            await transport.request("GET", "/version")
        assert clock.slept == [22.5, 22.5]

    @pytest.mark.parametrize("code", [400, 403, 404, 405, 409, 410, 413, 415, 422, 500])
    async def test_other_answers_are_raised_as_they_come(
        self, server: FakeServer, transport: Transport, code: int
    ) -> None:
        server.add_fault(Refuse(code=code))
        with pytest.raises(errors.error_class(code)) as caught:
            await transport.request("GET", "/version")
        assert caught.value.code == code
        assert len(server.requests) == 1

    async def test_no_connection_is_retried_for_any_verb_and_then_named(
        self, server: FakeServer, clock: JumpingClock
    ) -> None:
        config = server.config()
        await server.stop()
        async with Transport(config, clock=clock, jitter=lambda: 0.5) as transport:
            with pytest.raises(errors.ConnectError, match=f"POST /version at {config.server}: no connection") as caught:
                await transport.request("POST", "/version", body=b"{}")
            assert "object at" not in str(caught.value)
            assert len(clock.slept) == 5

    async def test_no_connection_for_tls_names_no_object_of_pythons(self) -> None:
        settings = TransportSettings(attempts=1)
        async with Transport(Config(server="https://127.0.0.1:1"), settings=settings) as transport:
            with pytest.raises(errors.ConnectError, match=r"no connection: .*Connect call failed") as caught:
                await transport.request("GET", "/version")
        assert "ssl" not in str(caught.value).lower()

    async def test_a_restarted_server_is_found_again(self, server: FakeServer, transport: Transport) -> None:
        await transport.request("GET", "/version")
        await server.stop()
        await server.start()
        await transport.request("GET", "/version")

    async def test_a_server_that_never_answers(self, server: FakeServer, clock: JumpingClock) -> None:
        server.add_fault(Hang(times=None))
        settings = TransportSettings(attempts=2)
        async with Transport(server.config(), settings=settings, clock=clock) as transport:
            with pytest.raises(errors.TransportError, match=r"GET /version at .* no answer in time"):
                await transport.request("GET", "/version", timeout_seconds=0.05)
        assert len(clock.slept) == 1, "it was sent twice"

    async def test_a_redirect_is_not_followed(self, serve: Serve) -> None:
        async def elsewhere(request: web.Request) -> web.StreamResponse:
            raise web.HTTPFound("http://127.0.0.1:1/")

        url = await serve(elsewhere)
        async with Transport(Config(server=url, credentials=StaticCredentials(bearer("secret")))) as transport:
            with pytest.raises(errors.ApiError) as caught:
                await transport.request("GET", "/version")
        assert caught.value.code == 302

    async def test_a_body_cut_short_is_no_answer(self, serve: Serve, clock: JumpingClock) -> None:
        async def cut(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Length": "100"})
            await response.prepare(request)
            await response.write(b"{")
            assert request.transport is not None
            request.transport.close()
            return response

        url = await serve(cut)
        async with Transport(Config(server=url), clock=clock) as transport:
            with pytest.raises(errors.TransportError, match="the connection broke"):
                await transport.request("GET", "/version")
        assert len(clock.slept) == 5


async def test_who_reads_a_stream_hears_that_the_client_was_closed(transport: Transport) -> None:
    async def read() -> None:
        async for _ in chunks:
            pass

    async with transport.stream(f"{PODS.path()}?watch=true") as chunks:
        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(errors.StreamError, match="the client was closed"):
            await asyncio.wait_for(reading, 60)


class TestUnauthorized:
    async def test_a_rotated_token_file_is_read_and_the_request_sent_again(
        self, server: FakeServer, clock: JumpingClock, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("old")
        server.tokens = {"old"}
        config = Config(server=server.url, credentials=TokenFile(file, clock))
        async with Transport(config, clock=clock) as transport:
            await transport.request("GET", "/version")
            server.tokens = {"new"}
            file.write_text("new")
            await transport.request("POST", "/version", body=b"{}")
        sent = [request.headers.get("Authorization") for request in server.requests]
        assert sent == ["Bearer old", "Bearer old", "Bearer new"]
        assert clock.slept == []

    async def test_a_plugins_token_is_renewed_by_running_it_again(
        self, server: FakeServer, clock: JumpingClock, tmp_path: Path
    ) -> None:
        token, program = tmp_path / "token", tmp_path / "login"
        token.write_text("one")
        program.write_text(
            f"""#!/bin/sh
echo '{{"apiVersion": "{API_VERSIONS[0]}", "kind": "ExecCredential", "status": {{"token": "'$(cat {token})'"}}}}'
"""
        )
        program.chmod(0o755)
        credentials = ExecCredentials(ExecPlugin(command=str(program), api_version=API_VERSIONS[0]), clock)
        async with Transport(Config(server=server.url, credentials=credentials), clock=clock) as transport:
            server.tokens = {"one"}
            await transport.request("GET", "/version")
            await transport.request("GET", "/version")
            server.tokens = {"two"}
            token.write_text("two")
            await asyncio.gather(*(transport.request("GET", "/version") for _ in range(5)))
        sent = [request.headers["Authorization"] for request in server.requests]
        assert sent[:2] == ["Bearer one"] * 2
        assert sorted(sent[2:]) == ["Bearer one"] * 5 + ["Bearer two"] * 5

    async def test_a_token_that_stays_wrong_is_raised_after_one_more_try(
        self, server: FakeServer, clock: JumpingClock
    ) -> None:
        class Hopeful(StaticCredentials):
            def refused(self, credential: Credential) -> bool:  # noqa: ARG002 the protocol's signature
                return True

        server.tokens = {"right"}
        config = Config(server=server.url, credentials=Hopeful(bearer("wrong")))
        async with Transport(config, clock=clock) as transport:
            with pytest.raises(errors.UnauthorizedError):
                await transport.request("GET", "/version")
        assert len(server.requests) == 2

    async def test_an_unchanging_token_is_not_tried_twice(self, server: FakeServer) -> None:
        server.tokens = {"right"}
        config = Config(server=server.url, credentials=StaticCredentials(bearer("wrong")))
        async with Transport(config) as transport:
            with pytest.raises(errors.UnauthorizedError):
                await transport.request("GET", "/version")
        assert len(server.requests) == 1


class TestLimit:
    async def test_push_back_lowers_the_limit_and_success_raises_it(
        self, server: FakeServer, clock: JumpingClock
    ) -> None:
        settings = TransportSettings(limiter=LimiterSettings(initial=4, most=8))
        async with Transport(server.config(), settings=settings, clock=clock) as transport:
            server.add_fault(Refuse(code=429, retry_after=1))
            await transport.request("GET", "/version")
            assert transport.limiter.limit == pytest.approx(2.8)
            await asyncio.gather(*(transport.request("GET", "/version") for _ in range(60)))
            assert transport.limiter.limit > 4
            assert transport.limiter.in_flight == 0

    async def test_the_server_never_sees_more_at_once_than_the_limit(self, serve: Serve) -> None:
        now = most = 0
        full = asyncio.Event()

        async def count(request: web.Request) -> web.StreamResponse:
            nonlocal now, most
            now += 1
            most = max(most, now)
            if now == 3:
                full.set()
            await full.wait()
            await asyncio.sleep(0.001)
            now -= 1
            return web.Response(body=b"{}")

        url = await serve(count)
        settings = TransportSettings(limiter=LimiterSettings(initial=3, most=3))
        async with Transport(Config(server=url), settings=settings) as transport:
            await asyncio.gather(*(transport.request("GET", "/") for _ in range(30)))
        assert most == 3

    async def test_a_cancelled_request_gives_its_place_back(self, server: FakeServer, transport: Transport) -> None:
        server.add_fault(Hang())
        task = asyncio.create_task(transport.request("GET", "/version"))
        await until(lambda: bool(server.requests))
        assert transport.limiter.in_flight == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert transport.limiter.in_flight == 0

    async def test_open_streams_hold_no_place_and_have_their_own_bound(self, server: FakeServer) -> None:
        settings = TransportSettings(streams=2, limiter=LimiterSettings(initial=1, most=1))
        path = f"{PODS.path()}?watch=true"
        async with Transport(server.config(), settings=settings) as transport:
            async with transport.stream(path), transport.stream(path):
                await transport.request("GET", "/version")
                with pytest.raises(errors.StreamError, match="2 streams are open already"):
                    async with transport.stream(path):
                        pass
            async with transport.stream(path):
                assert transport.limiter.in_flight == 0


class TestStream:
    async def test_opening_is_retried(self, server: FakeServer, transport: Transport, clock: JumpingClock) -> None:
        server.add_fault(Refuse(code=503, retry_after=2))
        async with transport.stream(f"{PODS.path()}?watch=true"):
            assert clock.slept == [2.25]

    async def test_a_stream_that_does_not_begin(self, server: FakeServer, clock: JumpingClock) -> None:
        server.add_fault(Hang(times=None))
        settings = TransportSettings(read_seconds=0.05, attempts=1)
        async with Transport(server.config(), settings=settings, clock=clock) as transport:
            with pytest.raises(errors.TransportError, match=r"did not begin within 0\.05 s"):
                async with transport.stream(f"{PODS.path()}?watch=true"):
                    pass
            assert transport.limiter.in_flight == 0

    async def test_stream_event_loop_refuses_socket_is_opened_by_the_next_try(
        self, transport: Transport, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loop = asyncio.get_running_loop()
        connect = loop.sock_connect
        refused: list[Any] = []

        async def refuse_once(*given: Any) -> None:
            if not refused:
                refused.append(given)
                raise RuntimeError("File descriptor 25 is used by transport <TCPTransport closed=False 0x1>")
            await connect(*given)

        monkeypatch.setattr(loop, "sock_connect", refuse_once)
        async with transport.stream(f"{PODS.path()}?watch=true"):
            assert refused

    async def test_a_stream_past_its_life_counts_as_cut(self, transport: Transport) -> None:
        await transport.request("GET", "/version")  # connects: of the stream's life, only its own opening is taken
        async with transport.stream(f"{PODS.path()}?watch=true", total_seconds=0.5) as chunks:
            with pytest.raises(errors.StreamError, match="cut"):
                async for _ in chunks:
                    pass

    async def test_leaving_the_block_closes_the_connection(self, server: FakeServer, transport: Transport) -> None:
        async with transport.stream(f"{PODS.path()}?watch=true"):
            assert server.watching.count == 1
        await until(lambda: not server.watching.count)


class TestCounting:
    async def test_every_request_sent_is_heard_of_once(self, server: FakeServer, clock: JumpingClock) -> None:
        heard: list[tuple[str, str, int | str]] = []
        config = server.config()
        async with Transport(config, clock=clock, requested=lambda *request: heard.append(request)) as transport:
            server.add_fault(Refuse(code=503, retry_after=1))
            await transport.request("POST", "/version", body=b"{}")
            server.add_fault(Refuse(code=404))
            with pytest.raises(errors.NotFoundError):
                await transport.request("GET", "/version")
            async with transport.stream(f"{PODS.path()}?watch=true"):
                pass
            await server.stop()
            with pytest.raises(errors.ConnectError):
                await transport.request("PUT", "/version", body=b"{}")
        host = config.server.removeprefix("http://")
        answered = [("POST", 503), ("POST", 200), ("GET", 404), ("GET", 200)]
        assert heard == [(method, host, code) for method, code in answered] + [("PUT", host, "<error>")] * 6

    async def test_sockets_are_requests_too(self, serve: Serve, clock: JumpingClock) -> None:
        heard: list[tuple[str, int | str]] = []

        async def upgrade(request: web.Request) -> web.StreamResponse:
            if "no" in request.path:
                return web.Response(status=403)
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            await socket.close()
            return socket

        def hear(method: str, host: str, code: int | str) -> None:
            heard.append((method, code))

        async with Transport(Config(server=await serve(upgrade)), clock=clock, requested=hear) as transport:
            async with transport.websocket("/yes", ()):
                pass
            with pytest.raises(errors.ForbiddenError):
                async with transport.websocket("/no", ()):
                    pass
        assert heard == [("GET", 101), ("GET", 403), ("GET", 403)], "the last asks why"
        async with Transport(Config(server="http://127.0.0.1:1"), clock=clock, requested=hear) as transport:
            with pytest.raises(errors.ConnectError):
                async with transport.websocket("/", ()):
                    pass
        assert heard[3:] == [("GET", "<error>")]


async def test_what_each_request_carries(server: FakeServer) -> None:
    server.tokens = {"t"}
    config = server.config(headers=[("Impersonate-User", "ann")], compression=True)
    async with Transport(config) as transport:
        await transport.request("GET", "/version")
    (asked,) = server.requests
    assert asked.headers["Authorization"] == "Bearer t"
    assert asked.headers["Impersonate-User"] == "ann"
    assert asked.headers["Accept"] == "application/json"
    assert asked.headers["Accept-Encoding"] == "gzip"
    assert asked.headers["User-Agent"] == "trainplane"


async def test_a_large_body_is_sent_whole_and_again(serve: Serve, clock: JumpingClock) -> None:
    seen: list[tuple[int, str]] = []

    async def measure(request: web.Request) -> web.StreamResponse:
        seen.append((len(await request.clone(client_max_size=4 << 20).read()), request.headers["Content-Length"]))
        return web.Response(status=503 if len(seen) == 1 else 200, headers={"Retry-After": "1"})

    async with Transport(Config(server=await serve(measure)), clock=clock) as transport:
        await transport.request("POST", "/", body=b"x" * (3 << 20), content_type="application/json")
    assert seen == [(3 << 20, str(3 << 20))] * 2


async def test_a_compressed_answer_is_read(serve: Serve) -> None:
    async def compress(request: web.Request) -> web.StreamResponse:
        response = web.Response(body=b'{"a":"' + b"x" * 200_000 + b'"}')
        response.enable_compression()
        return response

    async with Transport(Config(server=await serve(compress), compression=True)) as transport:
        response = await transport.request("GET", "/")
    assert response.headers["Content-Encoding"] == "gzip"
    assert len(response.body) == 200_008


async def test_a_server_below_a_path(server: FakeServer) -> None:
    async with Transport(Config(server=f"{server.url}/k8s/clusters/c-1/")) as transport:
        with pytest.raises(errors.NotFoundError):
            await transport.request("GET", "/version")
    assert server.requests[0].path == "/k8s/clusters/c-1/version"


@pytest.mark.parametrize(
    "changes",
    [
        {"server": "https://127.0.0.1:99999"},
        {"server": f"https://{'a' * 64}.example"},
        {"server": "https://a:hunter2@127.0.0.1:1"},
        {"proxy": "http://[hunter2"},
        {"proxy": "http://127.0.0.1:hunter2"},
    ],
)
async def test_what_no_request_can_be_made_of_is_a_wrong_configuration(changes: dict[str, Any]) -> None:
    made = {"server": "https://127.0.0.1:1", "credentials": StaticCredentials(bearer("t")), **changes}
    async with Transport(Config(**made)) as transport:
        with pytest.raises(errors.ConfigError, match="no request can be made") as caught:
            await transport.request("GET", "/version")
        with pytest.raises(errors.ConfigError, match="no request can be made"):
            async with transport.websocket("/", ["v5"]):
                pass
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


async def test_requests_go_through_the_proxy(serve: Serve) -> None:
    seen: list[str] = []

    async def forward(request: web.Request) -> web.StreamResponse:
        seen.append(str(request.url))
        return web.Response(body=b"{}")

    url = await serve(forward)
    async with Transport(Config(server="http://api.invalid:6443", proxy=url)) as transport:
        await transport.request("GET", "/version?a=b%2Fc")
    assert seen == ["http://api.invalid:6443/version?a=b%2Fc"]


async def test_the_servers_warnings_are_logged_once(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def warn(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"{}", headers={"Warning": '299 - "v1beta1 is deprecated"'})

    url = await serve(warn)
    async with Transport(Config(server=url)) as transport:
        with caplog.at_level(logging.WARNING):
            await transport.request("GET", "/a")
            await transport.request("GET", "/b")
    (record,) = caplog.records
    assert record.message == "the API server warns: v1beta1 is deprecated"


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ('299 - "field \\"a\\" is deprecated"', 'field "a" is deprecated'),
        ('299 agent "a\x1b[2Jb"', "a [2Jb"),
        ("no header of that form", "no header of that form"),
    ],
)
def test_what_a_warning_says(header: str, text: str) -> None:
    assert _warning_text(header) == text


async def test_what_is_closed_is_not_opened_again_by_a_request_that_nobody_waits_for(
    server: FakeServer, transport: Transport
) -> None:
    await transport.request("GET", "/version")
    await transport.close()
    with pytest.raises(errors.TransportError, match="was closed"):
        await transport.request("GET", "/version")
    assert len(server.requests) == 1
