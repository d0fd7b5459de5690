"""A script from a laptop to its end: on this machine, and on a cluster under a tenant's rights."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.tenant import PATIENCE, SCRIPTS
from tests.e2e.shell import shell_runtime
from tests.sdk.tutorial.interpreter import make_interpreter
from tests.size import FULL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.tenant import Tenant

TRAIN = """
import atexit, os, sys, time
atexit.register(time.sleep, 1)  # or the container runtime may lose the last words
rank = os.environ.get("JOB_COMPLETION_INDEX", os.environ.get("JAX_PROCESS_ID", os.environ.get("RANK")))
print("rank", rank, *sys.argv[1:], flush=True)
if "fail" in sys.argv and rank == "1":
    while not os.path.exists("/tmp/go"):
        time.sleep(0.1)
    raise RuntimeError("the data is not there")
if "stay" in sys.argv:
    time.sleep(600)
"""
TORCH = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("sum", int(total), "of", dist.get_world_size(), flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that commands are given in; local jobs are kept beside it."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "train.py").write_text(TRAIN)
    (here / "sums.py").write_text(TORCH)
    monkeypatch.chdir(here)
    return here


@dataclass(frozen=True)
class Laptop:
    """A machine with local jobs in a home of the test's own."""

    home: Path

    def start(self, *words: str, **streams: Any) -> subprocess.Popen[str]:
        environment = {**os.environ, "HOME": str(self.home)}
        program = [str(SCRIPTS / "trainplane"), words[0], "--local", *words[1:]]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        return subprocess.Popen(program, text=True, env=environment, **streams)

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command to its end and return what it printed."""
        with self.start(*words) as program:
            printed, said = program.communicate(timeout=PATIENCE)
        assert program.returncode == code, said
        return printed


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


def test_two_nodes_on_this_machine(laptop: Laptop) -> None:
    printed = laptop.run("run", "--runtime", "jax-distributed", "--nodes", "2", "train.py", "--", "--epochs", "3")
    assert sorted(printed.splitlines()) == ["[node-0] rank 0 --epochs 3", "[node-1] rank 1 --epochs 3"]


def test_ctrl_c_leaves_it_to_itself_and_it_is_deleted_later(laptop: Laptop) -> None:
    with laptop.start("run", "--runtime", "jax-distributed", "--name", "stays", "train.py", "stay") as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "[node-0] rank 0 stay\n"
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=PATIENCE)
    assert program.returncode == 130, said
    assert "TrainJob stays goes on without you" in said
    assert laptop.run("logs", "stays") == "rank 0 stay\n"
    assert "stays" in laptop.run("list", "-o", "name")
    laptop.run("explain", "stays")
    assert laptop.run("delete", "stays") == "TrainJob stays is deleted\n"


def test_ctrl_c_at_a_terminal_asks_what_to_do(laptop: Laptop) -> None:
    ours, theirs = pty.openpty()
    words = ["run", "--runtime", "jax-distributed", "--name", "asked", "train.py", "stay"]
    with laptop.start(*words, stdin=theirs, stderr=theirs, start_new_session=True) as program:
        os.close(theirs)
        assert program.stdout is not None
        assert program.stdout.readline() == "[node-0] rank 0 stay\n"
        program.send_signal(signal.SIGINT)
        said = until(ours, "continue to watch? ")
        os.write(ours, b"x\n")
        said = until(ours, "is deleted")
    os.close(ours)
    assert program.returncode == 130, said
    assert "goes on without you" not in said


def until(terminal: int, text: str) -> str:
    """Return what is shown at a terminal, up to a text."""
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, shown
        shown += os.read(terminal, 1 << 16).decode()
    return shown


@pytest.mark.skipif(not FULL, reason="torch takes its time to start; FULL=1")
def test_torch_on_two_nodes_of_this_machine(laptop: Laptop, tmp_path: Path) -> None:
    python = make_interpreter("torch", tmp_path)
    printed = laptop.run("run", "--python", str(python), "--nodes", "2", "sums.py")
    assert sorted(printed.splitlines()) == ["[node-0] sum 3 of 2", "[node-1] sum 3 of 2"]


def test_the_same_on_a_cluster(tenant: Tenant, folder: Path) -> None:
    """Fails on purpose and is explained; is tried again, compared, held, and goes: all of it in one namespace."""
    tenant.apply(shell_runtime("true"))
    own = ["--runtime", "shell", "--nodes", "2"]
    with tenant.begin("run", "--name", "fit", *own, "train.py", "fail") as program:
        assert program.stdout is not None
        printed = {program.stdout.readline() for _ in range(2)}
        assert printed == {"[node-0] rank 0 fail\n", "[node-1] rank 1 fail\n"}
        tenant.let_go("fit", 1)  # not before: it takes the pod of node 0 with it, if that still runs
        _, said = program.communicate(timeout=PATIENCE)
    assert program.returncode == 1, said
    assert "RuntimeError: the data is not there" in said
    assert "→" in said

    assert "# trainjob spec.trainer.numNodes" in tenant.run("render", "fit", "--provenance")
    document = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "fit"},
        "spec": {"runtimeRef": {"name": "shell", "kind": "TrainingRuntime"}, "trainer": {"numNodes": 3}},
    }
    (folder / "fit.json").write_text(json.dumps(document))
    assert "~ spec.trainer.numNodes: 2 → 3" in tenant.run("diff", "fit.json", code=1)
    assert tenant.run("retry", "fit") == "fit-2\n"
    tenant.run("suspend", "fit", code=2)
    assert len(tenant.run("delete", "--all", "--yes").splitlines()) == 2


@pytest.mark.skipif(not FULL, reason="the same by the fake API server in the unit tests; FULL=1")
def test_one_that_runs_is_held_goes_on_and_is_scaled(tenant: Tenant) -> None:
    tenant.apply(shell_runtime("true"))
    words = ["--runtime", "shell", "--nodes", "2", "train.py", "stay"]
    assert tenant.run("run", "--detach", "--name", "stays", *words) == "stays\n"
    assert "is suspended" in tenant.run("suspend", "stays")
    assert tenant.run("resume", "stays") == "TrainJob stays goes on\n"
    tenant.run("retry", "stays", code=2)
    tenant.run("delete", "--all", code=2)
    assert tenant.run("scale", "stays", "1") == "TrainJob stays has 1 node\n"
    assert tenant.run("delete", "stays") == "TrainJob stays is deleted\n"
    short = ["--runtime", "shell", "--name", "short"]
    assert tenant.run("run", *short, "train.py", "once") == "[node-0] rank 0 once\n"
    assert tenant.run("retry", "--replace", "short") == "short\n"
