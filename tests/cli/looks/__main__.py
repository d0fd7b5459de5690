"""Make the pictures of docs/pictures: `python -m tests.cli.looks`. Ends with 1 if something on them cannot be read."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lab.paths import REPOSITORY
from tests.cli.looks.browser import browsing
from tests.cli.looks.pictures import page_pictures, terminal_pictures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cli.looks.pictures import Picture

PICTURES = REPOSITORY / "docs" / "pictures"


async def photograph(pictures: Sequence[Picture]) -> tuple[dict[str, bytes], list[str]]:
    """Return each picture by its name, and what on them cannot be read."""
    taken: dict[str, bytes] = {}
    wrong: list[str] = []
    async with browsing() as browser:
        for one in pictures:
            await browser.open(one.file.as_uri(), one.screen)
            taken[one.name] = await browser.picture()
            found = await browser.findings(one.screen)
            wrong += [f"{one.name}: {each.kind}: {each.text!r}: {each.detail}" for each in found]
    return taken, wrong


def _small(picture: bytes) -> bytes:
    """Return a picture with 64 colours: text on a plain ground looks the same, and the repository stays small."""
    words = ["pngquant", "--speed", "1", "--nofs", "64", "-"]
    return subprocess.run(words, input=picture, check=True, capture_output=True).stdout


def main() -> int:
    """Write the pictures; return the exit code."""
    with TemporaryDirectory() as folder:
        pictures = [*page_pictures(Path(folder)), *terminal_pictures(Path(folder))]
        taken, wrong = asyncio.run(photograph(pictures))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, picture in taken.items():
        (PICTURES / f"{name}.png").write_bytes(_small(picture))
    sys.stdout.write("".join(f"{one}\n" for one in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
