from __future__ import annotations

import io
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers.sending import Output
from trainplane.initializers.console import Console
from trainplane.initializers.paths import OURS
from trainplane.initializers.program import run
from trainplane.initializers.secrets import Secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Outcome:
    """How a run ended and what it said."""

    code: int
    out: str
    err: str
    message: str

    @property
    def cause(self) -> str:
        return self.message.partition(":")[0]


class Step:
    """The program in this process, on a folder of its own."""

    def __init__(self, tmp: Path) -> None:
        self.folder = tmp / "workspace"
        self.log = tmp / "termination-log"

    def run(self, uri: str, what: str = "dataset", **env: str) -> Outcome:
        self.log.write_text("")
        out, err = io.StringIO(), io.StringIO()
        given = {"STORAGE_URI": uri, "RETRY_SECONDS": "5", "STALL_SECONDS": "1", "PART_MIB": "1", **env}
        code = run(what, given, self.folder, Console(Secrets(given), out, err, self.log))
        return Outcome(code, out.getvalue(), err.getvalue(), self.log.read_text())

    def content(self) -> dict[str, bytes]:
        """What training would see."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and path.relative_to(self.folder).parts[0] != OURS
        }


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path)


@pytest.fixture(autouse=True)
def _logging_again() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)
