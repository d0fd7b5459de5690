"""`python -m trainplane.operator --config FILE`: run one replica of the operator."""

from __future__ import annotations

import logging
import sys

import uvloop

from trainplane.api.errors import ConfigurationError
from trainplane.kube import loglines, openfiles
from trainplane.kube.errors import KubeError
from trainplane.operator import settings
from trainplane.operator.errors import OperatorError
from trainplane.operator.main import serve

log = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    """Run until told to end; returns the exit code, 1 for anything but a clean end."""
    try:
        chosen = settings.parse(arguments)
        loglines.configure(chosen.log_level, chosen.log_format)
    except (ConfigurationError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    openfiles.raise_limit()
    code = 0
    try:
        uvloop.run(serve(chosen))
    except* (KubeError, OperatorError, OSError) as group:
        code = 1
        for fault in group.exceptions:
            log.error("operator ends", extra={"error": str(fault)})  # noqa: TRY400 the message says it all
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
