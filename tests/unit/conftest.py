"""What unit tests of every room may ask for."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, as in a person's Python; a run in a shell's background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
