"""What the SDK logs, told to people: one line each on standard error, with nothing in it that steers a terminal."""

from __future__ import annotations

import logging
import sys

from trainplane.cli.output import Output


class _Telling(logging.Handler):
    """Prints warnings as errors are printed."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one; a newline in it was written by somebody else."""
        Output(sys.stderr).line(f"trainplane: {' '.join(record.getMessage().split())}")


def hear() -> None:
    """Print warnings of ours from now on."""
    log = logging.getLogger("trainplane")
    if not any(isinstance(one, _Telling) for one in log.handlers):
        log.addHandler(_Telling(logging.WARNING))
