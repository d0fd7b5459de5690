"""The pages of `trainplane ui` in a real browser: under their content policy, with their script, by keyboard."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.cli.looks.browser import DESKTOP, Screen, browsing
from tests.unit.client.kubernetes.stage import Stage
from tests.unit.client.reading.documents import runtime
from trainplane.client.aio import AsyncTrainerClient
from trainplane.kube.testing.server import FakeServer
from trainplane.page.server import serving
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES

if TYPE_CHECKING:
    from tests.cli.looks.browser import Browser

EVIL = "<img src=x onerror='window.hacked=1'></script><script>window.hacked=1</script>"
PATIENCE = 60


async def holds(browser: Browser, script: str) -> None:
    """Wait until a script is true in the page."""
    async with asyncio.timeout(PATIENCE):
        while not await browser.run(script):  # noqa: ASYNC110 what is waited for tells nobody
            await asyncio.sleep(0.05)


async def press(browser: Browser, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        await browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=9)


async def test_an_open_page_follows_its_job_by_script_and_keyboard() -> None:
    screen = Screen(*DESKTOP)
    async with FakeServer() as server, server.client() as client, browsing() as browser:
        stage = Stage(server, client)
        server.put(CLUSTER_TRAINING_RUNTIMES, runtime())
        stage.job(nodes=1)
        log = stage.pod()
        stage.print(log, "the first line", EVIL)
        async with serving(AsyncTrainerClient(backend=stage.backend), "team") as guard:
            await browser.open(guard.address, screen)
            assert await browser.run("location.pathname + location.search") == "/", "the token left the address"
            await press(browser, "Tab")
            assert await browser.run("document.activeElement.className") == "skip"
            assert await browser.run("document.activeElement.getBoundingClientRect().left >= 0"), "and can be seen"

            await browser.open(f"http://127.0.0.1:{guard.port}/jobs/a", screen)
            await holds(browser, "!document.getElementById('pause').hidden")
            stage.print(log, "a line that came later", EVIL)
            await holds(browser, "document.getElementById('lines').textContent.includes('a line that came later')")
            await browser.run("document.getElementById('pause').click()")
            assert await browser.run("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
            await browser.run("document.getElementById('pause').click()")

            stage.end(log)
            stage.complete()
            await holds(browser, "document.querySelector('[role=status]').textContent.includes('Complete')")
            assert await browser.run("window.hacked") is None
            assert await browser.run("document.querySelectorAll('img').length") == 0
            assert browser.errors == []
