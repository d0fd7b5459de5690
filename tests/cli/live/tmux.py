"""A person at a terminal: tmux keeps the screen, keys are sent to it, and it changes its size."""

from __future__ import annotations

import shlex
import subprocess
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.errors import StartError
from lab.processes import wait_for

PATIENCE = 75.0
"""Seconds for what must come on the screen: less than a test may take, so that what is there instead is told."""

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Terminal:
    """A terminal in which one command runs in a shell, which says its exit code and stays."""

    def __init__(self, socket: str) -> None:
        self._tmux = ("tmux", "-L", socket, "-f", "/dev/null")

    def begin(self, words: Sequence[str], environment: Mapping[str, str], columns: int, rows: int) -> None:
        """Begin a command in a terminal of that size."""
        shell = f"{shlex.join(words)}; echo ended with $?; exec sleep 1000"
        size = ["-x", str(columns), "-y", str(rows)]
        command = [*self._tmux, "-u", "new-session", "-d", *size, "-s", "here", "bash", "-c", shell]
        subprocess.run(command, env=dict(environment), check=True, timeout=PATIENCE)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size, as a person does with the mouse."""
        self._ask("resize-window", "-t", "here", "-x", str(columns), "-y", str(rows))

    def press(self, key: str) -> None:
        """Press a key: `C-c`."""
        self._ask("send-keys", "-t", "here", key)

    def screen(self) -> str:
        """Return what is on the screen."""
        return self._ask("capture-pane", "-p", "-t", "here")

    def until(self, *texts: str, rows: int = 0) -> str:
        """Wait until all texts are on the screen, and something in so many rows, and return it."""
        shown = ""

        def is_shown() -> bool:
            nonlocal shown
            shown = self.screen()
            return all(text in shown for text in texts) and len(shown.rstrip().split("\n")) >= rows

        try:
            wait_for("the screen", is_shown, seconds=PATIENCE)
        except StartError:
            missing = [text for text in texts if text not in shown]
            raise AssertionError(f"{missing} are not on the screen:\n{shown}") from None
        return shown

    def end(self) -> None:
        """Close the terminal, and end what runs in it."""
        self._ask("kill-server")

    def _ask(self, *words: str) -> str:
        asked = [*self._tmux, *words]
        return subprocess.run(asked, check=False, capture_output=True, text=True, timeout=PATIENCE).stdout


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Make a terminal of one's own."""
    made = Terminal(f"trainplane-{uuid.uuid4().hex[:12]}")
    try:
        yield made
    finally:
        made.end()
