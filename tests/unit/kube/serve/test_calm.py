"""Reviews go before what shares their event loop, and not for ever."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from trainplane.kube import webhook
from trainplane.kube.admission import allow
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.webhook import CALM_LOOKS, CALM_SECONDS, WebhookServer

if TYPE_CHECKING:
    import pytest


def server() -> WebhookServer:
    return WebhookServer({"/review": lambda _: allow()}, ListenerSettings(0))


async def test_without_reviews_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "CALM_SECONDS", 600.0)
    async with asyncio.timeout(60):
        await server().calm()


async def test_after_a_review_others_wait_a_moment() -> None:
    webhooks = server()
    webhooks._asked_at = time.monotonic()
    await webhooks.calm()
    assert time.monotonic() - webhooks._asked_at >= CALM_SECONDS


class Asked(WebhookServer):
    """Is asked for ever."""

    looks = 0

    @property
    def _asked_at(self) -> float:
        self.looks += 1
        return time.monotonic()

    @_asked_at.setter
    def _asked_at(self, _: float) -> None: ...


async def test_who_asks_for_ever_does_not_stop_the_work() -> None:
    webhooks = Asked({}, ListenerSettings(0))
    await webhooks.calm()
    assert webhooks.looks == CALM_LOOKS


async def test_many_wait_by_one_look_at_a_time_and_one_that_gives_up_takes_nobody_along() -> None:
    webhooks = Asked({}, ListenerSettings(0))
    waiting = [asyncio.create_task(webhooks.calm()) for _ in range(32)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting[1:])
    assert webhooks.looks == CALM_LOOKS
    await webhooks.calm()
    assert webhooks.looks == 2 * CALM_LOOKS
