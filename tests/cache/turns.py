"""What a reading process does: `-m tests.cache.readers`, or `torch_readers`.

Once it can begin it says `{}`. Each line that it is told names a way and a place; it makes one pass, and answers with
what that took: rows, seconds, seconds of CPU. So ways are taken in turns, and no pass pays for an import.
"""

from __future__ import annotations

import json
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Pass = Callable[[], Mapping[str, float]]

BATCH = 2048
"""Rows that a training step takes: half a megabyte."""


def answer(*ways: Callable[..., Pass]) -> None:
    """Make a pass for each line; what a way prepares is prepared once."""
    prepared = {way.__name__: cache(way) for way in ways}
    _say({})
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        read = prepared[asked.pop("way")](**asked)
        began, used = time.perf_counter(), time.process_time()
        found = read()
        _say({"seconds": time.perf_counter() - began, "cpu": time.process_time() - used, **found})


def _say(words: Mapping[str, float]) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()
