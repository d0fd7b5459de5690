"""Log lines: a constant message and keys, one JSON object a line, or words for people.

Everything logs through `logging` with `extra={...}`; this is the one place that says what becomes of it.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "panic": logging.CRITICAL,
}


def level_of(text: str) -> int:
    """Return the level of a name, or of a verbosity as klog and zap count it. Raises ValueError."""
    if text.lstrip("-").isdigit():
        return logging.DEBUG if int(text) >= 5 else logging.INFO
    if text not in _LEVELS:
        raise ValueError(f"log level {text!r} is none of {', '.join(_LEVELS)}, nor a number")
    return _LEVELS[text]


class JsonLines(logging.Formatter):
    """One JSON object a line, with the names of keys that Kubernetes' own controllers use."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "level": record.levelname.lower(),
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
            "msg": record.getMessage(),
            **keys_of(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            line["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class Words(logging.Formatter):
    """`12:30:45 INFO message key=value`, for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        keys = "".join(f" {name}={value}" for name, value in keys_of(record).items())
        text = f"{time} {record.levelname} {record.getMessage()}{keys}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def keys_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what was given as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def configure(level: int, form: str) -> None:
    """Log to stderr from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Words())
    logging.basicConfig(level=level, handlers=[handler], force=True)
