"""A step ends with its own code, whatever libraries do at the interpreter's end."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ABORTS_AT_ITS_END = "import atexit, os, runpy, sys; atexit.register(os.abort); "


def ended(code: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", _ABORTS_AT_ITS_END + code, *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False, env=env)


def test_what_was_printed_is_out_and_the_code_is_the_step_s() -> None:
    told = ended("from trainplane.initializers.leaving import leave; sys.stdout.write('all of it'); leave(3)")
    assert (told.returncode, told.stdout) == (3, "all of it")


def test_nobody_who_reads_does_not_change_the_code() -> None:
    told = ended(
        "from trainplane.initializers.leaving import leave; sys.stdout.write('x'); os.close(1); leave(3)",
    )
    assert told.returncode == 3


def test_a_step_ends_so(tmp_path: Path) -> None:
    run = "sys.argv[0] = 'initializers'; runpy.run_module('trainplane.initializers', run_name='__main__')"
    told = ended(run, "dataset", str(tmp_path), env={"STORAGE_URI": "nowhere"})
    assert told.returncode > 0, told.stderr
    assert "nowhere" in told.stderr + told.stdout
