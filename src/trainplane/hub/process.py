"""A process of the hub, from its first log line to its exit code."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import uvloop

from trainplane.hub.errors import HubError
from trainplane.kube import loglines, openfiles
from trainplane.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Coroutine

log = logging.getLogger("trainplane.hub")


def run(serving: Coroutine[Any, Any, None], log_level: str) -> int:
    """Run a server to its end; returns the exit code, 0 after a clean end."""
    loglines.configure(loglines.level_of(log_level), "json")
    openfiles.raise_limit()
    code = 0
    try:
        uvloop.run(serving)
    except* (HubError, KubeError, OSError) as group:
        code = 1
        for fault in group.exceptions:
            log.error("hub server ends", extra={"error": str(fault)})  # noqa: TRY400 the message says it all
    return code
