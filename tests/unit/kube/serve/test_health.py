"""Health: the loop's lag on fake time, and the endpoints over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from trainplane.kube.health import HealthServer, LoopLag, report
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.testing.clock import FakeClock

LOOPBACK = ListenerSettings(0, host="127.0.0.1")


class Stalling(FakeClock):
    """A clock whose sleepers wake late, as on a loop that somebody holds up."""

    late = 0.0

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds + self.late)


async def fetch(server: HealthServer, path: str, method: str = "GET") -> tuple[int, str]:
    url = f"http://127.0.0.1:{server.listener.port}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url) as response:
        return response.status, await response.text()


async def test_an_idle_loop_has_no_lag() -> None:
    lag = LoopLag(clock := FakeClock())
    assert lag.current() == 0.0
    ticking = asyncio.create_task(lag.run())
    await clock.advance(10.05)
    assert lag.current() == pytest.approx(0.0, abs=1e-6)
    assert lag.worst == pytest.approx(0.0, abs=1e-6)
    assert lag.check() is None
    ticking.cancel()


async def test_a_held_up_loop_shows_its_lag_and_recovers() -> None:
    lag = LoopLag(clock := Stalling())
    ticking = asyncio.create_task(lag.run())
    await clock.advance(1)
    clock.late = 7.0
    await clock.advance(8)
    assert lag.last == pytest.approx(7.0)
    assert lag.check() == "the event loop is 7.0 s late, more than 5 s"
    clock.late = 0.0
    await clock.advance(8)
    assert lag.last == pytest.approx(0.0, abs=1e-6)
    assert lag.check() is None
    assert lag.take_worst() == pytest.approx(7.0)
    assert lag.take_worst() == pytest.approx(0.0, abs=1e-6)
    ticking.cancel()


async def test_a_tick_that_is_overdue_counts_before_it_comes() -> None:
    lag = LoopLag(clock := Stalling(), limit=2.0)
    clock.late = 100.0
    ticking = asyncio.create_task(lag.run())
    await clock.advance(2.0)
    assert lag.check() is None
    await clock.advance(0.2)
    assert lag.check() is not None
    assert lag.take_worst() == pytest.approx(2.1)
    ticking.cancel()


async def test_a_ticker_that_never_ran_is_no_lag() -> None:
    lag = LoopLag(clock := FakeClock())
    await clock.advance(100)
    assert lag.check() is None


def broken() -> str | None:
    raise KeyError("oops")


def good() -> str | None:
    return None


def bad() -> str | None:
    return "pods not listed yet"


@pytest.mark.parametrize(
    ("checks", "excluded", "verbose", "expected"),
    [
        ({"a": good}, set(), False, (200, "ok")),
        ({"a": good}, set(), True, (200, "[+]a ok\nreadyz check passed\n")),
        ({}, set(), False, (200, "ok")),
        (
            {"a": good, "b": bad},
            set(),
            False,
            (500, "[+]a ok\n[-]b failed: pods not listed yet\nreadyz check failed\n"),
        ),
        ({"a": good, "b": bad}, {"b"}, False, (200, "ok")),
        ({"b": bad}, {"b"}, True, (200, "[+]b excluded: ok\nreadyz check passed\n")),
        (
            {"a": broken, "b": good},
            set(),
            False,
            (500, "[-]a failed: the check itself raised KeyError: 'oops'\n[+]b ok\nreadyz check failed\n"),
        ),
    ],
)
def test_reports(checks: Any, excluded: set[str], verbose: bool, expected: tuple[int, str]) -> None:
    assert report("readyz", checks, excluded, verbose=verbose) == expected


async def test_endpoints_answer_as_kubernetes_does() -> None:
    synced = asyncio.Event()
    server = HealthServer(
        LOOPBACK,
        live={"loop": good},
        ready={"store": lambda: None if synced.is_set() else "pods not listed yet", "webhook": good},
    )
    async with server.listener:
        assert await fetch(server, "/healthz") == (200, "ok")
        assert await fetch(server, "/livez?verbose") == (200, "[+]ping ok\n[+]loop ok\nlivez check passed\n")
        assert await fetch(server, "/readyz") == (
            500,
            "[+]ping ok\n[-]store failed: pods not listed yet\n[+]webhook ok\nreadyz check failed\n",
        )
        assert (await fetch(server, "/readyz/webhook"))[0] == 200
        assert (await fetch(server, "/readyz/store"))[0] == 500
        assert (await fetch(server, "/readyz?exclude=store"))[0] == 200
        synced.set()
        assert await fetch(server, "/readyz/") == (200, "ok")
        assert (await fetch(server, "/readyz/store"))[0] == 200


async def test_other_paths_and_methods() -> None:
    server = HealthServer(LOOPBACK)
    async with server.listener:
        assert (await fetch(server, "/"))[0] == 404
        assert (await fetch(server, "/metrics"))[0] == 404
        assert (await fetch(server, "/healthz/unknown"))[0] == 404
        assert (await fetch(server, "/healthz/ping/more"))[0] == 404
        assert (await fetch(server, "/healthz", "POST"))[0] == 405
        assert await fetch(server, "/healthz", "HEAD") == (200, "")


async def test_endpoints_can_be_named_otherwise() -> None:
    server = HealthServer(LOOPBACK, ready={"x": bad}, live_path="/alive", ready_path="/up")
    async with server.listener:
        assert (await fetch(server, "/alive"))[0] == 200
        status, text = await fetch(server, "/up")
        assert status == 500
        assert text.endswith("up check failed\n")
        assert (await fetch(server, "/readyz"))[0] == 404
