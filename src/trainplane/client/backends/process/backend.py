"""The process backend: each node is a process group of this machine, with the interpreter that the user names."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.client.backends.local.backend import LocalBackend
from trainplane.client.backends.local.processes import end_recorded
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
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

    def _settings(self, uid: str) -> Tree:
        # Sockets have paths too, of 107 characters at most: their folder must have a short one.
        own = uid[:8] if self.config.cleanup_venv else f"kept-{os.getuid()}"
        scratch = Path(tempfile.gettempdir()) / f"tp-{own}"
        return {"python": self._python, "scratch": str(scratch), "keep_packages": not self.config.cleanup_venv}

    def _end(self, records: Tree, settings: Tree) -> None:
        for record in records.values():
            end_recorded(record["pid"], record["started"], record["mark"])
        if settings.get("scratch") and not settings.get("keep_packages"):
            shutil.rmtree(settings["scratch"], ignore_errors=True)
