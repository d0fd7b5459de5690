"""`trainplane ui` and `trainplane report` on a real cluster, under a tenant's own rights, in a real browser."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lab.paths import REPOSITORY
from tests.cli.looks.browser import SCREENS, browsing
from tests.cli.tenant import PATIENCE, SCRIPTS, Tenant, tenant_of
from tests.fenced import blocks
from tests.sdk.kubernetes.stage import runtime, train_job
from tests.unit.page.hostile import dangers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster
    from tests.cli.looks.browser import Browser

EVIL = "<img src=x onerror=window.hacked=1>"
PROGRAM = f"""
echo 'rank begins {EVIL}'
while [ ! -e /tmp/go ]; do sleep 0.2; [ $((++n)) -gt 50 ] || echo $n steps; done
exit 3
"""
"""Runs until somebody lets it fail; prints no more than pages show, however long that takes."""


def _shown(number: int) -> list[str]:
    """Return the words behind `trainplane` of a command that the page shows."""
    (line,) = blocks(REPOSITORY / "docs" / "pages.md", "sh")[number].splitlines()
    program, *words = line.split()
    assert program == "trainplane"
    return words


@pytest.fixture(scope="module")
def tenant(cluster: Cluster) -> Iterator[Tenant]:
    with tenant_of(cluster) as tenant:
        tenant.apply(runtime("shell", PROGRAM), train_job("fit", trainer={"numNodes": 2}))
        yield tenant


@contextmanager
def ui(tenant: Tenant) -> Iterator[str]:
    """Run `trainplane ui` and yield the address that it prints; Ctrl-C ends it with 0."""
    words = [str(SCRIPTS / "trainplane"), *_shown(0)]
    with subprocess.Popen(words, env=tenant.environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0


def test_a_tenant_sees_a_job_run_and_fail_in_a_browser(tenant: Tenant, tmp_path: Path) -> None:
    with ui(tenant) as address:
        asyncio.run(_look(tenant, address))
    target = tmp_path / "job.html"
    places = {"JOB": "fit", "job.html": str(target)}
    tenant.run(*(places.get(word, word) for word in _shown(1)))
    page = target.read_text()
    assert dangers(page) == []
    for one in ("exit code 3", "rank begins &lt;img", "What could not be read", "came from"):
        assert one in page


async def _look(tenant: Tenant, address: str) -> None:
    screen = SCREENS[0]
    async with browsing() as browser:
        await browser.open(address, screen)
        assert tenant.namespace in await browser.run("document.body.textContent"), "the fleet that a tenant may see"
        root = await browser.run("location.origin")
        await browser.open(f"{root}/jobs", screen)
        assert await browser.run("document.querySelector('tbody a').textContent") == "fit"
        await browser.open(f"{root}/jobs/fit", screen)
        await _holds(browser, "document.getElementById('lines').textContent.includes('3 steps')")
        tenant.let_go("fit", 1)
        await _holds(browser, "document.querySelector('[role=status]').textContent.includes('Failed')")
        await _holds(browser, "document.getElementById('why').textContent.includes('What to do')")
        assert await browser.run("window.hacked") is None
        assert browser.errors == []
        for one in SCREENS:
            await browser.open(f"{root}/jobs/fit", one)
            assert await browser.findings(one) == []


async def _holds(browser: Browser, script: str) -> None:
    """Wait until a script is true in the page."""
    async with asyncio.timeout(PATIENCE):
        while not await browser.run(script):  # noqa: ASYNC110 what is waited for tells nobody
            await asyncio.sleep(0.1)
