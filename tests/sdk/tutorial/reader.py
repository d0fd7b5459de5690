"""docs/sdk.md as its reader follows it: blocks of Python in one notebook, commands of a shell between them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_BLOCK = re.compile(
    r"(?:^<!-- needs: (?P<needs>\w+) -->\n)?^```(?P<language>python|sh)\n(?P<code>.*?)^```\n"
    r"(?:^```text\n(?P<prints>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block, what it needs, and what it prints, where the page says that."""

    line: int
    language: str
    code: str
    needs: str = ""
    prints: str | None = None

    def cell(self, swaps: Mapping[str, str]) -> str:
        """Return it as a notebook's cell; `swaps` replaces what is different on this machine."""
        code = self.code
        for old, new in swaps.items():
            code = code.replace(old, new)
        return code if self.language == "python" else f"%%bash -eu\n{code}"


def read_blocks(page: str) -> list[Block]:
    """Return the blocks of a page that a reader runs, in their order."""
    return [
        Block(
            page[: found.start("language")].count("\n") + 1,
            found["language"],
            found["code"],
            found["needs"] or "",
            found["prints"],
        )
        for found in _BLOCK.finditer(page)
    ]
