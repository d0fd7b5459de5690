"""The process backend: each node is a process group of this machine, with the interpreter that the user names."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.client.backends.local.backend import LocalBackend
from trainplane.client.backends.process.runner import ProcessRunner
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.folder import JobFolder
    from trainplane.client.types.backends import LocalProcessBackendConfig


class ProcessBackend(LocalBackend):
    """Runs TrainJobs as processes."""

    kind = "process"

    def __init__(self, config: LocalProcessBackendConfig) -> None:
        """Take the configuration.

        Raises:
            InvalidError: there is no such interpreter.
        """
        super().__init__(config.state, config.runtime_source, config.secrets)
        self.config = config
        python = shutil.which(config.python) if config.python else sys.executable
        if not python:
            raise InvalidError(f"python: there is no interpreter {config.python!r}: write the path of one")
        self._python = str(Path(python).absolute())

    def _settings(self, uid: str) -> Tree:  # noqa: ARG002 names are drawn where folders are made
        kept = "" if self.config.cleanup_venv else str(self._jobs.parent / "packages")
        return {"python": self._python, "temporary": tempfile.gettempdir(), "packages": kept}

    def _runner(self, folder: JobFolder) -> ProcessRunner:
        return ProcessRunner(folder, folder.read("settings") or {})
