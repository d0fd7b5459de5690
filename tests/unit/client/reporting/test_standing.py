"""A timer that is set anew as a training gets on."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trainplane import progress
from trainplane.api import names
from trainplane.client.standing import AGAIN, GAPS, SHORTEST, TIMES, Timer, Watch

if TYPE_CHECKING:
    from pathlib import Path


class FakeTimer(Timer):
    """A clock, and what the timer was set to."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.left: list[float | None] = []
        self.watch = Watch(lambda: self.now, self)

    def set(self, seconds: float) -> None:
        self.left.append(seconds)

    def cancel(self) -> None:
        self.left.append(None)

    def came(self, after: float = 0.0, *, is_last: bool = False) -> None:
        self.now += after
        self.watch.came(is_last=is_last)


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> FakeTimer:
    monkeypatch.setenv(names.STATUS_FILE, "/x")
    monkeypatch.delenv(names.STALL_SECONDS, raising=False)
    return FakeTimer()


def test_the_pace_is_the_trainings_own(timer: FakeTimer) -> None:
    timer.came()
    assert timer.left == [TIMES * SHORTEST], "first steps compile"
    for _ in range(GAPS - 1):
        timer.came(20)
    assert timer.left[-1] == TIMES * SHORTEST
    timer.came(20)
    assert timer.left[-1] == TIMES * 20
    timer.came(90)
    assert timer.left[-1] == TIMES * 90, "an evaluation between"
    timer.came(1, is_last=True)
    assert timer.left[-1] is None


def test_steps_by_the_millisecond_set_it_once_a_second(timer: FakeTimer) -> None:
    for _ in range(2000):
        timer.came(0.001)
    assert len(timer.left) <= 2 / AGAIN + 2
    assert timer.left[-1] == SHORTEST


def test_it_is_off_outside_a_trainjob_and_where_one_says_so(timer: FakeTimer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(names.STALL_SECONDS, "0")
    timer.came()
    monkeypatch.setenv(names.STALL_SECONDS, "often")
    timer.came()
    assert timer.left == [TIMES * SHORTEST]
    monkeypatch.delenv(names.STATUS_FILE)
    timer.came(100)
    assert len(timer.left) == 1


def test_a_stream_without_a_file_stops_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Timer):
        def set(self, seconds: float) -> None:
            raise RuntimeError(f"sys.stderr is None, for {seconds} seconds")

    monkeypatch.setenv(names.STATUS_FILE, str(tmp_path / "status"))
    monkeypatch.setattr(progress, "_watch", Watch(timer=Refusing()))
    monkeypatch.setattr(progress, "update_trainjob_status", lambda *_: True)
    assert progress.report(1, of=2)


def test_a_process_that_stands_says_where(tmp_path: Path) -> None:
    code = """
import time
from trainplane import progress
def stands():
    time.sleep(3)
for step in range(8):
    progress.report(step, of=100)
stands()
"""
    here = {**os.environ, names.STATUS_FILE: str(tmp_path / "status"), names.STALL_SECONDS: "0.5", "RANK": "3"}
    said = subprocess.run([sys.executable, "-c", code], env=here, capture_output=True, text=True, check=True).stderr
    assert said.startswith("Timeout (0:00:00.5")
    assert said.count("Timeout") == 1
    assert "in stands" in said


def test_a_process_that_forks_does_not_hang_its_children(tmp_path: Path) -> None:
    """A child has no thread of the timer: to set it anew, or to end, it would wait for that one for ever."""
    code = """
import os, time
from trainplane import progress
for step in range(8):
    progress.report(step, of=100)
child = os.fork()
if child == 0:
    progress.report(9, of=100)
    raise SystemExit(7)
_, code = os.waitpid(child, 0)
time.sleep(1)
raise SystemExit(os.WEXITSTATUS(code))
"""
    here = {**os.environ, names.STATUS_FILE: str(tmp_path / "status"), names.STALL_SECONDS: "0.5"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env=here,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 7
    assert done.stderr.startswith("Timeout"), "the parent's timer is set again"
