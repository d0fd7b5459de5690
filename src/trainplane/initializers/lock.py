"""One writer for a folder, whichever job, pod or node it is of.

The kernel's own lock (flock, which NFS and CephFS carry between nodes) is lost by a holder that dies, however it dies;
a file with a name in it would outlive its writer.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainplane.initializers.errors import VolumeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_POLL_SECONDS = 0.5


@contextmanager
def held(path: Path, waiting: Callable[[float], None]) -> Iterator[None]:
    """Hold the lock; while another has it, call `waiting` with the seconds so far, again and again."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        start = time.monotonic()
        while not _taken(descriptor, path):
            waiting(time.monotonic() - start)
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise VolumeError(
                f"the volume of {path} has no locks, so two jobs could write one folder at once",
                "use a storage class with file locks (NFSv4, CephFS, any block volume)",
            ) from error
        raise
    return True
