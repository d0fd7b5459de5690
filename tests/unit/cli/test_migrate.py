"""`trainplane migrate`: files, objects of a cluster, and the list of what a cluster has."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.legacy.migrate.corpus import FOLDER, manifests
from trainplane.cli import main, migrate_list
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import LEGACY_JOBS, OLDER_CLUSTER_TRAINING_RUNTIMES, OLDER_TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CORPUS = manifests()
Printed = pytest.CaptureFixture[str]


def test_yaml_goes_to_standard_output_and_the_report_beside_it(capsys: Printed) -> None:
    assert main(["migrate", str(FOLDER / "pytorch-mnist.yaml")]) == 0
    printed = capsys.readouterr()
    runtime, job = yaml.safe_load_all(printed.out)
    assert (runtime["kind"], job["kind"]) == ("TrainingRuntime", "TrainJob")
    assert "PyTorchJob pytorch-mnist becomes TrainingRuntime pytorch-mnist, then TrainJob" in printed.err
    assert "3 pods compared: as before" in printed.err


def test_a_refusal_has_its_reason_and_its_exit_code(capsys: Printed) -> None:
    assert main(["migrate", str(FOLDER / "tensorflow-dynamic.yaml")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "spec.enableDynamicWorker: has no counterpart" in " ".join(printed.err.split())


def test_a_file_may_have_many_and_things_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    others = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}}]
    jobs = [CORPUS["pytorch-never"], CORPUS["paddle-parameter-server"], CORPUS["jax-tpu"]]
    monkeypatch.setattr("sys.stdin", io.StringIO(yaml.safe_dump_all([*others, *jobs])))
    assert main(["migrate", "-", "--output", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in told] == ["PyTorchJob", "JAXJob"]
    assert {"field", "outcome", "text"} == told[0]["notes"][0].keys()


def test_files_are_written_and_never_over_others(tmp_path: Path, capsys: Printed) -> None:
    folder = tmp_path / "moved"
    command = ["migrate", str(FOLDER / "pytorch-mnist.yaml"), "--write", str(folder)]
    assert main(command) == 0
    (file,) = folder.iterdir()
    assert file.name == "kubeflow-pytorch-mnist-pytorchjob.yaml"
    assert [one["kind"] for one in yaml.safe_load_all(file.read_text())] == ["TrainingRuntime", "TrainJob"]
    assert main(command) == 2
    assert "File exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["migrate"],
        ["migrate", "--all", "job.yaml"],
        ["migrate", "job.yaml", "--gang-scheduler", "nobody"],
    ],
)
def test_wrong_usage_ends_with_2(words: list[str]) -> None:
    assert main(words) == 2


@pytest.mark.parametrize("words", [["--all"], ["x.yaml", "--dry-run"], ["x.yaml", "-A"]])
def test_a_list_says_that_it_is_one(words: list[str], capsys: Printed) -> None:
    assert main(["migrate", *words]) == 2
    assert "say --all --dry-run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "problem"),
    [("a: [", "no YAML"), ("a: 1\n" * 2, "no older job"), ("", "no older job"), ("[" * 3_000, "nested too deep")],
)
def test_what_is_no_job_cannot_be_read(
    text: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["migrate", "-"]) == 2
    assert problem in capsys.readouterr().err


def test_a_screen_is_not_repainted_by_a_job(monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    job = copy.deepcopy(CORPUS["pytorch-never"])
    job["metadata"]["name"] = "\x1b[2Jgone"
    monkeypatch.setattr("sys.stdin", io.StringIO(yaml.safe_dump(job)))
    assert main(["migrate", "-"]) == 1
    assert "\x1b" not in capsys.readouterr().err


# -- a cluster


class Served:
    """A cluster with older jobs, that answers from a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.server = FakeServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._run(self.server.start())
        self.kubeconfig = folder / "config"
        context = {"cluster": "one", "user": "me", "namespace": "vision"}
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "current-context": "one",
                    "contexts": [{"name": "one", "context": context}],
                    "clusters": [{"name": "one", "cluster": {"server": self.server.url}}],
                    "users": [{"name": "me", "user": {}}],
                }
            )
        )

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def put(self, name: str, **parts: Any) -> None:
        """Store a job of the corpus."""
        tree = {**copy.deepcopy(CORPUS[name]), **parts}
        older = {"TrainJob": OLDER_TRAIN_JOBS, "ClusterTrainingRuntime": OLDER_CLUSTER_TRAINING_RUNTIMES}
        resource = LEGACY_JOBS.get(tree["kind"]) or older[tree["kind"]]

        async def stored() -> None:
            self.server.put(resource, tree)

        self._run(stored())

    def close(self) -> None:
        self._run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


def condition(kind: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"}]}


@pytest.mark.parametrize("kind", ["pytorchjob", "PyTorchJob", "pytorchjobs", "pytorchjobs.kubeflow.org"])
def test_a_job_of_a_cluster_is_moved_by_any_name_of_its_kind(kind: str, served: Served, capsys: Printed) -> None:
    served.put("pytorch-never", status=condition("Running"))
    assert main(["migrate", f"{kind}/resnet-cifar", "--kubeconfig", str(served.kubeconfig)]) == 0
    job = yaml.safe_load(capsys.readouterr().out)
    assert job["metadata"] == {"name": "resnet-cifar", "namespace": "vision"}


def test_a_job_that_is_not_there_is_told(served: Served, capsys: Printed) -> None:
    assert main(["migrate", "tfjob/absent", "--kubeconfig", str(served.kubeconfig)]) == 2
    assert "absent" in capsys.readouterr().err


def test_a_clusters_jobs_are_listed_in_the_order_to_go(served: Served, capsys: Printed) -> None:
    served.put("pytorch-never", status=condition("Running"))
    served.put("tensorflow-workers", status=condition("Succeeded"))
    served.put("pytorch-kueue")
    served.put("paddle-parameter-server")
    served.put("v2alpha1-runtime")
    served.put("v2alpha1-resnet")
    command = ["migrate", "--all", "--dry-run", "-A", "--kubeconfig", str(served.kubeconfig)]
    assert main([*command, "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["unseen"] == {}
    assert [(one["turn"], one["name"]) for one in told["objects"]] == [
        ("first", "team-torch"),
        ("waiting", "queued"),
        ("waiting", "train-resnet"),
        ("running", "resnet-cifar"),
        ("finished", "multi-worker"),
        ("stays", "paddle-ps"),
    ]
    assert main(command) == 1
    text = " ".join(capsys.readouterr().out.split())  # lines are as wide as the terminal
    assert "in queue user-queue: it lines up anew" in text
    assert "PyTorchJob vision/resnet-cifar on torch-distributed; changes spec, spec.pytorchReplicaSpecs.Master" in text


def test_only_a_namespace_is_looked_at_unless_all_are_wanted(served: Served, capsys: Printed) -> None:
    served.put("pytorch-never")
    served.put("pytorch-kueue")
    command = ["migrate", "--all", "--dry-run", "--kubeconfig", str(served.kubeconfig), "-o", "json"]
    assert main(command) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["objects"]] == ["resnet-cifar"]


def test_a_list_has_an_end(served: Served, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    monkeypatch.setattr(migrate_list, "MOST_OBJECTS", 2)
    monkeypatch.setattr(migrate_list, "_PAGE", 2)
    for index in range(5):
        served.put("pytorch-never", metadata={"name": f"run-{index}", "namespace": "vision"})
    assert main(["migrate", "--all", "--dry-run", "--kubeconfig", str(served.kubeconfig), "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert len(told["objects"]) == 2
    assert "more than 2" in told["unseen"]["pytorchjobs"]


def test_an_empty_cluster_is_told(served: Served, capsys: Printed) -> None:
    assert main(["migrate", "--all", "--dry-run", "--kubeconfig", str(served.kubeconfig)]) == 0
    assert capsys.readouterr().out == "There are no older jobs.\n"
