"""Everything that a person or the kubelet reads of a step, with no secret in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from trainplane.initializers.errors import InitializerError
    from trainplane.initializers.secrets import Secrets

TERMINATION_LOG: Final = Path("/dev/termination-log")
_MAX_MESSAGE: Final = 4096
"""Bytes that the kubelet keeps of a termination message."""


class Console:
    """Standard output and error, and the termination message."""

    def __init__(
        self, secrets: Secrets, out: TextIO | None = None, err: TextIO | None = None, log: Path | None = None
    ) -> None:
        self._secrets = secrets
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._log = log or TERMINATION_LOG

    @property
    def on_terminal(self) -> bool:
        """Whether a person looks on, so that a line may be written over."""
        return self._out.isatty()

    def learn(self, value: str) -> None:
        """Never print this value."""
        self._secrets.learn(value)

    def say(self, text: str, end: str = "\n") -> None:
        """Print a line."""
        self._out.write(self._secrets.hide(text) + end)
        self._out.flush()

    def bar(self, text: str) -> None:
        """Write over the last line of a terminal."""
        self._out.write(f"\r\x1b[2K{self._secrets.hide(text)}")
        self._out.flush()

    def fail(self, error: InitializerError) -> None:
        """Print why it failed and leave it as the termination message."""
        remedy = f"\n{error.remedy[:1].upper()}{error.remedy[1:]}." if error.remedy else ""
        text = self._secrets.hide(f"{error.cause}: {error}{remedy}")
        self._err.write(text + "\n")
        self._err.flush()
        self._leave(text)

    def conclude(self, facts: dict[str, Any]) -> None:
        """Print how it ended and leave it as the termination message: one line of JSON that is always whole."""
        shown = {name: self._secrets.hide(value) if isinstance(value, str) else value for name, value in facts.items()}
        longest = _MAX_MESSAGE
        while len((text := json.dumps(shown, ensure_ascii=False)).encode()) > _MAX_MESSAGE:
            longest //= 2
            shown = {name: value[:longest] if isinstance(value, str) else value for name, value in shown.items()}
        self._out.write(text + "\n")
        self._out.flush()
        self._leave(text)

    def _leave(self, text: str) -> None:
        """Write the termination message where the kubelet made a file for it; outside a pod there is none."""
        try:
            descriptor = os.open(self._log, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        except OSError:
            return
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(text.encode()[:_MAX_MESSAGE].decode(errors="ignore").encode())
