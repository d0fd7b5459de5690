"""What a terminal shows, as a page: tmux plays the terminal, and what it captures becomes HTML that Chromium shows.

The colours of a terminal are its user's; here they are two sets that reach 4.5:1, so what is found to be illegible is a
fault of what was printed (faint on faint, one colour on another), not of the palette.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final

from lab.errors import StartError
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE: Final = 60.0
"""Seconds for a program to show what is waited for, on a busy machine."""
LIGHT: Final = ("#24292f", "#a40e26", "#116329", "#6a4500", "#0550ae", "#6639ba", "#1b6c73", "#57606a")
DARK: Final = ("#8b949e", "#ff9a92", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#f0f6fc")
"""Black, red, green, yellow, blue, magenta, cyan, white; bright ones are the same."""
_SEQUENCE: Final = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\([A-Z0-9]|\x0e|\x0f")
_LEVELS: Final = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True)
class Style:
    """How letters are written."""

    front: str = ""
    back: str = ""
    bold: bool = False
    dim: bool = False
    reverse: bool = False
    underline: bool = False

    def css(self, ground: str, text: str) -> str:
        """Return it on a ground with a text of these colours."""
        front, back = self.front or text, self.back or ground
        if self.reverse:
            front, back = back, front
        parts = [f"color:{front}", f"background:{back}"]
        parts += ["font-weight:700"] * self.bold + ["text-decoration:underline"] * self.underline
        parts += [f"color:color-mix(in srgb, {front} 75%, {back})"] * self.dim
        return ";".join(parts)


def capture(words: Sequence[str], columns: int, rows: int, *, until: str) -> str:
    """Run a program in a terminal of that size and return what it shows, colours too, once `until` is on it.

    Raises:
        TimeoutError: it is not there in time; the message has what was.
    """
    if shutil.which("tmux") is None:
        raise RuntimeError("there is no tmux: lab/packages.sh installs it")
    socket = f"looks-{uuid.uuid4().hex[:12]}"
    tmux = ("tmux", "-L", socket, "-f", "/dev/null")
    size = ("-x", str(columns), "-y", str(rows))
    subprocess.run([*tmux, "-u", "new-session", "-d", *size, "-s", "looks", *words], check=True)
    try:
        try:
            wait_for("the screen", lambda: until in _screen(tmux), seconds=PATIENCE)
        except StartError:
            raise TimeoutError(f"{until!r} is not on the screen: {_screen(tmux)[-500:]!r}") from None
        return _screen(tmux, "-e")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def _screen(tmux: Sequence[str], *how: str) -> str:
    words = [*tmux, "capture-pane", "-p", *how, "-t", "looks"]
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout


def terminal_page(captured: str, columns: int, *, dark: bool) -> str:
    """Return what was captured as a page of so many columns."""
    ground, text = ("#0d1117", "#e6edf3") if dark else ("#ffffff", "#1f2328")
    lines = (_line(line, DARK if dark else LIGHT, ground, text) for line in captured.rstrip("\n").split("\n"))
    style = (
        f"body{{margin:0;background:{ground};color:{text}}}"
        f"pre{{margin:0;padding:8px;width:{columns}ch;overflow:hidden;"
        "font:14px/18px 'DejaVu Sans Mono',monospace}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>terminal</title>'
        f"<style>{style}</style></head><body><pre>{chr(10).join(lines)}</pre></body></html>"
    )


def _line(line: str, palette: Sequence[str], ground: str, text: str) -> str:
    spans = ""
    for style, words in _styled(line, palette):
        if words:
            spans += f'<span style="{style.css(ground, text)}">{escape(words)}</span>'
    return spans


def _styled(line: str, palette: Sequence[str]) -> Iterator[tuple[Style, str]]:
    style, at = Style(), 0
    for found in _SEQUENCE.finditer(line):
        yield style, line[at : found.start()]
        at = found.end()
        if found[1] is not None:
            style = _changed(style, [int(code or 0) for code in re.split("[;:]", found[1])], palette)
    yield style, line[at:]


def _changed(style: Style, codes: list[int], palette: Sequence[str]) -> Style:
    """Return a style after a sequence of codes, as terminals understand them."""
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = Style()
        elif code in {38, 48}:
            colour = _extended(codes, palette)
            style = replace(style, front=colour) if code == 38 else replace(style, back=colour)
        elif code in _SWITCHES:
            style = replace(style, **_SWITCHES[code])
        elif 30 <= code % 60 <= 37 or 90 <= code <= 97:
            style = replace(style, front=palette[code % 10])
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = replace(style, back=palette[code % 10])
    return style


_SWITCHES: Final[dict[int, dict[str, Any]]] = {
    1: {"bold": True},
    2: {"dim": True},
    4: {"underline": True},
    7: {"reverse": True},
    22: {"bold": False, "dim": False},
    24: {"underline": False},
    27: {"reverse": False},
    39: {"front": ""},
    49: {"back": ""},
}


def _extended(codes: list[int], palette: Sequence[str]) -> str:
    """Return a colour of 256 or of all, and take its codes away."""
    kind = codes.pop(0) if codes else 0
    if kind == 2:
        red, green, blue = (codes.pop(0) if codes else 0 for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = codes.pop(0) if codes else 0
    if number < 16:
        return palette[number % 8]
    if number >= 232:
        level = 8 + 10 * (number - 232)
        return f"#{level:02x}{level:02x}{level:02x}"
    cube = number - 16
    parts = (_LEVELS[cube // 36], _LEVELS[cube // 6 % 6], _LEVELS[cube % 6])
    return "#{:02x}{:02x}{:02x}".format(*parts)
