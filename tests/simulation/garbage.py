"""The garbage collector of a history: it waits until the end, and then looks at what this history made and at no more.

A collector that comes by every so many allocations takes a fifth of a history's time, and comes when it likes: what it
finds, an error of a task that nobody awaits, would be of this history or of the next.
"""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Collect nothing within the block unless `collect` is called."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def collect() -> None:
    """Collect what was made since the block began: until then, all of it is of the youngest generation."""
    gc.collect(0)
