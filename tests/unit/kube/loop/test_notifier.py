from __future__ import annotations

import asyncio

from trainplane.kube.notifier import Notifier


async def test_all_who_wait_are_woken_once() -> None:
    notifier = Notifier()
    waiting = [asyncio.create_task(notifier.next.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    notifier.notify()
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting)
    assert not notifier.next.is_set()


async def test_a_change_between_looking_and_waiting_is_not_missed() -> None:
    notifier = Notifier()
    news = notifier.next
    notifier.notify()
    async with asyncio.timeout(60):
        await news.wait()
