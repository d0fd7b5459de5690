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


async def photograph(files: dict[str, Path]) -> tuple[dict[str, bytes], list[str]]:
    """Return a picture of each page on each screen, and what on them cannot be read."""
    pictures: dict[str, bytes] = {}
    wrong: list[str] = []
    async with browsing() as browser:
        for name, file in files.items():
            for screen in SCREENS:
                await browser.open(file.as_uri(), screen)
                pictures[f"{name}-{screen.label}.png"] = await browser.picture()
                found = await browser.findings(screen)
                wrong += [f"{name} {screen.label}: {one.kind}: {one.text!r}: {one.detail}" for one in found]
    return pictures, wrong


def main() -> int:
    """Write the pictures; return the exit code."""
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.html" for name in pages()}
        for name, text in pages().items():
            files[name].write_text(text)
        pictures, wrong = asyncio.run(photograph(files))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (PICTURES / name).write_bytes(picture)
    sys.stdout.write("".join(f"{one}\n" for one in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
