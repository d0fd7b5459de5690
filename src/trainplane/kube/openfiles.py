"""How many files a process may have open: connections, streams of logs, journals."""

from __future__ import annotations

import contextlib
import resource


def raise_limit() -> int:
    """Raise the soft limit to the hard one and return it, as Go does for every process.

    Many systems start processes with a soft limit of 1,024, for programs that still call `select`; a server with a
    thousand callers would then not reach its API server either.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # what the system does not give, it does not
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
