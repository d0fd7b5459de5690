"""SDK and CLI as on a Mac and on Windows: without anything that only Linux has, against a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from lab import reference
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster

NAME = "afar"
SYSTEMS = sized(("win32",), full=("darwin", "win32"))
"""What a Mac lacks, Windows lacks as well."""


def elsewhere(system: str, *words: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of ours, or a program, on a machine that is not Linux; what has no encoding named is an error."""
    program = f"from tests.cli.platforms.elsewhere import move_to; move_to({system!r})\n{code}"
    way = ["-c", program] if code else ["-m", "tests.cli.platforms.elsewhere", system, *words]
    return subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", *way],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}/src", "PYTHONIOENCODING": "cp1252", "COLUMNS": "120"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[Path]:
    """Return a kubeconfig with a client certificate, of a namespace with a TrainJob that is suspended."""
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    runtime["metadata"]["name"] = NAME
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": NAME, "namespace": NAME},
        "spec": {"runtimeRef": {"name": NAME}, "suspend": True},
    }
    cluster.kubectl("create", "namespace", NAME)
    cluster.apply(reference.with_image(runtime, image("torch")), job)
    kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
    kubeconfig["contexts"][0]["context"]["namespace"] = NAME
    path = cluster.folder / f"{NAME}.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(kubeconfig))
    yield path
    cluster.kubectl("delete", "trainjobs", "--all", "--namespace", NAME)
    cluster.kubectl("delete", "clustertrainingruntime", NAME)
    cluster.kubectl("delete", "namespace", NAME, "--wait=false")


@pytest.mark.parametrize("system", SYSTEMS)
def test_everything_that_people_have_on_their_machines_imports(system: str) -> None:
    ran = elsewhere(system)
    assert (ran.stdout, ran.returncode) == ("all imported\n", 0), ran.stderr


def test_what_is_hidden_is_hidden() -> None:
    code = (
        "import os, sys, asyncio, signal\n"
        "print(hasattr(os, 'fork'), hasattr(signal, 'SIGKILL'), sys.platform)\n"
        "for name in ('fcntl', 'pwd', 'cryptography'):\n"
        "    try: __import__(name); print('there')\n"
        "    except ModuleNotFoundError: print('gone')\n"
        "try: open('/proc/self/stat')\n"
        "except FileNotFoundError: print('gone')\n"
    )
    assert elsewhere("win32", code=code).stdout.split() == ["False", "False", "win32", *["gone"] * 4]


COMMANDS = ("list", f"get {NAME}", f"logs {NAME}", f"events {NAME}", f"explain {NAME}", "runtimes", "queue")
_RUN_ALL = """
import contextlib, io, json
from trainplane.cli import main
told = {}
for line in %r:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*line.split(), "--kubeconfig", %r])
    told[line.split()[0]] = code, out.getvalue()
print(json.dumps(told))
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_commands_talk_to_a_cluster(served: Path, system: str) -> None:
    ran = elsewhere(system, code=_RUN_ALL % (COMMANDS, str(served)))
    assert ran.returncode == 0, ran.stderr
    assert "EncodingWarning" not in ran.stderr, ran.stderr
    told = json.loads(ran.stdout)
    assert {name: code for name, (code, _) in told.items() if code} == {"explain": 1}, ran.stderr  # it is suspended
    for name in ("list", "get", "explain", "runtimes"):
        assert NAME in told[name][1], name


def test_the_doctor_says_what_does_not_work_here(served: Path) -> None:
    ran = elsewhere("win32", "doctor", "--kubeconfig", str(served))
    assert "✓" in ran.stdout, ran.stderr  # though the console was said to speak cp1252
    assert "would be accepted (dry run)" in ran.stdout
    assert "need Linux" in ran.stdout


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("config", ["LocalProcessBackendConfig", "ContainerBackendConfig"])
def test_local_backends_say_what_they_need(system: str, config: str) -> None:
    code = (
        f"from trainplane import TrainerClient, {config}\n"
        f"try: TrainerClient({config}())\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    ran = elsewhere(system, code=code)
    assert ran.stdout.startswith(f"UnsupportedError {config} needs Linux, and this is {system}: use a cluster"), ran


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_sdk_submits_a_script_and_sees_it(served: Path, system: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('schön')\n", encoding="utf-8")
    code = (
        "from trainplane import KubernetesBackendConfig, ScriptTrainer, TrainerClient\n"
        f"client = TrainerClient(KubernetesBackendConfig(config_file={str(served)!r}))\n"
        f"trainer = ScriptTrainer('train.py', workspace={str(tmp_path)!r}, num_nodes=1)\n"
        f"name = client.train({NAME!r}, trainer=trainer)\n"
        "print([one.name for one in client.list_jobs()].count(name), client.get_job(name).num_nodes)\n"
        "client.delete_job(name)\n"
        "client.close()\n"
    )
    ran = elsewhere(system, code=code)
    assert ran.stdout == "1 1\n", ran.stderr
