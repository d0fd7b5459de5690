"""The unit tests of what people install, on every Python that we promise: interpreters from uv, or those it finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from tests.suite import SuiteReport

UV = Path(sys.executable).with_name("uv")
TESTED = ("tests/unit/client", "tests/unit/cli", "tests/unit/api")
PATIENCE = 1800


def _uv(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([UV, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.full
@pytest.mark.timeout(PATIENCE + 300)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_unit_tests_pass_on_each_python(version: str, tmp_path: Path, report: SuiteReport) -> None:
    python = tmp_path / "venv/bin/python"
    made = _uv("venv", "--quiet", "--seed", "--python", version, tmp_path / "venv")
    if made.returncode:
        pytest.skip(f"no Python {version} is to be had here: {made.stderr.strip().splitlines()[-1]}")
    for words in (
        ("--require-hashes", "--requirement", REPOSITORY / "requirements/dev.txt"),
        ("--no-deps", "--no-build-isolation", "--editable", REPOSITORY),
    ):
        done = _uv("pip", "install", "--quiet", "--python", python, *words)
        assert done.returncode == 0, done.stderr
    ran = subprocess.run(
        [
            python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--suite",
            f"py{version}",
            *TESTED,
        ],
        cwd=REPOSITORY,
        env={**os.environ, "FULL": "0"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    closing = re.search(r"(\d+) passed, (\d+) failed", ran.stdout)
    assert closing is not None, ran.stdout[-2000:]
    report.figure(f"python_{version.replace('.', '_')}_passed", int(closing[1]))
    assert (closing[2], ran.returncode) == ("0", 0), ran.stdout[-4000:]
