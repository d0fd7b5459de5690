"""SDK and CLI as on a Mac and on Windows: without anything that only Linux has, against a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lab import trainplane
from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from lab.cluster import Cluster

SYSTEMS = ("darwin", "win32")


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
def served(cluster: Cluster) -> Cluster:
    """Return the cluster with our CRDs, a runtime and a TrainJob that nobody runs."""
    trainplane.install_crds(cluster)
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "from-afar", "namespace": "default"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}},
    }
    cluster.apply(job)
    return cluster


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


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (("list",), 0, "from-afar"),
        (("get", "from-afar"), 0, "from-afar"),
        (("logs", "from-afar"), 0, ""),
        (("events", "from-afar"), 0, ""),
        (("explain", "from-afar"), 1, "from-afar"),
        (("runtimes",), 0, ""),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_commands_talk_to_a_cluster(
    served: Cluster, system: str, words: tuple[str, ...], code: int, shown: str
) -> None:
    ran = elsewhere(system, *words, "--kubeconfig", str(served.kubeconfig))
    assert ran.returncode == code, ran.stderr
    assert shown in ran.stdout
    assert "EncodingWarning" not in ran.stderr, ran.stderr


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_doctor_says_what_does_not_work_here(served: Cluster, system: str) -> None:
    ran = elsewhere(system, "doctor", "--output", "json", "--kubeconfig", str(served.kubeconfig))
    report = json.loads(ran.stdout)
    assert report["reached"], report
    text = elsewhere(system, "doctor", "--kubeconfig", str(served.kubeconfig))
    assert "✗" in text.stdout, text.stderr  # though the console was said to speak cp1252


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
def test_the_sdk_submits_a_function_and_follows_it(
    served: Cluster, system: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    script = tmp_path_factory.mktemp("afar") / "train.py"
    script.write_text("print('schön')\n", encoding="utf-8")
    code = (
        "from trainplane import KubernetesBackendConfig, ScriptTrainer, TrainerClient\n"
        f"client = TrainerClient(KubernetesBackendConfig(config_file={str(served.kubeconfig)!r}))\n"
        f"trainer = ScriptTrainer('train.py', workspace={str(script.parent)!r}, num_nodes=1)\n"
        "name = client.train('torch-distributed', trainer=trainer)\n"
        "print(client.get_job(name).status, [one.name for one in client.list_jobs()].count(name))\n"
        "client.delete_job(name); client.close()\n"
    )
    ran = elsewhere(system, code=code)
    assert ran.stdout == "Created 1\n", ran.stderr
