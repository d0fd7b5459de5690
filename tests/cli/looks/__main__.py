"""Make the pictures of docs/pictures: `python -m tests.cli.looks`. Ends with 1 if something on them cannot be read."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.paths import REPOSITORY
from tests.cli.looks.browser import SCREENS, browsing
from tests.cli.looks.scenes import pages

PICTURES = REPOSITORY / "docs" / "pictures"


async def photograph(target: Path) -> int:
    """Write a picture of each page on each screen, and return how much cannot be read."""
    target.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with TemporaryDirectory() as folder:
        async with browsing() as browser:
            for name, text in pages().items():
                file = Path(folder) / f"{name}.html"
                file.write_text(text)
                for screen in SCREENS:
                    await browser.open(file.as_uri(), screen)
                    (target / f"{name}-{screen.label}.png").write_bytes(await browser.picture())
                    for one in await browser.findings(screen):
                        wrong += 1
                        print(f"{name} {screen.label}: {one.kind}: {one.text!r}: {one.detail}")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(photograph(PICTURES)) else 0)
