"""The two processes behind a local job (`local/launching`): its supervisor, and the one that cleans up after it.

Here, above both, because each makes the runner that its job's settings ask for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.client.backends.local import orphans
from trainplane.client.backends.local.folder import JobFolder
from trainplane.client.backends.local.supervisor import Supervisor

if TYPE_CHECKING:
    from trainplane.client.backends.local.runner import Runner


def supervise(secrets: str, path: str, lock: int) -> None:
    """Run the job of a folder; `lock` is the open file that the client locked."""
    folder = JobFolder(Path(path))
    os.set_inheritable(lock, False)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    asyncio.run(Supervisor(folder, _runner(folder), json.loads(secrets)).run())


def bury(path: str) -> None:
    """Bury the job of a folder whose supervisor is gone, if it is still there."""
    folder = JobFolder(Path(path))
    if folder.exists():
        orphans.bury(folder, _runner(folder))


def _runner(folder: JobFolder) -> Runner:
    settings = folder.read("settings") or {}
    if settings["kind"] == "process":
        from trainplane.client.backends.process.runner import ProcessRunner  # noqa: PLC0415 only the one that is needed

        return ProcessRunner(folder, settings)
    from trainplane.client.backends.container.runner import ContainerRunner  # noqa: PLC0415 as above

    return ContainerRunner(folder, settings)
