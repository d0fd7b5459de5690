"""examples/pipelines: what stands around a training does what it says, with pods and with the tools it names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab import accounts
from lab.images import reference as image
from lab.paths import REPOSITORY
from tests.cli.tenant import wait_allowed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.user import User

EXAMPLES = REPOSITORY / "examples/pipelines"
TOOLS = REPOSITORY / "build/pipelines/bin"
"""MLflow, W&B, DVC and Ray, of requirements/pipelines.txt: `make build/pipelines/stamp`."""
RIGHTS = {"trainjobs.trainer.kubeflow.org": "get,list,watch,create", "pods,pods/log,events": "get,list,watch"}
"""What a pipeline may do in its namespace, and nothing else."""


def run(command: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as a shell of its own user would."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    given = kept | {"HOME": str(folder), "PYTHONPATH": str(REPOSITORY / "src")} | env
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=200, check=False)


@pytest.fixture
def account(user: User) -> str:
    """Return the kubeconfig of an account that may submit TrainJobs and read what becomes of them."""
    runtime: dict[str, Any] = yaml.safe_load((EXAMPLES / "runtime.yaml").read_text())
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    container |= {"image": image("python"), "imagePullPolicy": "Never"}
    user.apply(runtime)
    user.kubectl("create", "serviceaccount", user.namespace)
    for number, (resources, verbs) in enumerate(RIGHTS.items()):
        role = f"pipeline-{number}"
        user.kubectl("create", "role", role, f"--resource={resources}", f"--verb={verbs}")
        account = f"--serviceaccount={user.namespace}:{user.namespace}"
        user.kubectl("create", "rolebinding", role, f"--role={role}", account)
    who = f"system:serviceaccount:{user.namespace}:{user.namespace}"
    for resource in ("trainjobs", "pods"):
        wait_allowed(user.cluster, who, "watch", resource, user.namespace)
    return str(accounts.kubeconfig(user.cluster, user.namespace, user.namespace))


def test_a_step_ends_as_the_training_did(user: User, account: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "submit.py"), "train.py", f"--namespace={user.namespace}"]
    command += [f"--result={tmp_path}/result.json", "--"]
    done = run([*command, "--steps", "50"], tmp_path, KUBECONFIG=account)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["status"], result["lines"]) == ("Complete", ["slope 3.000 loss 0.000000 rows 19"])

    failed = run([*command, "--data", "/nowhere.csv"], tmp_path, KUBECONFIG=account)
    assert failed.returncode == 1
    assert "FileNotFoundError" in failed.stderr
    assert json.loads((tmp_path / "result.json").read_text())["status"] == "Failed"


def test_a_ci_job_trains(user: User, account: str, tmp_path: Path) -> None:
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yaml").read_text())
    last = workflow["jobs"]["train"]["steps"][-1]
    assert last["env"] == {"KUBECONFIG": "${{ runner.temp }}/kubeconfig"}
    shutil.copy(account, tmp_path / "kubeconfig")
    words = last["run"].replace("--namespace team", f"--namespace {user.namespace}")
    words = words.replace("examples/pipelines", str(EXAMPLES)).replace("python ", f"{sys.executable} ", 1)
    env = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "RUNNER_TEMP": str(tmp_path)}
    done = run(["bash", "-euc", words], tmp_path, **env)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "result.json").read_text())["status"] == "Complete"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the examples, for tools that write beside them."""
    assert TOOLS.exists(), "make build/pipelines/stamp makes it"
    return shutil.copytree(EXAMPLES, tmp_path / "pipelines")


def with_tools(folder: Path, *command: str, **env: str) -> None:
    path = f"{TOOLS}:{os.environ['PATH']}"
    done = run([str(TOOLS / command[0]), *command[1:]], folder, PATH=path, **env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_mlflow_has_the_loss_of_each_step(folder: Path) -> None:
    tracking = f"MLFLOW_TRACKING_URI=file:{folder}/mlruns"
    allowed = "MLFLOW_ALLOW_FILE_STORE=true"
    with_tools(folder, "python", "submit.py", "train.py", "--local", "--env", tracking, "--env", allowed)
    (losses,) = folder.glob("mlruns/0/*/metrics/loss")
    told = [float(line.split()[1]) for line in losses.read_text().splitlines()]
    assert len(told) == 20
    assert told[-1] < told[0]


@pytest.mark.full
def test_wandb_keeps_a_run_for_later(folder: Path) -> None:
    (folder / "runs").mkdir()
    offline = ["--env", "WANDB_MODE=offline", "--env", f"WANDB_DIR={folder}/runs"]
    with_tools(folder, "python", "submit.py", "train.py", "--local", *offline)
    (run_file,) = folder.glob("runs/wandb/offline-run-*/*.wandb")
    assert b"loss" in run_file.read_bytes()


@pytest.mark.full
def test_dvc_prepares_with_ray_and_trains_once(folder: Path) -> None:
    with_tools(folder, "dvc", "init", "--no-scm", "--quiet")
    with_tools(folder, "dvc", "repro")
    assert len((folder / "clean.csv").read_text().splitlines()) == 4, "three rows that are whole, and their header"
    assert json.loads((folder / "model.json").read_text())["slope"] == pytest.approx(3, abs=1e-3)
    before = (folder / "result.json").read_text()
    with_tools(folder, "dvc", "repro")
    assert (folder / "result.json").read_text() == before, "another run would be another job"
