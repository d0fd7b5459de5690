"""Starting a supervisor, and cleaning up after one that is gone."""

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

_PROGRAM: Final = (
    "import os, sys; secrets = sys.stdin.read(); os.fork() and os._exit(0); os.setsid(); "
    "sys.path.insert(0, sys.argv.pop(1)); from trainplane.client.backends.local.supervisor import main; main(secrets)"
)
"""The client is left at once, so that it has no child to care for and need not wait for imports. Ours is found wherever
this process has it from, also if that is no installed package."""


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
