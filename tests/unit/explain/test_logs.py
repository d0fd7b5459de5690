"""What the end of a log says."""

from __future__ import annotations

import pytest

from trainplane.explain.catalogue import CLASSES
from trainplane.explain.logs import read_log
from trainplane.explain.signatures import _TABLE

HEAD, FRAME = "Traceback (most recent call last):", '  File "train.py", line 8, in fit'


def raised(
    *errors: str, link: str = "During handling of the above exception, another exception occurred:"
) -> list[str]:
    lines: list[str] = []
    for error in errors:
        lines += [*([link] if lines else []), HEAD, FRAME, error]
    return lines


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("KeyError: 'x'", "PythonError"),
        ("ModuleNotFoundError: No module named 'flash_attn'", "MissingModule"),
        ("OSError: [Errno 28] No space left on device: '/data/x'", "DiskFull"),
        ("OSError: [Errno 98] Address already in use", "PortTaken"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "CudaOutOfMemory"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "CudaError"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "GpuFault"),
        ("RuntimeError: No CUDA GPUs are available", "GpuMissing"),
        ("RuntimeError: [pair.cc:547] Connection closed by peer [10.0.0.7]:4000", "PeerLost"),
        ("RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation", "CollectiveTimeout"),
        ("torch.distributed.DistStoreError: Timed out waiting for clients. 1/2 clients joined.", "RendezvousTimeout"),
        ("socket.gaierror: [Errno -2] Name or service not known", "NameNotResolved"),
        ("ConnectionRefusedError: [Errno 111] Connection refused", "NetworkError"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error.", "AccessDenied"),
        ("ssl.SSLCertVerificationError: certificate verify failed: certificate has expired", "CertificateExpired"),
        ("PermissionError: [Errno 13] Permission denied: '/etc/x'", "PermissionDenied"),
        ("MemoryError", "OutOfMemory"),
        ("ValueError: the peer closed the file: connection reset by peer", "PythonError"),
    ],
)
def test_an_exception_is_of_a_class(error: str, cause: str) -> None:
    reading = read_log(["epoch 1", *raised(error)])
    assert (reading.cause, reading.lines[-1], reading.sure) == (cause, error, True)


def test_ranks_that_print_at_once_are_told_apart() -> None:
    lines = [
        f"[rank0]: {HEAD}",
        f"[rank1]: {HEAD}",
        f"[rank0]: {FRAME}",
        f"[rank1]: {FRAME}",
        "[rank1]: ValueError: no shard",
        "[rank0]: RuntimeError: [pair.cc:547] Connection closed by peer",
    ]
    reading = read_log(lines)
    assert (reading.cause, reading.lines) == ("PythonError", (lines[1], lines[3], lines[4]))


def test_what_was_got_over_is_no_cause() -> None:
    went_on = [f"step {number}" for number in range(30)]
    assert read_log([*raised("ConnectionResetError: [Errno 104] Connection reset by peer"), *went_on]).cause is None
    assert read_log(["CUDA out of memory, trying again with batch size 8", *went_on[:2]]).cause is None
    assert read_log(["connection refused by tracker, will retry"]).cause is None


def test_of_a_chain_the_fault_counts() -> None:
    assert read_log(raised("KeyError: 'a'", "OSError: [Errno 28] No space left on device")).cause == "DiskFull"
    assert read_log(raised("ValueError: bad", "RuntimeError: Connection closed by peer")).cause == "PythonError"
    assert read_log(raised("TimeoutError: timed out", "RuntimeError: Timed out waiting 9ms for recv")).cause == (
        "CollectiveTimeout"
    )


def test_a_launcher_that_reports_a_signal_is_believed() -> None:
    report = "E1116 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 1"
    assert read_log(["step 1", report, "ChildFailedError"]).cause == "OutOfMemory"
    assert read_log([*raised("KeyError: 'a'"), report.replace("-9", "-11")]).cause == "NativeCrash"
    assert read_log([*raised("KeyError: 'a'"), report.replace("-9", "1")]).cause == "PythonError"
    others = "  exitcode  : -15 (pid: 95)"
    assert read_log([*raised("KeyError: 'a'"), report.replace("-9", "1"), others]).cause == "PythonError"


def test_a_library_that_gives_up_said_why_before() -> None:
    lines = ["Watchdog caught collective operation timeout: WorkNCCL(...)", "terminate called after throwing"]
    assert read_log(lines).cause == "CollectiveTimeout"
    assert read_log(lines[1:]).cause == "NativeCrash"


@pytest.mark.parametrize(
    ("complaint", "cause"),
    [
        ("NCCL error: unhandled system error", "NcclError"),
        ("train.sh: cannot find shard 7", None),
        ("the tokenizer reported an ERROR", None),
        ("build_shards failed", None),
    ],
)
def test_standard_error_tells_wherever_it_stands_among_the_last_lines(complaint: str, cause: str | None) -> None:
    """Found in CI: the log had what standard error brought before what standard output had brought earlier."""
    for lines in (["begins", complaint], [complaint, "begins"], ["begins", complaint, "ends", "bye"]):
        reading = read_log(lines)
        assert (reading.cause, reading.lines[-1]) == (cause, complaint)


def test_of_lines_that_complain_of_nothing_the_last_one_stands_for_all() -> None:
    assert read_log(["connection error, will retry", "step 1", "bye"]).lines[-1] == "bye"
    assert read_log(["build_shards failed", "one", "two", "three"]).lines[-1] == "three"
    assert read_log([]).lines == ()


def test_hardware_that_failed_before_the_exception_is_the_cause() -> None:
    lines = ["NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", *raised("RuntimeError: NCCL error in: x")]
    assert read_log(lines).cause == "GpuFault"


def test_every_signature_is_of_a_class_that_is_explained() -> None:
    assert {name for name, _ in _TABLE} <= set(CLASSES)
