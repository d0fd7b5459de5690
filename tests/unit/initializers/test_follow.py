"""While training goes on: checkpoints at rest, the end as the operator tells it, a sender that is killed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers.sending import QUICK, TOKEN, Status, check, contents, status_server, until
from trainplane.initializers.console import Console
from trainplane.initializers.outputs import supervisor
from trainplane.initializers.outputs.manifest import CHECKPOINT, FINAL
from trainplane.initializers.secrets import Secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.initializers.sending import Ended, Output

REST = {"model.bin": b"5" * 2_000_000, "config.json": b"{}"}


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    (tmp_path / "pvc/models").mkdir(parents=True)
    return tmp_path / "pvc/models"


@pytest.fixture
def status(tmp_path: Path) -> Iterator[Status]:
    with status_server(tmp_path, Status()) as served:
        yield served


class Running:
    """A sender in a thread."""

    def __init__(self, output: Output, claim: Path, status: Status, **env: str) -> None:
        self.ended: Ended | None = None
        given = {"PVC_ROOT": str(claim.parent), **status.env, **env}

        def run() -> None:
            self.ended = output.send("pvc://models/x", given, now=False)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def join(self) -> Ended:
        self._thread.join(30)
        assert self.ended is not None
        return self.ended


def test_checkpoints_go_while_training_goes_on_and_the_manifest_at_its_end(
    output: Output, claim: Path, status: Status
) -> None:
    there = claim / "x"
    running = Running(output, claim, status)
    output.write({"checkpoint-1/a": b"1", "checkpoint-1/b": b"2", "half": b"not"})
    until((there / "checkpoint-1" / CHECKPOINT).exists)
    assert check(contents(there), {}) is None
    assert "half" not in contents(there)
    output.write({"checkpoint-2/a": b"3"})
    until((there / "checkpoint-2" / CHECKPOINT).exists)
    # It is rotated away: what was sent stays, and is told.
    (output.folder / "checkpoint-1/a").unlink()
    (output.folder / "checkpoint-1/b").unlink()
    (output.folder / "half").unlink()
    output.write(REST)
    status.end("succeeded")
    ended = running.join()
    assert ended.output == "sent", ended
    manifest = check(contents(there), {**REST, "checkpoint-2/a": b"3"})
    assert manifest is not None
    assert [checkpoint["path"] for checkpoint in manifest["checkpoints"]] == ["checkpoint-1", "checkpoint-2"]
    assert contents(there)["checkpoint-1/a"] == b"1"
    assert status.asked[0] == "/apis/x/trainjobs/tune/training?wait=25"
    assert TOKEN not in ended.said


def test_a_checkpoint_that_changes_loses_its_manifest_until_it_is_sent_anew(
    output: Output, claim: Path, status: Status
) -> None:
    place = claim / "x/log" / CHECKPOINT
    running = Running(output, claim, status)
    output.write({"log/events": b"one"})
    until(place.exists)
    output.write({"log/events": b"one, two"})
    until(lambda: place.exists() and json.loads(place.read_text())["files"][0]["size"] == 8)
    status.end("succeeded")
    assert running.join().output == "sent"
    assert check(contents(claim / "x"), {"log/events": b"one, two"})


def test_a_training_that_failed_leaves_no_final_manifest(output: Output, claim: Path, status: Status) -> None:
    output.write({**REST, "checkpoint-1/a": b"1"})
    running = Running(output, claim, status)
    until((claim / "x/checkpoint-1" / CHECKPOINT).exists)
    status.end("failed")
    ended = running.join()
    assert (ended.code, ended.message) == (0, {"output": "none", "message": "training failed"})
    assert not (claim / "x" / FINAL).exists()


def test_what_can_never_be_sent_is_said_when_training_has_ended(output: Output, claim: Path, status: Status) -> None:
    running = Running(output, claim, status, SETTLE_SECONDS="never")
    until(lambda: status.asked)
    assert running.ended is None, "a container that ends sooner leaves its pod unready"
    status.end("succeeded")
    ended = running.join()
    assert (ended.output, ended.cause) == ("unsent", "Invalid")


def test_a_server_that_is_away_for_a_while_is_asked_again(
    output: Output, claim: Path, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainplane.initializers.outputs.training._FIRST_PAUSE", 0.02)
    answers = iter([(503, b""), (200, b"nonsense"), (200, b"[]"), (200, b'{"training": "what"}'), (404, b"")])
    status.fault = lambda: next(answers, None)
    status.end("succeeded")
    output.write(REST)
    ended = Running(output, claim, status, OUTPUT_WAIT_SECONDS="60").join()
    assert ended.output == "sent", ended
    assert len(status.asked) == 6


def test_a_server_that_stays_away_is_not_waited_for_without_end(output: Output, claim: Path, status: Status) -> None:
    status.fault = lambda: (503, b"")
    output.write(REST)
    ended = Running(output, claim, status, OUTPUT_WAIT_SECONDS="1").join()
    assert (ended.code, ended.output, ended.cause) == (0, "unsent", "Unreachable")
    assert not (claim / "x" / FINAL).exists()


@pytest.mark.parametrize("variable", ["KUBEFLOW_TRAINER_SERVER_URL", "KUBEFLOW_TRAINER_SERVER_TOKEN"])
def test_nobody_to_ask_is_said_at_once(output: Output, claim: Path, status: Status, variable: str) -> None:
    ended = Running(output, claim, status, **{variable: ""}).join()
    assert (ended.output, ended.cause) == ("unsent", "Invalid")
    assert "--now" in ended.message["remedy"]


def test_other_pods_than_the_first_stay_ready_while_training_goes_on(
    output: Output, claim: Path, status: Status
) -> None:
    output.write(REST)
    running = Running(output, claim, status, JOB_COMPLETION_INDEX="1")
    until(lambda: status.asked)
    assert running.ended is None
    status.end("succeeded")
    ended = running.join()
    assert (ended.code, ended.message) == (0, {})
    assert contents(claim) == {}


def test_other_pods_end_if_nobody_can_be_asked(output: Output, claim: Path) -> None:
    ended = output.send("pvc://models/x", {"PVC_ROOT": str(claim.parent), "JOB_COMPLETION_INDEX": "1"}, now=False)
    assert (ended.code, ended.message) == (0, {})


def test_a_checkpoint_that_cannot_be_sent_yet_is_sent_later(output: Output, claim: Path, status: Status) -> None:
    claim.rename(claim.with_name("away"))
    output.write({"checkpoint-1/a": b"1"})
    running = Running(output, claim, status)
    until(lambda: len(status.asked) > 0)
    output.write({"checkpoint-2/a": b"1"})
    claim.with_name("away").rename(claim)
    until((claim / "x/checkpoint-1" / CHECKPOINT).exists)
    status.end("succeeded")
    ended = running.join()
    assert ended.output == "sent"


class Process:
    """The program in processes of its own: the supervisor, and what it starts."""

    def __init__(self, output: Output, env: dict[str, str]) -> None:
        self.said = output.folder.parent / "said"
        with self.said.open("w") as said:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-m", "trainplane.initializers", "output", str(output.folder)],
                env={**os.environ, **QUICK, **env},
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def sender(self) -> int | None:
        """Return the process that sends, if there is one."""
        children = Path(f"/proc/{self.supervisor.pid}/task/{self.supervisor.pid}/children").read_text().split()
        return int(children[0]) if children else None


def test_a_sender_that_is_killed_is_started_again_and_goes_on(output: Output, claim: Path, status: Status) -> None:
    env = {"PVC_ROOT": str(claim.parent), "OUTPUT_URI": "pvc://models/x", **status.env}
    process = Process(output, env)
    try:
        output.write({"checkpoint-1/a": b"1"})
        until((claim / "x/checkpoint-1" / CHECKPOINT).exists)
        first = process.sender()
        assert first is not None
        os.kill(first, signal.SIGKILL)
        until(lambda: process.sender() not in (None, first))
        output.write(REST)
        status.end("succeeded")
        assert process.supervisor.wait(30) == 0
    finally:
        process.supervisor.kill()
        process.supervisor.wait()
    said = process.said.read_text()
    assert "signal 9: starting it again" in said
    assert json.loads(said.splitlines()[-1])["output"] == "sent"
    assert check(contents(claim / "x"), {**REST, "checkpoint-1/a": b"1"})
    # The checkpoint was not sent twice.
    assert (output.folder / ".trainplane/sent").read_text().count('{"sent": ["checkpoint-1/a"') == 1


def test_a_polite_end_reaches_the_sender(output: Output, claim: Path, status: Status) -> None:
    env = {"PVC_ROOT": str(claim.parent), "OUTPUT_URI": "pvc://models/x", **status.env}
    process = Process(output, env)
    try:
        until(lambda: status.asked)
        sender = process.sender()
        process.supervisor.send_signal(signal.SIGTERM)
        assert process.supervisor.wait(20) == 128 + signal.SIGTERM
        until(lambda: not Path(f"/proc/{sender}/cmdline").exists() or not Path(f"/proc/{sender}/cmdline").read_text())
    finally:
        process.supervisor.kill()
        process.supervisor.wait()


def test_a_sender_that_never_gets_on_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(supervisor, "RESTARTS", 2)
    (tmp_path / "log").write_text("")
    out = io.StringIO()
    command = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    assert supervisor.supervise(command, {}, Console(Secrets({}), out, out, tmp_path / "log")) == 0
    message = json.loads((tmp_path / "log").read_text())
    assert (message["output"], message["cause"]) == ("unsent", "Broken")
    assert "3 times" in message["message"]
    assert "signal 9" in message["message"]
