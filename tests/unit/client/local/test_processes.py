"""Which processes belong together, by a /proc of the test's own, and how real ones are ended."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.local.documents import job, plan
from trainplane.api.podindex import PodIndex
from trainplane.client.backends.local import machine, processes
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from pathlib import Path


def entry(proc: Path, pid: int, parent: int, group: int, *, state: str = "S", mark: str = "", kib: int = 0) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    fields = [state, str(parent), str(group), *["0"] * 16, str(1000 + pid)]
    (folder / "stat").write_text(f"{pid} (a ) b) {' '.join(fields)}")
    (folder / "environ").write_bytes(f"A=1\0{processes.MARK}={mark}\0".encode())
    (folder / "status").write_text(f"Name:\tx\nRssAnon:\t{kib} kB\nRssFile:\t999 kB\nRssShmem:\t1 kB\n")


def test_members_are_found_by_descent_group_and_mark(tmp_path: Path) -> None:
    entry(tmp_path, 10, 1, 10)
    entry(tmp_path, 11, 10, 11)  # its child, in a session of its own
    entry(tmp_path, 12, 1, 10)  # an orphan of its group
    entry(tmp_path, 13, 1, 13, mark="c")  # an orphan in a session of its own
    entry(tmp_path, 14, 13, 14)  # whose child lost the mark
    entry(tmp_path, 15, 10, 10, state="Z")
    entry(tmp_path, 20, 1, 20, mark="other")
    (tmp_path / "meminfo").touch()
    assert processes.members(10, "c", proc=tmp_path) == {10, 11, 12, 13, 14}


def test_memory_is_what_processes_have_for_themselves(tmp_path: Path) -> None:
    entry(tmp_path, 10, 1, 10, kib=10)
    entry(tmp_path, 11, 10, 10, kib=20)
    assert processes.memory([10, 11, 99], proc=tmp_path) == (10 + 1 + 20 + 1) * 1024


def test_what_is_left_is_ended_and_nothing_else() -> None:
    code = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"], start_new_session=True)
print("up", flush=True)
time.sleep(99)
"""
    mark = f"unit-{os.getpid()}"
    marked = os.environ | {processes.MARK: mark}
    with subprocess.Popen([sys.executable, "-c", code], env=marked, stdout=subprocess.PIPE) as left:
        assert left.stdout
        assert left.stdout.readline() == b"up\n"
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            processes.end_recorded(left.pid, processes.started_at(left.pid), mark, seconds=60)
            assert left.wait() == -9
            assert processes.members(-1, mark) == set()
            processes.end_recorded(other.pid, "another time", "unit-none")
            assert other.poll() is None
            other.communicate(b"\n")
            assert other.returncode == 0
    assert processes.started_at(2**22 + 1) == ""


def test_processors_are_shared_in_turn() -> None:
    assert machine.share([0, 1, 2, 3], 2, 0) == [0, 1]
    assert machine.share([0, 1, 2, 3], 2, 2) == [2, 3]
    assert machine.share([0, 1, 2, 3], 3, 3) == [0, 1, 3]
    assert machine.share([0, 1], 8, 5) == [0, 1]
    assert machine.processors()


def test_what_the_machine_has(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert machine.gpu_count(tmp_path) == 2
    assert machine.loopback([(1, "lo")]) == "lo"
    assert machine.loopback([(1, "lo0"), (2, "en0")]) == "lo0"


def test_gpus_are_taken_one_after_the_other_by_those_that_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    two = {"containers": [{"name": "node", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}
    made = plan(job("dataset-initializer", 1), job("launcher", 1), job("node", 2, pod=two))
    node, init = two["containers"][0], {"name": "node"}
    assert [list(machine.gpu_numbers(made, PodIndex("node", 0, index), node)) for index in range(2)] == [[0, 1], [2, 3]]
    assert not machine.gpu_numbers(made, PodIndex("dataset-initializer", 0, 0), init)
    monkeypatch.setattr(machine, "gpu_count", lambda: 3)
    with pytest.raises(InvalidError, match="all nodes together ask for 4 GPUs; this machine has 3"):
        machine.must_have_gpus(made)
