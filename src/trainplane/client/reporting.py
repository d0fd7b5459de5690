"""Progress from inside a training process, to where `get_job(...).progress` reads it.

The standard library is enough. Outside a TrainJob, or where the operator does not take progress, it does nothing. This
file is also shipped with code that imports trainplane, to images that have not got it: Python 3.8 must do.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INTERVAL: Final = 5.0
"""Seconds between two reports: training loops call this at every step."""
TIMEOUT: Final = 5.0
"""Seconds that a report may take: training waits for it."""
MAX_METRICS: Final = 256
MAX_CHARACTERS: Final = 64
"""What the operator takes of a metric's name and of its value."""

_log = logging.getLogger(__name__)


class Reporter:
    """Sends progress, not too often. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: float | None = None

    def report(self, status: Mapping[str, Any], *, is_last: bool = False) -> bool:
        """Send a status; return whether it arrived. Never raises: progress must not stop a training."""
        file = os.environ.get(names.STATUS_FILE)
        url, token_file = os.environ.get(names.STATUS_URL), os.environ.get(names.STATUS_TOKEN)
        if not (file or (url and token_file)) or not self._may_send(is_last=is_last):
            return False
        if not url or not token_file:
            return _keep(str(file), status)
        try:
            answer, reason = _post(url, token_file, {"trainerStatus": dict(status)})
        except (OSError, ValueError, RuntimeError) as error:
            _log.warning("progress was not reported", extra={"url": url, "error": str(error)})
            return False
        if answer != 200:
            _log.warning("progress was refused", extra={"url": url, "status": answer, "reason": reason})
            self._last = None
        return answer == 200

    def _may_send(self, *, is_last: bool) -> bool:
        now = self._clock()
        with self._lock:
            if not is_last and self._last is not None and now - self._last < INTERVAL:
                return False
            self._last = now
            return True


_reporter = Reporter()


def update_trainjob_status(
    progress_percent: int | None = None,
    estimated_remaining_seconds: int | None = None,
    metrics: Mapping[str, float | str] | None = None,
) -> bool:
    """Report the progress of the training that this process is part of.

    Call it as often as you like, in one process of the job: it reports every five seconds at most, and at 100 percent.

    Args:
        progress_percent: From 0 to 100.
        estimated_remaining_seconds: How long it will still take.
        metrics: Values by name, such as `{"loss": 0.3}`: 256 at most, of 64 characters.

    Returns:
        Whether it was reported now. False outside a TrainJob; never raises.
    """
    is_last = progress_percent is not None and progress_percent >= 100
    return _reporter.report(_status(progress_percent, estimated_remaining_seconds, metrics), is_last=is_last)


def _status(percent: int | None, seconds: int | None, metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    status: dict[str, Any] = {"lastUpdatedTime": datetime.now(timezone.utc).isoformat()}  # noqa: UP017 as Python 3.8 has it
    if percent is not None:
        status["progressPercentage"] = max(0, min(100, int(percent)))
    if seconds is not None:
        status["estimatedRemainingSeconds"] = max(0, int(seconds))
    if metrics:
        status["metrics"] = [
            {"name": str(name)[:MAX_CHARACTERS], "value": str(value)[:MAX_CHARACTERS]}
            for name, value in list(metrics.items())[:MAX_METRICS]
        ]
    return status


def _keep(file: str, status: Mapping[str, Any]) -> bool:
    """Write a status to a file, whole or not at all; tell whether that could be."""
    import json  # noqa: PLC0415 as below

    partial = f"{file}.{os.getpid()}"
    try:
        with open(partial, "w", encoding="utf-8") as target:  # noqa: PTH123 pathlib is slow to load
            json.dump(status, target)
        os.replace(partial, file)  # noqa: PTH105 the same
    except (OSError, ValueError) as error:
        _log.warning("progress was not reported", extra={"file": file, "error": str(error)})
        return False
    return True


def _post(url: str, token_file: str, body: Mapping[str, Any]) -> tuple[int, str]:
    """Send a body and return status and reason. Goes straight to the operator, whatever proxies the image names."""
    import json  # noqa: PLC0415 the SDK must load fast, and few processes report
    import ssl  # noqa: PLC0415 the same
    from http.client import HTTPException, HTTPSConnection  # noqa: PLC0415 the same
    from pathlib import Path  # noqa: PLC0415 the same
    from urllib.parse import urlsplit  # noqa: PLC0415 the same

    place = urlsplit(url)
    if place.scheme != "https" or not place.hostname:
        raise ValueError(f"{names.STATUS_URL} must begin with https://, and is {url}")
    trusted = os.environ.get(names.STATUS_CA_CERT) or None
    context = ssl.create_default_context(cafile=trusted)
    token = Path(token_file).read_text(encoding="utf-8").strip()
    connection = HTTPSConnection(place.hostname, place.port, timeout=TIMEOUT, context=context)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", place.path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read(500).decode(errors="replace")
    except HTTPException as error:
        raise OSError(f"no answer that makes sense: {error}") from error
    finally:
        connection.close()
