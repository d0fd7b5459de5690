"""`python -m trainplane.hub`: run the hub server."""

from __future__ import annotations

import logging
import sys

import uvloop

from trainplane.hub import settings
from trainplane.hub.errors import HubError
from trainplane.hub.main import serve
from trainplane.kube import loglines, openfiles
from trainplane.kube.errors import KubeError

log = logging.getLogger("trainplane.hub")


def main(arguments: list[str]) -> int:
    """Return the process's exit code: 0 after a clean end."""
    chosen = settings.parse(arguments)
    loglines.configure(chosen.log_level, "json")
    openfiles.raise_limit()
    code = 0
    try:
        uvloop.run(serve(chosen))
    except* (HubError, KubeError, OSError) as group:
        code = 1
        for fault in group.exceptions:
            log.error("hub server ends", extra={"error": str(fault)})  # noqa: TRY400 the message says it all
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
