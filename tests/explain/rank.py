"""One rank of a training that goes wrong: `python3 rank.py CASE`. Real sockets and errors; no torch, to be quick.

Ranks meet at rank 0 as torch's do, and tell each other of every step. One of them, the culprit, fails in the way that
the case says. The others notice as real ones do, by their sockets, and say what gloo or NCCL say then; or they are
stopped before they notice. Where a library is not here (CUDA, NCCL, the Hugging Face hub), its words are printed as its
documentation has them.

Shares nothing with what is judged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

CASE: dict[str, Any] = json.loads(sys.argv[1])
RANK, COUNT = int(os.environ["PET_NODE_RANK"]), int(os.environ["PET_NNODES"])
WHERE = (os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"]))
DRAWN = random.Random(f"{CASE['seed']} {RANK}")  # noqa: S311 no secret
PEERS: list[socket.socket] = []


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def library_error(name: str, message: str) -> Exception:
    """Return an exception of a library that is not here."""
    module, _, kind = name.rpartition(".")
    error: Exception = type(kind, (RuntimeError,), {"__module__": module})(message)
    return error


# -- what the log has beside the fault --------------------------------------------------------------------------------


def noise(lines: int) -> None:
    for number in range(lines):
        DRAWN.choice(NOISE)(number)


def handled(_: int) -> None:
    """Print an error that is got over, as libraries do that try again."""
    import traceback  # noqa: PLC0415 seldom

    try:
        raise DRAWN.choice([ConnectionResetError(104, "Connection reset by peer"), KeyError("cache"), OSError("slow")])
    except (OSError, KeyError):
        say("will try again after:")
        traceback.print_exc(file=sys.stdout)
    for step in range(16):
        say(f"went on with step {step}")


NOISE: list[Callable[[int], None]] = [
    lambda n: say(f"epoch {n // 10} step {n} loss={DRAWN.random():.4f} lr=0.001"),
    lambda n: say(f"[rank{RANK}] step {n}: {DRAWN.randrange(9000)} tokens/s"),
    lambda n: say(f'{{"level": "info", "step": {n}, "rank": {RANK}}}'),
    lambda n: say(f"\x1b[32mINFO\x1b[0m checkpoint-{n} saved to /tmp/x"),
    lambda _: say("/usr/lib/python3/site-packages/x.py:12: UserWarning: The given array is not writable"),
    lambda _: say("W1116 05:00:01.123 17 torch/distributed/run.py:766] Setting OMP_NUM_THREADS to be 1"),
    lambda _: say("WARNING: connection refused by tracker.example, will retry"),
    lambda _: say("CUDA out of memory caught, trying again with batch size 8"),
    lambda _: say("errors so far: 0"),
    lambda _: say("x" * 3000),
]


# -- meeting, and noticing --------------------------------------------------------------------------------------------


def meet() -> None:
    if RANK == 0:
        server = socket.create_server(("", WHERE[1]))
        server.settimeout(60)
        waits_for = COUNT - 1 + (CASE["kind"] == "world_size")
        deadline = time.monotonic() + 60
        while len(PEERS) < waits_for:
            if len(PEERS) == COUNT - 1:
                server.settimeout(2)
            try:
                PEERS.append(server.accept()[0])
            except TimeoutError:
                joined = f"{len(PEERS) + 1}/{waits_for + 1} clients joined."
                message = f"Timed out after 3 seconds waiting for clients. {joined}"
                raise library_error("torch.distributed.DistStoreError", message) from None
            assert time.monotonic() < deadline
        return
    while True:
        try:
            PEERS.append(socket.create_connection(WHERE, timeout=60))
        except OSError:
            time.sleep(0.02)
        else:
            return


def exchange(seconds: float) -> None:
    """Train for some time: tell the others of steps, and notice when one is gone or silent."""
    until = time.monotonic() + seconds
    heard = dict.fromkeys(PEERS, time.monotonic())
    for peer in PEERS:
        peer.settimeout(0.05)
    while time.monotonic() < until:
        for peer in PEERS:
            try:
                peer.send(b".")
                if not peer.recv(64):
                    lost()
                heard[peer] = time.monotonic()
            except TimeoutError:
                if time.monotonic() - heard[peer] > CASE["patience"]:
                    waited_in_vain()
            except OSError:
                lost()


def lost() -> NoReturn:
    how = CASE["notice"]
    if how == "silent":
        time.sleep(600)
    if how == "nccl":
        say(
            f"node{RANK}:17:91 [0] misc/socket.cc:484 NCCL WARN socketProgress: Connection "
            "closed by remote peer 10.0.0.7"
        )
        raise library_error(
            "torch.distributed.DistBackendError",
            "NCCL error in: ProcessGroupNCCL.cpp:3356, remote process exited or there was a network error\n"
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        )
    if how == "os":
        raise ConnectionResetError(104, "Connection reset by peer")
    if how == "mute":
        os._exit(1)
    raise RuntimeError(
        f"[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.7]:{RANK + 4000}"
    )


def waited_in_vain() -> NoReturn:
    if CASE["notice"] == "nccl":
        say(
            f"[rank{RANK}]:[E1116 05:00:09.1 ProcessGroupNCCL.cpp:632] [Rank {RANK}] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=2000) ran for 2001 milliseconds"
        )
        os.abort()
    raise RuntimeError(
        "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 2000ms for recv "
        "operation to complete"
    )


def at_stop(how: str) -> None:
    """Choose what this rank does when it is told to stop."""
    if how == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif how == "torchrun":

        def tell(number: int, _: Any) -> None:
            raise library_error(
                "torch.distributed.elastic.multiprocessing.api.SignalException",
                f"Process {os.getpid()} got signal: {number}",
            )

        signal.signal(signal.SIGTERM, tell)


# -- faults -----------------------------------------------------------------------------------------------------------


def python_error() -> None:
    data: Any = {"rows": []}
    five: Any = 5
    ways: list[Callable[[], object]] = [
        lambda: data["columns"],
        lambda: data["rows"][3],
        lambda: 1 / 0,
        lambda: int("seven"),
        lambda: len(five),
        lambda: data.rows,
        lambda: exec("raise AssertionError('sizes differ')"),  # noqa: S102 an error's text
        lambda: exec("raise RuntimeError('The size of tensor a (3) must match the size of tensor b (4)')"),  # noqa: S102
        lambda: exec("raise ValueError('rank 1 has no shard: the peer closed the file')"),  # noqa: S102
    ]
    DRAWN.choice(ways)()


def chained() -> None:
    try:
        os.environ["NO_SUCH_SHARD"]
    except KeyError as error:
        if DRAWN.random() < 0.5:
            raise ValueError("no shard for this rank") from error
        raise TypeError("cannot collate") from None


def missing_module() -> None:
    __import__(DRAWN.choice(["flash_attn", "deepspeed_not_here", "my_package.models"]))


def file_missing() -> None:
    open(f"/workspace/dataset/{DRAWN.randrange(99)}.json")  # noqa: PTH123, SIM115 it fails


def permission() -> None:
    raise PermissionError(13, "Permission denied", "/checkpoints/last")


def disk_full() -> None:
    with open("/dev/full", "w") as file:  # noqa: PTH123 as users write
        file.write("x" * 100_000)


def port_taken() -> None:
    taken = socket.create_server(("", 0))
    socket.socket().bind(taken.getsockname())


def exit_code() -> None:
    os._exit(DRAWN.choice([2, 3, 7, 42, 255]))


def crash() -> None:
    os.kill(os.getpid(), DRAWN.choice([signal.SIGSEGV, signal.SIGFPE]))
    time.sleep(5)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def memory() -> None:
    data = bytearray(400 << 20)
    time.sleep(600)
    data.clear()


def memory_error() -> None:
    import resource  # noqa: PLC0415 seldom

    resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
    bytearray(2 << 30)


def name() -> None:
    socket.getaddrinfo("data.invalid", 443)


def refused() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    server.close()
    socket.create_connection(("127.0.0.1", port))


def denied() -> None:
    kind, text = DRAWN.choice([
        ("huggingface_hub.errors.GatedRepoError", "401 Client Error. (Request ID: 1-2)\n\nCannot access gated repo"),
        ("botocore.exceptions.ClientError", "An error occurred (AccessDenied) when calling the GetObject operation"),
        ("botocore.exceptions.NoCredentialsError", "Unable to locate credentials"),
    ])  # fmt: skip
    raise library_error(kind, text)


def data_missing() -> None:
    kind, text = DRAWN.choice([
        ("huggingface_hub.errors.RepositoryNotFoundError", "404 Client Error. (Request ID: Root=1-2)"),
        ("botocore.exceptions.ClientError", "An error occurred (NoSuchKey) when calling the GetObject operation"),
    ])  # fmt: skip
    raise library_error(kind, text)


def expired() -> None:
    raise ssl.SSLCertVerificationError(
        1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1032)"
    )


def cuda_memory() -> None:
    raise library_error(
        "torch.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB, 1.2 GiB is free.",
    )


def cuda_error() -> None:
    text = DRAWN.choice(["an illegal memory access was encountered", "device-side assert triggered"])
    raise RuntimeError(
        f"CUDA error: {text}\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
    )


def ecc() -> None:
    if DRAWN.random() < 0.5:
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered\nCompile with `TORCH_USE_CUDA_DSA`")
    say("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.")
    raise library_error(
        "torch.distributed.DistBackendError",
        "NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    )


def not_a_number() -> None:
    if DRAWN.random() < 0.5:
        say("Loss is nan, stopping training")
        sys.exit(1)
    raise FloatingPointError("non-finite loss at step 12")


def arguments() -> None:
    import argparse  # noqa: PLC0415 seldom

    parser = argparse.ArgumentParser(prog="train.py")
    parser.add_argument("--epochs", type=int)
    parser.parse_args(DRAWN.choice([["--epoch-count", "3"], ["--epochs", "three"]]))


def script() -> None:
    os.execvp(sys.executable, [sys.executable, "/workspace/trian.py"])  # noqa: S606 that is what fails


def shared_memory() -> None:
    raise RuntimeError(
        f"DataLoader worker (pid {DRAWN.randrange(99, 999)}) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
    )


def launched() -> None:
    """Be a launcher whose process is killed: say of it what torchrun says, and end with 1."""
    number = {"launched_killed": 9, "launched_crash": 11, "launched_error": 1}[CASE["kind"]]
    if number == 1:
        code = "import sys\nprint('begins', flush=True)\nraise ValueError('no rows in shard 3')"
    else:
        code = f"import os\nprint('begins', flush=True)\nos.kill(os.getpid(), {number})"
    child = subprocess.run([sys.executable, "-uSc", code], check=False)
    head = "E1116 05:00:03.7 17 torch/distributed/elastic/multiprocessing/api.py:869]"
    say(f"{head} failed (exitcode: {child.returncode}) local_rank: 0 (pid: 94) of binary: /usr/bin/python3")
    say("Traceback (most recent call last):")
    say('  File "/usr/bin/torchrun", line 8, in <module>')
    say("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")
    say("=" * 60 + "\ntrain.py FAILED\n" + "-" * 60 + "\nRoot Cause (first observed failure):")
    say(f"[0]:\n  time      : 2026-11-16_05:00:03\n  rank      : {RANK} (local_rank: 0)")
    say(f"  exitcode  : {child.returncode} (pid: 94)\n  error_file: <N/A>\n" + "=" * 60)
    os._exit(1)


def hang() -> None:
    time.sleep(600)


FAULTS = {
    "python_error": python_error, "chained": chained, "missing_module": missing_module, "file_missing": file_missing,
    "permission": permission, "disk_full": disk_full, "port_taken": port_taken, "exit_code": exit_code,
    "crash": crash, "killed": killed, "memory": memory, "memory_error": memory_error, "name": name,
    "refused": refused, "denied": denied, "data_missing": data_missing, "expired": expired,
    "cuda_memory": cuda_memory, "cuda_error": cuda_error, "ecc": ecc, "not_a_number": not_a_number,
    "arguments": arguments, "script": script, "shared_memory": shared_memory, "launched_killed": launched,
    "launched_crash": launched, "launched_error": launched, "hang": hang,
}  # fmt: skip


def main() -> None:
    culprit = CASE["rank"] == RANK
    if not culprit:
        at_stop(CASE["stop"])
    noise(CASE["noise"] if culprit else DRAWN.randrange(30))
    if CASE["handled"]:
        handled(0)
    meet()
    if CASE["kind"] == "world_size":
        time.sleep(600)
    exchange(CASE["after"] if culprit else 600)
    if CASE["lingers"]:  # its sockets go first: the others notice before it has ended
        try:
            FAULTS[CASE["kind"]]()
        except Exception:  # noqa: BLE001 whichever it is
            import traceback  # noqa: PLC0415 seldom

            traceback.print_exc()
            for peer in PEERS:
                peer.close()
            time.sleep(CASE["lingers"])
            os._exit(1)
    FAULTS[CASE["kind"]]()


if __name__ == "__main__":
    main()
