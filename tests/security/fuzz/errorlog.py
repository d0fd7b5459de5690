"""Hears what servers log as their own fault: an exception that was caught at a boundary is a crash all the same."""

from __future__ import annotations

import logging
from typing import Final

_LOGGERS: Final = ("trainplane", "aiohttp.server", "asyncio")


class ErrorLog(logging.Handler):
    """Keeps the first error that was logged; `check` raises it. Takes over these loggers until `close`."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._first: logging.LogRecord | None = None
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            logger.addHandler(self)
            logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self._first = self._first or record

    def check(self) -> None:
        """Raise what was logged since the last look."""
        record, self._first = self._first, None
        if record is None:
            return
        error = record.exc_info[1] if record.exc_info else None
        raise error or AssertionError(record.getMessage())

    def close(self) -> None:
        """Let the loggers go."""
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            logger.removeHandler(self)
            logger.propagate = True
        super().close()
