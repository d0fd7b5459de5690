from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Never

import trainplane
from trainplane.cli import main

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[3]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_version_is_that_of_pyproject_toml() -> None:
    assert trainplane.__version__ == DECLARED, "run `make .venv/stamp`: the checkout is installed with another version"
    assert "__version__" in dir(trainplane)


def test_sources_that_nobody_installed_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Never:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert trainplane.__version__ == "0+unknown"


def test_version_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"trainplane {re.escape(DECLARED)}, Python 3\.\d+\.\S+", first)
    assert second == "API trainer.kubeflow.org/v1alpha1"
    assert main(["version", "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["trainplane"], shown["api"]) == (DECLARED, "trainer.kubeflow.org/v1alpha1")


def test_no_cluster_is_asked() -> None:
    environment = {**os.environ, "KUBECONFIG": "/nowhere", "PYTHONPATH": str(ROOT / "src")}
    program = "import sys, trainplane.cli as c; c.main(['version']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert not {"aiohttp", "trainplane.kube.client"} & set(done.stdout.splitlines()[-1].split())
