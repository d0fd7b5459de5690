"""Shipped code is stored once for a job, however many nodes it has, and runs from there (hub-and-sdk 1)."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api import document
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.client.backends.local import runtimes
from trainplane.client.client import TrainerClient
from trainplane.client.options import Name
from trainplane.client.submission import compose
from trainplane.client.types.backends import LocalProcessBackendConfig
from trainplane.client.types.trainers import ScriptTrainer
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.render.pipeline import Rendering

pytestmark = pytest.mark.finding("hub-and-sdk", 1, "shipped code was copied into every pod")
NODES = 1000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a folder with a script and 600 KB that do not compress."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "blob.bin").write_bytes(random.Random(1).randbytes(600 * 1024))  # noqa: S311 no secret
    (folder / "train.py").write_text("import zlib\nprint(zlib.crc32(open('blob.bin', 'rb').read()))\n")
    return folder


def render(trainer: ScriptTrainer, runtime: str = "torch-distributed") -> tuple[dict[str, Any], Rendering]:
    job = compose(runtime, None, trainer, backend="kubernetes", name=lambda: "x")
    job["metadata"] |= {"namespace": "a", "uid": "u"}
    document_of_runtime = document.read(runtimes.load(runtime, ()), ClusterTrainingRuntime)
    return job, Pipeline.default().render(document.read(job, TrainJob), document_of_runtime)


@pytest.mark.parametrize(
    "runtime", ["torch-distributed", "xgboost-distributed", "deepspeed-distributed", "flux-distributed"]
)
def test_pods_are_small_and_the_code_is_there_once(workspace: Path, runtime: str) -> None:
    job, rendering = render(ScriptTrainer("train.py", workspace=workspace, num_nodes=NODES), runtime)
    assert len(json.dumps(job)) > 800_000
    pods = {pods.name: len(json.dumps(pods.pod_spec)) for pods in rendering.plan.pod_sets}
    assert max(pods.values()) < 40_000, pods
    (code,) = [entry.tree for entry in rendering.objects if "binaryData" in entry.tree]
    assert code["kind"] == "ConfigMap"
    assert code["immutable"] is True
    assert code["metadata"]["ownerReferences"][0]["uid"] == "u"
    (content,) = code["binaryData"].values()
    assert content == "".join(job["spec"]["trainer"]["args"][2:])
    assert len(base64.b64decode(content)) < 1 << 20


def test_a_node_runs_from_the_file_as_from_its_arguments(workspace: Path, tmp_path: Path) -> None:
    job, rendering = render(ScriptTrainer("train.py", workspace=workspace))
    container = rendering.plan.pod_sets[-1].containers[0]
    (mount,) = [entry for entry in container.tree["volumeMounts"] if entry["mountPath"].startswith("/trainplane")]
    (code,) = [entry.tree for entry in rendering.objects if "binaryData" in entry.tree]
    for name, content in code["binaryData"].items():
        (tmp_path / name).write_bytes(base64.b64decode(content))
    printed = []
    for args in (
        job["spec"]["trainer"]["args"],
        [arg.replace(mount["mountPath"], str(tmp_path)) for arg in container.args],
    ):
        words = [sys.executable, *container.command[1:], *args]
        done = subprocess.run(words, env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True)
        printed.append(done.stdout)
    assert printed[0] == printed[1] != ""


def test_small_code_needs_no_object(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    job, rendering = render(ScriptTrainer("train.py", workspace=tmp_path))
    assert rendering.plan.pod_sets[-1].containers[0].args == job["spec"]["trainer"]["args"]
    assert [entry.tree["kind"] for entry in rendering.objects] == ["JobSet"]


@pytest.mark.parametrize(
    "args",
    [["node", "sha256:0", "=" * 50_000], ["node", "x", "A" * 50_000], ["python", "A" * 50_000], ["node", "sha256:0"]],
)
def test_arguments_that_are_no_code_stay_as_they_are(args: list[str]) -> None:
    """As the official SDK writes them, for one."""
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "x", "namespace": "a", "uid": "u"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"args": args}},
    }
    runtime = document.read(runtimes.load("torch-distributed", ()), ClusterTrainingRuntime)
    rendering = Pipeline.default().render(document.read(job, TrainJob), runtime)
    assert rendering.plan.pod_sets[-1].containers[0].args == args
    assert [entry.tree["kind"] for entry in rendering.objects] == ["JobSet"]


def test_a_local_job_runs_from_the_file(workspace: Path, tmp_path: Path) -> None:
    with TrainerClient(LocalProcessBackendConfig(state=tmp_path / "state")) as client:
        trainer = ScriptTrainer("train.py", workspace=workspace)
        client.train("xgboost-distributed", trainer=trainer, options=[Name("large")])
        client.wait_for_job_status("large", timeout=120)
        (line,) = client.get_job_logs("large")
        assert line.isdecimal()
        client.delete_job("large")
