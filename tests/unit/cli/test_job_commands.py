"""Commands that change TrainJobs, or show what would change, before a fake API server."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.unit.cli.own_server import OwnServer
from tests.unit.client.reading.documents import NAMESPACE, condition, train_job
from trainplane.cli import main
from trainplane.cli.delete import confirm
from trainplane.cli.errors import CommandError
from trainplane.client.backends.local import runtimes
from trainplane.kube.testing.faults import Refuse
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterator

Printed = pytest.CaptureFixture[str]
Tree = dict[str, Any]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    served = OwnServer(tmp_path)
    yield served
    served.close()


def document(name: str = "fit", **trainer: Any) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"image": "mine:1", "numNodes": 2} | trainer},
    }


def write(tree: Tree, name: str = "job.yaml") -> str:
    Path(name).write_text(yaml.safe_dump(tree))
    return name


class TestHolding:
    def test_several_are_held_and_go_on(self, served: OwnServer, capsys: Printed) -> None:
        for name in ("a", "b"):
            served.put(TRAIN_JOBS, train_job(name))
        assert served.command("suspend", "a", "b") == 0
        assert [job["spec"]["suspend"] for job in served.jobs().values()] == [True, True]
        assert "trainplane resume a --kubeconfig" in capsys.readouterr().out
        assert served.command("resume", "b") == 0
        assert [job["spec"]["suspend"] for job in served.jobs().values()] == [True, False]

    def test_one_that_is_not_there_keeps_no_other(self, served: OwnServer, capsys: Printed) -> None:
        served.put(TRAIN_JOBS, train_job("a"))
        assert served.command("suspend", "none", "a") == 2
        printed = capsys.readouterr()
        assert printed.err == f"trainplane: there is no TrainJob none in namespace {NAMESPACE}\n"
        assert served.jobs()["a"]["spec"]["suspend"] is True

    def test_what_a_queue_has_is_the_queues_to_hold(self, served: OwnServer, capsys: Printed) -> None:
        served.put(TRAIN_JOBS, train_job("a", metadata={"labels": {"kueue.x-k8s.io/queue-name": "q"}}))
        assert served.command("suspend", "a") == 2
        assert "queue q decides when it runs" in capsys.readouterr().err


class TestScaling:
    def test_it_has_another_number_of_nodes(self, served: OwnServer, capsys: Printed) -> None:
        served.put(TRAIN_JOBS, train_job("a", nodes=2))
        assert served.command("scale", "a", "4") == 0
        assert served.jobs()["a"]["spec"]["trainer"]["numNodes"] == 4
        assert capsys.readouterr().out == "TrainJob a has 4 nodes\n"

    @pytest.mark.parametrize("nodes", ["0", "-1", "many"])
    def test_a_number_that_is_none(self, served: OwnServer, nodes: str) -> None:
        served.put(TRAIN_JOBS, train_job("a", nodes=2))
        assert served.command("scale", "a", "--", nodes) == 2
        assert served.jobs()["a"]["spec"]["trainer"]["numNodes"] == 2


class TestRetrying:
    def test_a_new_one_stands_beside_the_one_that_failed(self, served: OwnServer, capsys: Printed) -> None:
        served.put(TRAIN_JOBS, train_job("fit", nodes=2, conditions=[condition("Failed")]))
        assert served.command("retry", "fit") == 0
        assert capsys.readouterr().out == "fit-2\n"
        assert served.jobs()["fit-2"]["spec"] == served.jobs()["fit"]["spec"]

    def test_or_in_its_place(self, served: OwnServer, capsys: Printed) -> None:
        served.put(TRAIN_JOBS, train_job("fit", conditions=[condition("Failed")]))
        assert served.command("retry", "fit", "--replace") == 0
        assert capsys.readouterr().out == "fit\n"
        assert list(served.jobs()) == ["fit"]
        assert "status" not in served.jobs()["fit"]

    def test_not_one_that_runs(self, served: OwnServer, capsys: Printed) -> None:
        served.put(TRAIN_JOBS, train_job("fit"))
        assert served.command("retry", "fit") == 2
        assert "is not over and cannot be retried" in capsys.readouterr().err
        assert list(served.jobs()) == ["fit"]


class TestDeleting:
    def test_those_that_are_named(self, served: OwnServer, capsys: Printed) -> None:
        for name in ("a", "b", "c"):
            served.put(TRAIN_JOBS, train_job(name))
        assert served.command("delete", "a", "c", "a") == 0
        assert list(served.jobs()) == ["b"]
        assert sorted(capsys.readouterr().out.splitlines()) == ["TrainJob a is deleted", "TrainJob c is deleted"]

    def test_all_of_them_only_if_somebody_says_yes(self, served: OwnServer, capsys: Printed) -> None:
        for name in ("a", "b"):
            served.put(TRAIN_JOBS, train_job(name))
        assert served.command("delete", "--all") == 2
        assert "--all would delete 2 TrainJobs, and there is nobody to ask; give --yes" in capsys.readouterr().err
        assert list(served.jobs()) == ["a", "b"]
        assert served.command("delete", "--all", "--yes") == 0
        assert served.jobs() == {}
        assert served.command("delete", "--all") == 0

    @pytest.mark.parametrize("words", [[], ["a", "--all"]])
    def test_names_or_all(self, served: OwnServer, words: list[str]) -> None:
        served.put(TRAIN_JOBS, train_job("a"))
        assert served.command("delete", *words) == 2
        assert list(served.jobs()) == ["a"]

    def test_who_may_not_is_told(self, served: OwnServer, capsys: Printed) -> None:
        served.put(TRAIN_JOBS, train_job("a"))
        served.change(lambda: served.server.add_fault(Refuse(code=403, reason="Forbidden", verb="delete")))
        assert served.command("delete", "a") == 2
        assert capsys.readouterr().err.startswith("trainplane: TrainJob a cannot be deleted")

    @pytest.mark.parametrize(
        ("typed", "meant"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False), ("n", False)]
    )
    def test_anything_but_a_yes_is_a_no(self, typed: str, meant: bool) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        shown = Terminal()
        assert confirm([f"job-{number}" for number in range(12)], Terminal(typed), shown) is meant
        assert "job-9 and 2 more" in shown.getvalue()
        with pytest.raises(CommandError, match="nobody to ask"):
            confirm(["a"], io.StringIO(typed), shown)


def test_an_output_that_there_is_not_is_not_copied(served: OwnServer, capsys: Printed) -> None:
    served.put(TRAIN_JOBS, train_job("a"))
    assert served.command("cp", "a:", "out") == 2
    assert "TrainJob a has no output" in capsys.readouterr().err
    assert not Path("out").exists()


class TestRunning:
    def test_a_script_is_submitted_with_all_that_was_said(self, served: OwnServer, capsys: Printed) -> None:
        Path("train.py").write_text("print('hi')")
        words = ["--name", "mine", "--nodes", "3", "--gpus", "2", "--memory", "4Gi", "-e", "A=1", "--queue", "q"]
        more = ["--env-secret", "TOKEN=hub/token", "--priority", "high", "--output", "s3://b/m", "--runtime", "own"]
        assert served.command("run", "--detach", *words, *more, "train.py", "plain") == 0
        printed = capsys.readouterr()
        assert printed.out == "mine\n"
        assert "trainplane logs --follow mine --kubeconfig" in printed.err
        job = served.jobs()["mine"]
        trainer = job["spec"]["trainer"]
        assert trainer["numNodes"] == 3
        assert trainer["resourcesPerNode"]["limits"] == {"nvidia.com/gpu": "2", "memory": "4Gi"}
        assert trainer["env"] == [
            {"name": "A", "value": "1"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
        ]
        assert job["metadata"]["annotations"]["trainplane.dev/function"] == "train.py"
        assert job["spec"]["runtimeRef"]["name"] == "own"
        assert job["metadata"]["annotations"]["trainplane.dev/output"] == "s3://b/m"
        assert job["metadata"]["labels"] == {
            "kueue.x-k8s.io/queue-name": "q",
            "kueue.x-k8s.io/priority-class": "high",
        }

    def test_a_document_is_submitted_as_it_is(self, served: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
        assert served.command("run", "-d", write(document())) == 0
        assert served.jobs()["fit"]["spec"]["trainer"] == {"image": "mine:1", "numNodes": 2}
        monkeypatch.setattr(sys, "stdin", io.StringIO(yaml.safe_dump(document("other"))))
        assert served.command("run", "-d", "--queue", "q", "-") == 0
        assert served.jobs()["other"]["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q"}

    def test_one_without_a_name_gets_one(self, served: OwnServer, capsys: Printed) -> None:
        tree = document()
        tree["metadata"] = {"generateName": "fit-"}
        assert served.command("run", "-d", write(tree)) == 0
        name = capsys.readouterr().out.strip()
        assert list(served.jobs()) == [name]
        assert name.startswith("fit-")
        assert len(name) == len("fit-12345")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--nodes", "2"], "--nodes does not go with a TrainJob that is written: job.yaml; write it there"),
            (["--namespace", "other"], "--namespace is other, and metadata.namespace of job.yaml mine"),
            (["--local"], "--local and --kubeconfig name different places"),
        ],
    )
    def test_what_does_not_go_together(self, served: OwnServer, words: list[str], said: str, capsys: Printed) -> None:
        tree = document()
        tree["metadata"]["namespace"] = "mine"
        assert served.command("run", *words, write(tree)) == 2
        assert said in capsys.readouterr().err
        assert served.jobs() == {}

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["none.py"], "SOURCE: there is no file none.py"),
            (["--output-secret", "s", "train.py"], "--output-secret goes with --output"),
            (["--env-secret", "A=b", "train.py"], "--env-secret: 'A=b' is no NAME=SECRET/KEY"),
            (["--name", "No Name", "train.py"], "name must be of small letters"),
            (["-e", "TOKEN=hf_" + "a1B2" * 9, "train.py"], "SecretRef"),
        ],
    )
    def test_what_cannot_be_submitted_is_said_in_a_line(
        self, served: OwnServer, words: list[str], said: str, capsys: Printed
    ) -> None:
        Path("train.py").touch()
        assert served.command("run", *words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        assert "a1B2a1B2" not in line, "a secret is not quoted"
        assert served.jobs() == {}

    def test_a_folder_that_is_too_large_is_said(self, served: OwnServer, capsys: Printed) -> None:
        Path("train.py").touch()
        Path("data.bin").write_bytes(os.urandom(3 << 20))
        assert served.command("run", "train.py") == 2
        assert "data.bin" in capsys.readouterr().err


class TestRendering:
    RUNTIME = runtimes.load("torch-distributed", [])

    def test_a_file_and_a_runtime_need_no_cluster(self, tmp_path: Path, capsys: Printed) -> None:
        files = write(self.RUNTIME, str(tmp_path / "runtime.yaml")), write(document(), str(tmp_path / "job.yaml"))
        assert main(["render", files[1], "--runtime-file", files[0]]) == 0
        (jobset,) = yaml.safe_load_all(capsys.readouterr().out)
        assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 2

    def test_provenance_stands_behind_each_value(self, served: OwnServer, capsys: Printed) -> None:
        served.put(CLUSTER_TRAINING_RUNTIMES, self.RUNTIME)
        assert served.command("render", "--provenance", write(document())) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if "parallelism" in line)
        assert line.split("#")[1] == " trainjob spec.trainer.numNodes"
        assert served.command("render", "--provenance", "-o", "json", "job.yaml") == 0
        (told,) = json.loads(capsys.readouterr().out)["items"]
        assert (
            told["provenance"]["spec.replicatedJobs[0].template.spec.parallelism"] == "trainjob spec.trainer.numNodes"
        )
        assert served.jobs() == {}

    def test_a_job_that_exists(self, served: OwnServer, capsys: Printed) -> None:
        served.put(CLUSTER_TRAINING_RUNTIMES, self.RUNTIME)
        served.put(TRAIN_JOBS, train_job("fit", nodes=5))
        assert served.command("render", "fit") == 0
        assert "parallelism: 5" in capsys.readouterr().out

    @pytest.mark.parametrize("text", ["kind: Secret", "", "kind: TrainingRuntime\n---\nkind: TrainingRuntime"])
    def test_a_file_without_its_one_runtime(self, text: str, tmp_path: Path, capsys: Printed) -> None:
        (tmp_path / "r.yaml").write_text(text)
        assert (
            main(["render", write(document(), str(tmp_path / "j.yaml")), "--runtime-file", str(tmp_path / "r.yaml")])
            == 2
        )
        assert "must have one runtime" in capsys.readouterr().err

    def test_differences_are_told_and_nothing_is_written(self, served: OwnServer, capsys: Printed) -> None:
        served.put(CLUSTER_TRAINING_RUNTIMES, self.RUNTIME)
        assert served.command("diff", write(document())) == 1
        assert capsys.readouterr().out.splitlines() == [
            "TrainJob fit is not there and would be made",
            "JobSet fit is not there and would be made",
        ]
        assert served.command("run", "-d", "job.yaml") == 0
        before = served.jobs()
        assert served.command("diff", "job.yaml") == 0
        assert "nothing would change" in capsys.readouterr().out
        assert served.command("diff", write(document(numNodes=4))) == 1
        said = capsys.readouterr().out
        assert "~ spec.trainer.numNodes: 2 → 4" in said
        assert "~ spec.replicatedJobs[node].template.spec.parallelism: 2 → 4  (trainjob spec.trainer.numNodes)" in said
        assert "✗ the cluster would not take this" in said
        assert served.command("diff", "-o", "json", "job.yaml") == 1
        told = json.loads(capsys.readouterr().out)
        assert told["differences"][0] == {
            "object": "TrainJob fit",
            "field": "spec.trainer.numNodes",
            "before": 2,
            "after": 4,
        }
        assert served.jobs() == before

    @pytest.mark.parametrize("words", [["render"], ["diff"], ["run", "-d"]])
    @pytest.mark.parametrize(
        "changes",
        [
            {"metadata": [1]},
            {"metadata": {"name": "../../etc"}},
            {"metadata": {"name": "fit\x1b[2J"}},
            {"metadata": {"name": "fit", "labels": [1]}},
            {"metadata": {"name": 5, "generateName": {}}},
            {"spec": [1]},
            {"spec": {"runtimeRef": [1]}},
            {"spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": [1]}},
            {"spec": {"runtimeRef": {"name": "torch-distributed"}, "runtimePatches": {"manager": 1}}},
            {"spec": {"runtimeRef": {"name": "torch-distributed"}, "runtimePatches": [1]}},
            {"spec": {"runtimeRef": {"name": "../x"}}},
        ],
    )
    def test_a_file_that_is_anything_is_refused_in_a_line(
        self, served: OwnServer, words: list[str], changes: Tree, capsys: Printed
    ) -> None:
        """What the fake API server takes without admission is submitted; nothing else may end in a traceback."""
        served.put(CLUSTER_TRAINING_RUNTIMES, self.RUNTIME)
        served.put(TRAIN_JOBS, train_job("fit", nodes=2))
        code = served.command(*words, write(document() | changes))
        printed = capsys.readouterr()
        assert "\x1b" not in printed.out + printed.err
        assert code == 0 or (code == 2 and len(printed.err.splitlines()) == 1) or (code == 1 and printed.out)
