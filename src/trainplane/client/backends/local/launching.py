"""Starting a supervisor, and the process that cleans up after it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trainplane
from trainplane.client.errors import BrokenBackendError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.client.backends.local.folder import JobFolder

_PROGRAM: Final = """
import os, sys
if os.fork(): os._exit(0)
os.setsid()
root, folder, lock = sys.argv[1:]
child = os.fork()
if child:
    with open(os.devnull) as nothing: os.dup2(nothing.fileno(), 0)
    if os.waitpid(child, 0)[1]:
        sys.path.insert(0, root)
        from trainplane.client.backends.supervision import bury
        bury(folder)
else:
    os.setpgid(0, 0)
    secrets = sys.stdin.read()
    sys.path.insert(0, root)
    from trainplane.client.backends.supervision import supervise
    supervise(secrets, folder, int(lock))
"""
"""Three generations. The client's child leaves at once, so that the client has no child to care for. Its child waits
for the supervisor, holds the lock with it, and buries the job if the supervisor was killed or failed; it never sees the
secrets. Ours is found wherever this process has it from, also if that is no installed package."""


def launch(folder: JobFolder, lock: int, secrets: Mapping[str, Mapping[str, str]]) -> None:
    """Start the supervisor of a job and hand it the lock. Secrets go through a pipe, never to the disk.

    Raises:
        BrokenBackendError: it could not be started.
    """
    root = Path(trainplane.__file__).parent.parent
    log = folder.path / "supervisor.log"
    with log.open("a") as out:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(root), str(folder.path), str(lock)],
            input=json.dumps({name: dict(values) for name, values in secrets.items()}),
            stdout=out,
            stderr=out,
            text=True,
            cwd=folder.path,
            pass_fds=(lock,),
            start_new_session=True,
            check=False,
        )
    if done.returncode:
        raise BrokenBackendError(f"the supervisor of TrainJob {folder.name} did not start: {log.read_text().strip()}")
