"""A laptop that ships code, and a node that knows nothing of it."""

from __future__ import annotations

import importlib
import itertools
import linecache
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainplane.client.code.shipment import Setting, Shipment, ship_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainplane.client.types.trainers import Workspace

_cells = itertools.count()


@dataclass
class Laptop:
    """Where the user writes code: modules, scripts, notebooks."""

    folder: Path

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip("\n"))
        importlib.invalidate_caches()
        return file

    def function(self, module: str, name: str = "train") -> Any:
        return getattr(importlib.import_module(module), name)

    def script(self, text: str, path: str = "job.py") -> dict[str, Any]:
        """Run a script as `python job.py` does, up to its end."""
        file = self.write(path, text)
        namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(file)}
        exec(compile(file.read_text(), str(file), "exec"), namespace)  # noqa: S102 that is what running is
        return namespace


@dataclass
class Notebook:
    """Cells, run as ipykernel runs them: in one namespace, their text in linecache."""

    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    names: list[str] = field(default_factory=list)

    def run(self, text: str) -> None:
        text = textwrap.dedent(text).lstrip("\n")
        name = f"/tmp/ipykernel_{os.getpid()}/{next(_cells)}.py"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        self.names.append(name)
        exec(compile(text, name, "exec", dont_inherit=True), self.namespace)  # noqa: S102 that is what running is

    def __getitem__(self, name: str) -> Any:
        return self.namespace[name]


@dataclass
class Node:
    """A container: no variables but its own, a folder for temporary files, nothing of ours installed."""

    folder: Path
    python: str = sys.executable
    env: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        path = f"{self.folder / 'bin'}:{Path(self.python).parent}:/usr/bin:/bin"
        return {"PATH": path, "TMPDIR": str(temporary), **self.env}

    def words(self, shipment: Shipment) -> list[str]:
        assert shipment.command[0] == "python3"
        return [self.python, *shipment.command[1:], *shipment.args]

    def run(self, shipment: Shipment, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(shipment),
            env=self.environment,
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def says(self, shipment: Shipment, cwd: Path | None = None) -> str:
        """Return what a run printed that went well."""
        done = self.run(shipment, cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def program(self, name: str, text: str) -> None:
        """Put a program of Python on the node's PATH."""
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}")
        file.chmod(0o755)

    def package(self, path: str, text: str) -> None:
        """Put a module into the node's image."""
        file = self.folder / "image" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in itertools.takewhile(lambda folder: folder.name != "image", file.parents):
            (folder / "__init__.py").touch()
        file.write_text(textwrap.dedent(text))
        self.env["PYTHONPATH"] = str(self.folder / "image")


def ship(
    func: Callable[..., Any],
    func_args: Mapping[str, Any] | None = None,
    folder: str | Path | Workspace | None = None,
    **setting: Any,
) -> Shipment:
    """Ship a function."""
    return ship_function(func, func_args, folder=folder, setting=Setting(**setting))
