"""What is measured side by side: processes that serve, processes that read, and what a pass costs both.

Wall time is the machine's and its other guests'; seconds of CPU, of the reader and its servers, are the way's own.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.cache.test_torch import REPOSITORY, torch_python

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COMPARED: Final = REPOSITORY / "build/compared"
"""Packages that only comparisons need, for the Python of the lab's torch."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
Answer = dict[str, float]


class Reader:
    """A process that reads when it is told to: our Python, or that of the lab's torch."""

    def __init__(self, torch: Path | None = None) -> None:
        command, env = torch_side(torch) if torch else (sys.executable, dict(os.environ))
        self._module = "torch_readers" if torch else "readers"
        self._process = subprocess.Popen(
            [command, "-m", f"tests.cache.{self._module}"],
            cwd=REPOSITORY,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, words: Mapping[str, Any]) -> None:
        """Say something to the process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Answer:
        """Return what the process says next."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self._module} ended with {self._process.wait(60)}"
        said: Answer = json.loads(line)
        return said

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


@dataclass(frozen=True)
class Side:
    """A way to read, where, by whom and with whose help."""

    reader: Reader
    way: str
    place: str
    servers: tuple[subprocess.Popen[bytes], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin a pass."""
        self.reader.tell({"way": self.way, "place": self.place, **self.options})

    def end(self) -> Answer:
        """Return what a pass took."""
        return self.reader.hear()

    def read(self) -> Answer:
        """Make one pass; its servers' CPU is counted too."""
        before = sum(map(cpu_seconds, self.servers))
        self.begin()
        answer = self.end()
        answer["cpu"] += sum(map(cpu_seconds, self.servers)) - before
        return answer


@dataclass(frozen=True)
class Costs:
    """What passes of one way took."""

    gb_per_s: tuple[float, ...]
    cpu_s_per_gb: tuple[float, ...]

    @property
    def speed(self) -> float:
        """The median, in GB/s."""
        return statistics.median(self.gb_per_s)

    @property
    def cpu(self) -> float:
        """The median, in CPU-seconds per GB."""
        return statistics.median(self.cpu_s_per_gb)


def alternated(sides: Mapping[str, Side], rounds: int, row_bytes: int) -> dict[str, Costs]:
    """Return what each side takes for its rows, by rounds in which each has its turn; a first one is not counted."""
    found: dict[str, list[Answer]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            answer = side.read()
            if number:
                found[name].append(answer)
    return {name: _costs(answers, row_bytes) for name, answers in found.items()}


def _costs(answers: list[Answer], row_bytes: int) -> Costs:
    sizes = [answer["rows"] * row_bytes / 1e9 for answer in answers]
    return Costs(
        tuple(size / answer["seconds"] for size, answer in zip(sizes, answers, strict=True)),
        tuple(answer["cpu"] / size for size, answer in zip(sizes, answers, strict=True)),
    )


@contextmanager
def serving(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for as long as it is needed."""
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def torch_side(folder: Path) -> tuple[str, dict[str, str]]:
    """Return the command of the lab's torch, and its environment.

    It is a script: what Python starts of itself is started by one name, and must find the image's own libraries.
    """
    command, env = torch_python()
    script = folder / "torch-python"
    if not script.exists():
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
    paths = f"{env['PYTHONPATH']}:{COMPARED}"
    return str(script), {**env, "PYTHONPATH": paths, "READER_PYTHON": str(script)}


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return what a process has used so far, all its threads together."""
    user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS
