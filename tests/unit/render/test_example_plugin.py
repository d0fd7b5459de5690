"""The example package, installed for real: built by its own pyproject.toml, found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "plugin"
SOURCES = ("pyproject.toml", "README.md", "trainplane_dask.py", "runtime.yaml", "trainjob.yaml", "tests/test_dask.py")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Install the example without a network, and return what runs Python with it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    for name in SOURCES:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes((EXAMPLE / name).read_bytes())
    offline = (
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--no-cache-dir",
        "--disable-pip-version-check",
    )
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source)]
    done = subprocess.run(install, capture_output=True, text=True, check=False, cwd=source)
    assert done.returncode == 0, done.stderr
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(target), str(ROOT / "src")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=source, env=env)

    return run


def test_the_default_pipeline_has_it(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = "from trainplane.render.pipeline import Pipeline; print(*(p.name for p in Pipeline.default().plugins))"
    done = run("-c", code)
    assert done.stdout.split().count("Dask") == 1, done.stderr


def test_its_own_tests_pass(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout
