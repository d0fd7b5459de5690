"""docs/first-hour.md as its reader follows it: blocks of a shell, each with the lines that it prints."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.sdk.tutorial.reader import read_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.sdk.tutorial.reader import Block

LEFT_OUT: Final = "…"
PATIENCE: Final = 180
"""Seconds that a block may take on a busy machine of two cores."""
_MASKS: Final = (
    (re.compile(r"(node-\d+-\d+-)[a-z0-9]{5}\b"), r"\1xxxxx"),
    (re.compile(r"\bon [a-z][-a-z0-9.]*"), "on HOST"),
    (re.compile(r"\b\d+ (?:s|min|h|d)(?: \d+ (?:min|h))?\b"), "N s"),
    (re.compile(r"\d+"), "N"),
    (re.compile(r"\s+"), " "),
)


def chapters(page: str) -> dict[str, list[Block]]:
    """Return the blocks of a page by the headings that they stand under."""
    found = {}
    for chapter in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        heading, _, text = chapter.partition("\n")
        found[heading] = read_blocks(text)
    return found


def masked(text: str) -> set[str]:
    """Return the lines of a text without what differs from one run to the next."""
    lines = set()
    for line in text.splitlines():
        for pattern, instead in _MASKS:
            line = pattern.sub(instead, line)  # noqa: PLW2901 each mask stands on the one before
        lines.add(line.strip())
    return lines - {""}


@dataclass(frozen=True)
class Reader:
    """Somebody with a shell in a folder, whose variables stay from block to block."""

    folder: Path
    environment: Mapping[str, str]
    swaps: Mapping[str, str]
    """What is different on this machine: a command's words, by those of the page."""

    def follow(self, block: Block) -> float:
        """Run a block and compare what it printed with the page, line by line in any order: two nodes print at once.

        Returns the moment of the first line that a node printed, by the clock that does not jump; 0 if none did.
        """
        printed, first = self._run(block)
        if block.prints is not None:
            shown = masked(block.prints)
            missing = (shown - {LEFT_OUT}) - masked(printed)
            assert not missing, f"line {block.line} does not print {sorted(missing)}, but:\n{printed}"
            more = masked(printed) - shown
            assert LEFT_OUT in shown or not more, f"line {block.line} prints more: {sorted(more)}"
        return first

    def _run(self, block: Block) -> tuple[str, float]:
        """Return all that a block printed, and the moment of the first line of a node. Fails where a command does."""
        code = block.code
        for old, new in self.swaps.items():
            code = code.replace(old, new)
        lines, first = [], 0.0
        with subprocess.Popen(
            ["timeout", str(PATIENCE), "bash", "-eu", "-o", "pipefail", "-c", code],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                first = first or (time.monotonic() if line.startswith("[node-") else 0.0)
                lines.append(line)
        printed = "".join(lines)
        assert running.returncode == 0, f"line {block.line} ended with {running.returncode}: {block.code}{printed}"
        return printed, first
