"""What a failed step said before its launcher spoke."""

from __future__ import annotations

from trainplane.explain.logs import find_telling

TORCHRUN = """\
epoch 1
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 8, in fail
[rank1]: ValueError: shard 1 has no data
W1115 09:13:03.1 13791 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 7 closing signal SIGTERM
E1115 09:13:03.7 13791 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 4)
Traceback (most recent call last):
  File "torch/distributed/run.py", line 922, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
============================================================""".splitlines()
MPIRUN = """\
ModuleNotFoundError: No module named 'deepspeed'
--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated.
--------------------------------------------------------------------------""".splitlines()
HYDRA = """\
Segmentation fault in the model
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 42 RUNNING AT job-node-0-1""".splitlines()


def test_torchruns_report_is_left_out() -> None:
    assert find_telling(TORCHRUN, 2) == (
        '[rank1]:   File "train.py", line 8, in fail',
        "[rank1]: ValueError: shard 1 has no data",
    )
    assert find_telling(TORCHRUN, 10) == tuple(TORCHRUN[:4])


def test_older_torchruns_write_their_report_otherwise() -> None:
    lines = ["KeyError: 'x'", "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0"]
    assert find_telling(lines, 10) == ("KeyError: 'x'",)


def test_of_several_attempts_the_last_one_counts() -> None:
    again = [*TORCHRUN, "epoch 1", "OSError: disk full", TORCHRUN[5], "ChildFailedError"]
    assert find_telling(again, 1) == ("OSError: disk full",)


def test_mpiruns_reports_are_left_out() -> None:
    assert find_telling(MPIRUN, 10) == ("ModuleNotFoundError: No module named 'deepspeed'",)
    assert find_telling(HYDRA, 10) == ("Segmentation fault in the model",)


def test_without_a_launcher_the_last_lines_tell() -> None:
    assert find_telling(["a", "b", "c"], 2) == ("b", "c")
    assert find_telling([], 2) == ()


def test_colours_do_not_hide_a_report_and_are_taken_out() -> None:
    lines = ["\x1b[1;35mValueError\x1b[0m: no", f"\x1b[31m{TORCHRUN[5]}\x1b[0m", "ChildFailedError"]
    assert find_telling(lines, 5) == ("ValueError: no",)


def test_where_nothing_stands_before_the_report_it_is_shown() -> None:
    assert find_telling(TORCHRUN[5:], 2) == tuple(TORCHRUN[-2:])
