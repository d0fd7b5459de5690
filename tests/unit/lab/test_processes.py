from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from lab.errors import CommandError, StartError
from lab.processes import Process, only_child, run, spawn, wait_for


def test_a_process_is_seen_alive_and_then_gone(tmp_path: Path) -> None:
    process = spawn(["sleep", "60"], log=tmp_path / "log")
    assert process.alive()
    assert process.rss_mb() > 0
    assert Process(process.pid, process.started + 1).alive() is False
    process.signal(signal.SIGKILL)
    assert process.wait_gone(60)
    assert process.rss_mb() == 0
    assert process.cpu_seconds() == 0


def test_a_process_is_not_gone_before_its_last_thread_is(tmp_path: Path) -> None:
    program = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # ends this thread alone
"""
    process = spawn([sys.executable, "-c", program], log=tmp_path / "log")
    status = Path(f"/proc/{process.pid}/status")
    wait_for("the zombie", lambda: "State:\tZ" in status.read_text(), seconds=60)
    assert process.alive(), "a thread still holds the process's files"
    process.signal(signal.SIGKILL)
    assert process.wait_gone(60)


def test_the_child_of_a_launcher_is_found(tmp_path: Path) -> None:
    launcher = spawn(["sh", "-c", "sleep 60; true"], log=tmp_path / "log")
    child = only_child(launcher, seconds=60)
    child.signal(signal.SIGKILL)
    assert launcher.wait_gone(60)


def test_a_launcher_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="its log says why"):
        only_child(spawn(["false"], log=tmp_path / "log"))


def test_a_failed_command_shows_its_words() -> None:
    with pytest.raises(CommandError, match="ended with 3:\nwhy") as caught:
        run(["sh", "-c", "echo why >&2; exit 3"])
    assert caught.value.code == 3
    assert run(["sh", "-c", "cat; exit 3"], stdin="said", check=False).stdout == "said"


def test_waiting_in_vain_shows_the_end_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\nlast words\n")
    with pytest.raises(StartError, match="last words"):
        wait_for("the engine", lambda: False, seconds=0, log=log)
    assert wait_for("the engine", lambda: True, seconds=0) >= 0
