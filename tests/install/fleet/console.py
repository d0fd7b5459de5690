"""What a page shows of a terminal: commands after `$ `, and what they printed once."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fleet.guide.page import Page

_PROMPT = "$ "


@dataclass(frozen=True)
class Shown:
    """A command, what it printed, and what was set before it."""

    script: str
    printed: tuple[str, ...]


def shown(page: Page) -> list[Shown]:
    """Return the commands of a page's terminals, in order; variables that one sets are known to those after it."""
    settings, found = "", []
    for block in page.blocks():
        if block.language != "console":
            continue
        for part in f"\n{block.text}".split(f"\n{_PROMPT}")[1:]:
            command, printed = _parted(part.splitlines())
            if re.fullmatch(r"\w+=\S+", command):
                settings += f"{command}\n"
            else:
                found.append(Shown(settings + command, tuple(printed)))
    return found


def shape(line: str) -> str:
    """Return what stays of a line when it is printed again another day: numbers and spaces do not count."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "0", line)).strip()


def _parted(lines: list[str]) -> tuple[str, list[str]]:
    """Return a command, which goes on until its last quotation is closed, and the lines after it."""
    for count in range(1, len(lines) + 1):
        command = "\n".join(lines[:count])
        try:
            shlex.split(command)
        except ValueError:
            continue
        return command, [line for line in lines[count:] if line]
    raise ValueError(f"a command without an end: {lines[0]}")
