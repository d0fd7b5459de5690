"""Stacks that a process printed because it got on no more."""

from __future__ import annotations

import faulthandler
import tempfile
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from trainplane.explain.explain import explain
from trainplane.explain.facts import Facts, Line
from trainplane.explain.logs import read_log
from trainplane.explain.stacks import read_stand, without_stacks

WAITS = """\
step 7
Timeout (0:01:00)!
Thread 0x00007f5d5cbff6c0 (most recent call first):
  File "/usr/lib/python3.13/threading.py", line 359 in wait

Thread 0x00007f5d8f4a1740 [python3] (most recent call first):
  File "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", line 2806 in all_reduce
  File "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", line 81 in wrapper
  File "/workspace/train.py", line 31 in step
  File "/workspace/train.py", line 40 in <module>
""".splitlines()
READS = """\
Timeout (0:01:00)!
Thread 0x00007f5d8f4a1740 (most recent call first):
  File "/usr/lib/python3.13/socket.py", line 719 in readinto
  File "/workspace/data.py", line 12 in read_shard
  File "/workspace/train.py", line 40 in <module>
""".splitlines()


def test_what_cpython_prints_is_read() -> None:
    """The real thing: a thread that waits, and a main thread that sleeps in this very function."""
    threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback_later(0.05, file=file)
        time.sleep(1)
        file.seek(0)
        lines = file.read().splitlines()
    stand = read_stand(["step 1", *lines])
    assert stand is not None
    assert not stand.waits
    assert without_stacks(["step 1", *lines]) == ["step 1"]
    cut = read_stand(lines[-3:])
    assert cut is None or cut.frame.line


def test_the_innermost_call_of_the_programs_own() -> None:
    waits, reads = read_stand(WAITS), read_stand(["a", *READS, "", ""])
    assert waits is not None
    assert reads is not None
    assert (waits.frame.function, waits.frame.line, waits.waits) == ("step", 31, True)
    assert (str(reads), reads.waits) == ("read_shard (/workspace/data.py:12)", False)


@pytest.mark.parametrize(
    "lines",
    [
        [*READS, "step 8"],
        ["Fatal Python error: Segmentation fault", "", *READS[1:]],
        READS[:1],
        [],
        ["step 8"],
        ['  File "x", line 3, in f', "KeyError: 1"],
    ],
)
def test_who_goes_on_or_crashed_does_not_stand(lines: list[str]) -> None:
    assert read_stand(lines) is None


def test_a_crash_keeps_its_frames() -> None:
    lines = ["Fatal Python error: Segmentation fault", "", "Current thread 0x0001 (most recent call first):", READS[2]]
    assert without_stacks(lines) == lines


def test_an_error_after_stacks_is_the_error() -> None:
    log = [*READS, "Traceback (most recent call last):", '  File "t.py", line 1, in <module>', "KeyError: 1"]
    assert (read_log(log).cause, read_log(log).lines[-1]) == ("PythonError", "KeyError: 1")


def test_the_rank_that_waits_for_nobody_is_named() -> None:
    told = explain(_facts(WAITS, READS, WAITS), datetime(2026, 11, 16, tzinfo=UTC))
    assert (told.cause, told.step, told.pod, told.certainty) == ("Hang", "node-1", "a-node-0-1-x", "likely")
    assert told.detail.startswith("node-1 stands in read_shard (/workspace/data.py:12); node-0 stands in step ")
    both = explain(_facts(READS, READS), datetime(2026, 11, 16, tzinfo=UTC))
    assert (both.cause, both.step) == ("Hang", "")
    assert not explain(_facts([*READS, "step 9"], WAITS[:1]), datetime(2026, 11, 16, tzinfo=UTC)).cause


def test_hostile_stacks_are_bounded() -> None:
    long = f'  File "{"/" * 300}", line 1 in {"f" * 190}'
    stand = read_stand([*READS[:2], long])
    assert stand is not None
    assert len(str(stand)) < 300
    secret = read_stand([*READS[:2], '  File "/x.py", line 1 in password=hunter2hunter2'])
    assert "hunter2" not in str(secret)


def _facts(*logs: list[str]) -> Facts:
    def pod(rank: int) -> dict[str, Any]:
        labels = {"jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": "0"}
        annotations = {"batch.kubernetes.io/job-completion-index": str(rank)}
        running = {"containerStatuses": [{"name": "node", "state": {"running": {}}}], "phase": "Running"}
        meta = {"name": f"a-node-0-{rank}-x", "labels": labels, "annotations": annotations}
        return {"metadata": meta, "spec": {"nodeName": "n", "containers": [{"name": "node"}]}, "status": running}

    told = {f"node-{rank}": [Line(line) for line in lines] for rank, lines in enumerate(logs)}
    return Facts({"metadata": {"name": "a"}}, [pod(rank) for rank in range(len(logs))], logs=told)
