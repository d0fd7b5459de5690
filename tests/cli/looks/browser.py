"""Debian's Chromium, headless, by its DevTools protocol: pages opened, measured and photographed. Started once."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

START_SECONDS: Final = 60
"""On a machine that is busy with another suite."""
ANSWER_SECONDS: Final = 60
TALLEST: Final = 30_000
"""Pixels of a page that is looked at."""
MEASURES: Final = (Path(__file__).with_name("legible.js")).read_text()
_FLAGS: Final = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)


@dataclass(frozen=True)
class Screen:
    """What a page is looked at on."""

    name: str
    width: int
    height: int
    dark: bool = False

    @property
    def label(self) -> str:
        """Return it as part of a file's name."""
        return f"{self.name}-{'dark' if self.dark else 'light'}"


DESKTOP, PHONE = ("desktop", 1280, 900), ("phone", 390, 844)
SCREENS: Final = tuple(Screen(*size, dark=dark) for size in (DESKTOP, PHONE) for dark in (False, True))


@dataclass(frozen=True)
class Finding:
    """Something that cannot be read."""

    kind: str
    """contrast, cut, overlap or covered."""
    text: str
    detail: str


@dataclass
class Browser:
    """A running Chromium with one page."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    _number: int = 0
    _answers: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    errors: list[str] = field(default_factory=list)
    """What the page itself complained of: a script that failed, what the content policy kept from loading."""

    async def listen(self) -> None:
        """Take in what Chromium says, until it is closed."""
        async for message in self.socket:
            said = message.json()
            if waiting := self._answers.pop(said.get("id", 0), None):
                waiting.set_result(said)
            elif said.get("method") == "Page.loadEventFired":
                self._loaded.set()
            elif said.get("method") in {"Runtime.exceptionThrown", "Log.entryAdded"}:
                self.errors.append(str(said["params"])[:500])

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a command and return its result."""
        self._number += 1
        answer = asyncio.get_running_loop().create_future()
        self._answers[self._number] = answer
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        await self.socket.send_json(message)
        async with asyncio.timeout(ANSWER_SECONDS):
            said = await answer
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        return said["result"]

    async def open(self, address: str, screen: Screen) -> None:
        """Open an address on a screen."""
        await self.resize(screen, screen.height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if screen.dark else "light"}
        await self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded.clear()
        self.errors.clear()
        await self.ask("Page.navigate", url=address)
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._loaded.wait()

    async def resize(self, screen: Screen, height: int) -> None:
        """Give the page its width and a height."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=screen.width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def run(self, script: str) -> Any:
        """Run a script in the page and return its value."""
        said = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise RuntimeError(str(said["exceptionDetails"])[:1000])
        return said["result"].get("value")

    async def findings(self, screen: Screen) -> list[Finding]:
        """Return what cannot be read of the page that is open, from its top to its end."""
        height = int(await self.run("document.documentElement.scrollHeight"))
        await self.resize(screen, min(max(height, screen.height), TALLEST))
        found = await self.run(MEASURES)
        await self.resize(screen, screen.height)
        return [Finding(**one) for one in found]

    async def picture(self) -> bytes:
        """Return what the screen shows as a PNG."""
        return base64.b64decode((await self.ask("Page.captureScreenshot", format="png"))["data"])


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """Start Chromium, and end it with the context."""
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("there is no Chromium: lab/packages.sh installs it")
    # Debian's wrapper keeps its sandbox; as root Chromium refuses to have one. Only our own pages are opened here.
    flags = [*_FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(_FLAGS)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            program,
            *flags,
            f"--user-data-dir={folder}",
            "about:blank",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        draining: asyncio.Task[None] | None = None
        try:
            address = await _address(process)
            draining = asyncio.create_task(_drain(process))
            async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
                browser = Browser(socket)
                listening = asyncio.create_task(browser.listen())
                target = (await browser.ask("Target.createTarget", url="about:blank"))["targetId"]
                attached = await browser.ask("Target.attachToTarget", targetId=target, flatten=True)
                browser.session = attached["sessionId"]
                for domain in ("Page", "Runtime", "Log"):
                    await browser.ask(f"{domain}.enable")
                yield browser
                listening.cancel()
        finally:
            if process.returncode is None:
                process.terminate()
            try:
                async with asyncio.timeout(10):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
            if draining is not None:
                draining.cancel()  # what Chromium leaves behind may hold its end of the pipe open


async def _address(process: asyncio.subprocess.Process) -> str:
    said = b""
    assert process.stderr is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            async for line in process.stderr:
                said += line
                if found := re.search(rb"DevTools listening on (ws://\S+)", line):
                    return found[1].decode()
    except TimeoutError:
        pass
    raise RuntimeError(f"Chromium did not start: {said[-2000:].decode(errors='replace')}")


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Read what Chromium complains of, so that it is never kept waiting by a full pipe."""
    assert process.stderr is not None
    while await process.stderr.read(65536):
        pass
