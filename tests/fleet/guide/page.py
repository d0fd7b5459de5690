"""A page of the documentation, read as what it is to its reader: commands, what they print, objects, tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANYTHING = "…"
"""What stands in a page for a part that differs from run to run."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """A shell block and, when the page shows it, what it prints."""

    line: int
    section: str
    script: str
    prints: str | None


@dataclass(frozen=True)
class Page:
    """A page of Markdown."""

    text: str

    @classmethod
    def load(cls, path: Path) -> Page:
        """Read a page."""
        return cls(path.read_text())

    def blocks(self) -> list[Block]:
        """Return all fenced blocks, in order."""
        return [
            Block(self.text[: found.start()].count("\n") + 1, found[1], found[2])
            for found in _FENCE.finditer(self.text)
        ]

    def commands(self) -> list[Command]:
        """Return the shell blocks; a `text` block that follows one at once is what that one prints."""
        blocks = self.blocks()
        found = []
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            if block.language != "sh":
                continue
            follows = after is not None and after.language == "text" and after.line == _last_line(block) + 1
            prints = after.text if after is not None and follows else None
            found.append(Command(block.line, self._section(block.line), block.text, prints))
        return found

    def table(self, heading: str) -> list[tuple[str, ...]]:
        """Return the rows of the first table below a heading, without its head."""
        _, _, below = self.text.partition(f"\n## {heading}\n")
        rows = list(_first_table(below))
        return rows[2:]

    def _section(self, line: int) -> str:
        headings = [text for text in self.text.splitlines()[:line] if text.startswith("## ")]
        return headings[-1].removeprefix("## ") if headings else ""


def says(expected: str, printed: str) -> bool:
    """Tell if something was printed as a page shows it: spaces do not count, and `…` stands for anything."""
    parts = [re.escape(_even(part)) for part in expected.split(ANYTHING)]
    return re.fullmatch(".*?".join(parts), _even(printed), re.DOTALL) is not None


def _even(text: str) -> str:
    """Return a text with single spaces, and none at the ends of lines: columns widen with their contents."""
    return re.sub(r" *\n *", "\n", re.sub(r"[ \t]+", " ", text))


def _last_line(block: Block) -> int:
    return block.line + block.text.count("\n") + 1


def _first_table(text: str) -> Iterator[tuple[str, ...]]:
    began = False
    for line in text.splitlines():
        if line.startswith("|"):
            began = True
            yield tuple(cell.strip() for cell in line.strip("|").split("|"))
        elif began:
            return
