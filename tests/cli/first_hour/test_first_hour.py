"""docs/first-hour.md, followed to the letter, and how long it takes to the first line of a run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab import reference
from lab.engines import binary
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.cli.first_hour.script import Reader, chapters
from tests.cli.first_hour.wheels import UV, build_ours, make_torch
from tests.size import FULL

if TYPE_CHECKING:
    from tests.cli.tenant import Tenant
    from tests.suite import SuiteReport

PAGE = (REPOSITORY / "docs/first-hour.md").read_text(encoding="utf-8")
INSTALL = "pip install trainplane torch"
CACHE = "--no-cache" if FULL else "--quiet"
"""A person's first time has nothing in a cache; CI's installs what it has."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    build_ours(folder)
    make_torch(folder)
    return folder


@pytest.fixture(scope="module")
def reader(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Return somebody with an empty home, for whom `pip install` takes the wheels of this checkout."""
    home = tmp_path_factory.mktemp("home")
    swaps = {"python3 -m venv hour": f"{UV} venv --quiet --python {sys.executable} hour", INSTALL: _install(wheels)}
    path = f"{home}/hour/bin:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name not in {"KUBECONFIG", "VIRTUAL_ENV"}}
    return Reader(home, {**kept, "HOME": str(home), "PATH": path, "COLUMNS": "120"}, swaps)


def _install(wheels: Path) -> str:
    """Return what installs as pip would: what we depend on, by its hashes, and the wheels."""
    uv = f"{UV} pip install {CACHE} --python hour/bin/python"
    return f"{uv} --require-hashes -r {REPOSITORY}/requirements/base.txt && {uv} --no-deps {wheels}/*.whl"


@pytest.fixture(scope="module")
def on_this_machine(reader: Reader, report: SuiteReport) -> Reader:
    """Follow the first chapter; the others stand on what it installs and writes."""
    begin = time.monotonic()
    moments = [reader.follow(block) for block in chapters(PAGE)["On this machine"]]
    report.figure("first_line_s", next(filter(None, moments)) - begin)
    return reader


def test_the_chapter_on_this_machine(on_this_machine: Reader, report: SuiteReport) -> None:
    assert (on_this_machine.folder / "train.py").exists()
    assert report.figures["first_line_s"] > 0


def test_the_chapter_on_a_cluster(on_this_machine: Reader, tenant: Tenant) -> None:
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    tenant.apply({**reference.with_image(runtime, image("torch")), "kind": "TrainingRuntime"})
    path = f"{on_this_machine.environment['PATH']}:{Path(binary('kubectl')).parent}"
    environment = {**on_this_machine.environment, "KUBECONFIG": str(tenant.kubeconfig), "PATH": path}
    with_cluster = replace(on_this_machine, environment=environment)
    for block in chapters(PAGE)["On a cluster"]:
        with_cluster.follow(block)


OFFICIAL = """
from kubeflow.trainer import CustomTrainer, LocalProcessBackendConfig, TrainerClient

def train():
    import os
    print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], flush=True)

client = TrainerClient(LocalProcessBackendConfig())
runtime = client.get_runtime("torch-distributed")
trainer = CustomTrainer(train, packages_to_install=["torch"], pip_index_urls=["INDEX"])
name = client.train(runtime=runtime, trainer=trainer)
for line in client.get_job_logs(name, follow=True):
    print(line, flush=True)
"""


@pytest.mark.full
def test_the_official_sdk_to_its_first_line(wheels: Path, tmp_path: Path, report: SuiteReport) -> None:
    """Its local backend has one node, and makes an environment with torch for each job: here with one of no size."""
    (wheel,) = wheels.glob("torch-*.whl")
    (tmp_path / "simple/torch").mkdir(parents=True)
    (tmp_path / "simple/torch/index.html").write_text(f'<a href="{wheel.as_uri()}">{wheel.name}</a>')
    (tmp_path / "hour.py").write_text(OFFICIAL.replace("INDEX", (tmp_path / "simple").as_uri()))
    path = f"{tmp_path}/venv/bin:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path}
    required = REPOSITORY / "requirements/official.txt"
    begin = time.monotonic()
    for words in (
        ("venv", "--quiet", "--python", sys.executable, "venv"),
        ("pip", "install", CACHE, "--python", "venv/bin/python", "--require-hashes", "-r", str(required)),
    ):
        subprocess.run([UV, *words], cwd=tmp_path, check=True, capture_output=True)
    with subprocess.Popen(
        ["timeout", "180", "venv/bin/python", "hour.py"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        printed = []
        for line in running.stdout:
            printed.append(line)
            if line.startswith("rank 0 of 1"):
                report.figure("official_first_line_s", time.monotonic() - begin)
    assert "official_first_line_s" in report.figures, "".join(printed)[-3000:]
