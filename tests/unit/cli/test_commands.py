from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.unit.hub.check_objects import (
    FakeCluster,
    altered,
    cluster_facts,
    content,
    fleet_facts,
    multikueue,
    runtime,
    train_job,
    worker_facts,
)
from tests.unit.hub.fakeworker import cluster, serving
from trainplane.cli import fleet_check, fleet_sync, main
from trainplane.cli.output import Output
from trainplane.hub.check.facts import Unseen, WorkerFacts
from trainplane.hub.check.judge import judge
from trainplane.hub.sync import compare
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Tree = dict[str, Any]
SOURCE = Path(__file__).resolve().parents[3] / "src"


class Served:
    """A hub and a worker that answer from a thread of their own, as clusters do for a command."""

    def __init__(self, folder: Path) -> None:
        self.hub, self.worker = FakeCluster(), FakeCluster(tokens={"t"}, tls=serving())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        for server in (self.hub, self.worker):
            self.run(server.start())
        self.hub.fill({**content(checks=("mk",)), **multikueue("worker1")})
        self.hub.put_worker("worker1", self.worker)
        self.worker.fill(content())
        self.kubeconfig = folder / "config"
        entries = {
            "hub": {"server": self.hub.url},
            "own": cluster(self.worker.url),
            "dead": {"server": "http://127.0.0.1:9"},
        }
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "current-context": "hub",
                    "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in entries],
                    "clusters": [{"name": name, "cluster": entry} for name, entry in entries.items()],
                    "users": [{"name": "me", "user": {"token": "t"}}],
                }
            )
        )

    def run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def change(self, work: Callable[[], object]) -> None:
        """Change what is stored, in the servers' own thread."""

        async def changed() -> None:
            work()

        self.run(changed())

    def close(self) -> None:
        for server in (self.hub, self.worker):
            self.run(server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


@pytest.fixture
def command(served: Served, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.setenv("COLUMNS", "120")
    return lambda *words: main(["fleet", *words, "--kubeconfig", str(served.kubeconfig), "--timeout", "60"])


# -- the command line


def test_help_is_quick_and_needs_no_library() -> None:
    script = "import sys, trainplane.cli as c; c.main(['--help']); print(sorted(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert "fleet" in done.stdout
    loaded = done.stdout.splitlines()[-1]
    for heavy in ("msgspec", "yaml", "aiohttp", "typer", "rich", "asyncio", "trainplane.kube", "trainplane.hub"):
        assert f"'{heavy}'" not in loaded


def test_it_runs_as_a_module() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    words = [sys.executable, "-m", "trainplane.cli", "fleet", "check", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    assert "--trainjob" in done.stdout
    assert "Exit code: 0" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fleet"],
        ["fleet", "chekc"],
        ["fleet", "check", "--output", "xml"],
        ["fleet", "check", "--worker", "worker1="],
        ["fleet", "check", "--worker", "=own"],
        ["fleet", "sync", "--timeout", "0"],
        ["fleet", "sync", "--timeout", "soon"],
    ],
)
def test_wrong_usage_exits_with_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.match(r"Usage: trainplane|trainplane: .*; see: trainplane .*--help\n$", printed.err)


def test_a_hub_that_is_not_configured_or_does_not_answer_exits_with_two(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "check", "--kubeconfig", "/nowhere"]) == 2
    assert "trainplane: cannot read the kubeconfig /nowhere" in capsys.readouterr().err
    assert command("check", "--context", "dead") == 2
    assert "127.0.0.1" in capsys.readouterr().err
    assert command("sync", "--context", "none") == 2
    assert "'none'" in capsys.readouterr().err
    assert command("check", "--worker", "worker1=none") == 2


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(fleet_check, "command", interrupted)
    assert main(["fleet", "check"]) == 130


def test_a_reader_that_has_seen_enough_is_no_traceback() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    call = "f.command = lambda: print('x' * 200000) or 0; raise SystemExit(c.main(['fleet', 'check']))"
    imports = "import trainplane.cli as c, trainplane.cli.fleet_check as f"
    words = f'{sys.executable} -c "{imports}; {call}" | head -c 1; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("x", "", 141)


# -- check


def test_check_of_a_fleet_that_is_well(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command("check") == 0
    out = capsys.readouterr().out
    assert out.startswith("✓ hub  ready\n")
    assert "  ✓ runtimes     2 of 2 equal the hub's\n" in out
    assert out.endswith("Nothing would stop a job on worker1.\n")
    assert "\033" not in out


def test_check_for_programs(served: Served, command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    served.change(lambda: served.worker.remove(CLUSTER_TRAINING_RUNTIMES, "torch"))
    assert command("check", "--output", "json") == 1
    tree = json.loads(capsys.readouterr().out)
    assert tree["ready"] is False
    assert tree["workers"][0]["name"] == "worker1"


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(train_job(nodes=9)))
    return path


def test_check_with_a_train_job_from_a_file_standard_input_or_the_hub(
    served: Served,
    command: Callable[..., int],
    manifest: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    served.change(lambda: served.hub.put(TRAIN_JOBS, train_job(nodes=9)))
    monkeypatch.setattr(sys, "stdin", io.StringIO(manifest.read_text()))
    for named in (str(manifest), "-", "research/tune"):
        assert command("check", "--trainjob", named) == 1
        assert "can never give more than 8 cpu" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("gone.yaml", "cannot read gone.yaml"),
        ("research/none", "there is no TrainJob 'none' in namespace 'research'"),
        ("alone", "there is no TrainJob 'alone' in namespace 'default'"),
        ("What is this?", "neither a file nor NAMESPACE/NAME"),
    ],
)
def test_a_train_job_that_is_not_there_exits_with_two(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], named: str, text: str
) -> None:
    assert command("check", "--trainjob", named) == 2
    assert text in capsys.readouterr().err


def test_own_eyes_are_chosen_by_context(
    served: Served, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("check", "--worker", "worker1=own") == 0
    assert "(looked at with context own)" in capsys.readouterr().out
    assert command("check", "--worker", "own") == 2
    assert "the hub has no MultiKueueCluster 'own'" in capsys.readouterr().err


# -- sync


def test_sync_shows_first_and_does_on_demand(
    served: Served, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    served.change(lambda: served.worker.put(CLUSTER_TRAINING_RUNTIMES, runtime(image="old")))
    assert command("sync") == 1
    out = capsys.readouterr().out
    assert "~ worker1  1 equal the hub's already, 1 not" in out
    assert "  ~ change ClusterTrainingRuntime torch" in out
    assert "-  image: old" in out
    assert out.endswith("Nothing was changed. To do it: trainplane fleet sync --apply\n")
    assert command("sync", "--apply") == 0
    out = capsys.readouterr().out
    assert "  ~ changed ClusterTrainingRuntime torch\n" in out
    assert out.endswith("The workers have the hub's runtimes.\n")
    assert command("sync", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "settled": True,
        "steps": [],
        "equal": {"worker1": 2},
        "unreachable": {},
    }


# -- what people read


def shown(report: Any) -> str:
    stream = io.StringIO()
    fleet_check.show(report, Output(stream, width=100))
    return stream.getvalue()


def test_findings_stand_under_their_area_with_what_to_do() -> None:
    different = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, runtime(image="old"))
    lines = shown(judge(fleet_facts(worker_facts("worker1"), worker_facts("worker2", different)))).splitlines()
    start = lines.index("✗ worker2  1 would stop a job")
    block = lines[start:]
    assert "  ✗ runtimes     1 of 2 equal the hub's" in block
    assert any(line.strip().startswith("✗ ClusterTrainingRuntime torch differs from the hub's") for line in block)
    assert any(line.strip() == "--- worker2" for line in block)
    assert any(line.strip() == "→ trainplane fleet sync --apply" for line in block)
    assert lines[-2:] == ["A job would be stopped on worker2.", "Nothing would stop a job on worker1."]


def test_a_fleet_is_summed_up_by_what_is_known() -> None:
    blind = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, Unseen("forbidden", "403"))
    out = shown(judge(fleet_facts(worker_facts("worker1", blind))))
    assert "? worker1  1 could not be seen" in out
    assert out.endswith("Not everything could be seen on worker1.\n")
    job = train_job(queue=None)
    assert "A job would be stopped on the hub.\n" in shown(judge(fleet_facts(trainjob=job)))
    empty = judge(fleet_facts())
    assert "The hub has no workers" in shown(type(empty)(empty.hub, ()))


def synced(plan_: Any, *, applied: bool) -> str:
    stream = io.StringIO()
    fleet_sync.show(plan_, Output(stream, width=100), applied=applied)
    return stream.getvalue()


def test_what_is_not_done_is_told_with_the_reason() -> None:
    silent = WorkerFacts(name="worker2", trouble="no route to host")
    different = worker_facts(
        "worker1", altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, runtime(image="x"))
    )
    found = compare(fleet_facts(different, silent), {"worker1": [train_job()]})
    out = synced(found, applied=True)
    assert (
        "  ✗ leave ClusterTrainingRuntime torch\n      → queued or running TrainJobs there use it (research/tune)"
        in out
    )
    assert "✗ worker2  cannot be synced\n  ✗ no route to host\n" in out
    assert out.endswith("Not all could be done: see above.\n")
    assert synced(compare(fleet_facts(different), {}), applied=False).endswith("trainplane fleet sync --apply\n")


def test_a_hub_without_workers_has_nothing_to_sync() -> None:
    assert "The hub has no workers" in synced(type(compare(fleet_facts(), {}))((), {}, {}), applied=False)
