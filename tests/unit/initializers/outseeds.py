"""One output on a bad day, which a seed chooses: lines that break, kills, files that change while they are read.

`run` is what a suite calls with a seed and a running S3 server; it raises if an output is lost, or counts though it is
not whole.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.unit.initializers import child
from tests.unit.initializers.sending import check, contents
from tests.unit.initializers.versity import SECRET, BadLine

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from tests.unit.initializers.versity import Store

PART: Final = 5 << 20
FINAL_FAULTS: Final = {
    "denied": "Denied",
    "bucket": "NotFound",
    "link": "Hostile",
    "pipe": "Invalid",
    "nothing": "NotFound",
}
"""What no try mends, and what it is called."""


@dataclass(frozen=True)
class Day:
    """How an output fared."""

    sent: bool
    cause: str
    faults: int
    """Connections that broke, kills, files that changed."""


def run(seed: int, tmp: Path, store: Store) -> Day:
    """Send an output to a bucket or a claim through the faults of a seed; a failed check is an AssertionError."""
    chance = random.Random(seed)  # noqa: S311 no secret
    folder = tmp / "output"
    folder.mkdir(parents=True)
    _fill(folder, chance)
    final = chance.choice([*FINAL_FAULTS, *[""] * 10])
    on_claim = final not in ("denied", "bucket") and chance.random() < 0.25
    uri = f"pvc://models/{seed}" if on_claim else f"s3://{'nobody' if final == 'bucket' else 'bucket'}/out/{seed}"
    (tmp / "pvc/models").mkdir(parents=True)
    _spoil(folder, final)
    env = {**store.env, "OUTPUT_URI": uri, "PVC_ROOT": str(tmp / "pvc"), "RETRY_SECONDS": "30", "STALL_SECONDS": "5"}
    if final == "denied":
        env["SECRET_ACCESS_KEY"] = "another-key-5678"
    faults = 0
    with BadLine(store.endpoint, seed, both=True) as line, _Writer(folder, chance) as writer:
        env["ENDPOINT"] = line.endpoint
        for kill in range(chance.randrange(3)):
            faults += _killed(env, folder, tmp / f"killed-{kill}", line, chance)
        writer.stop()
        with child.started("output", env, folder, tmp / "last") as process:
            process.join(60)
        faults += line.cuts + writer.changes
    message = json.loads((tmp / "last.log").read_text())
    assert child.ended(tmp / "last")[0] == 0
    for said in tmp.glob("*.out"):
        assert SECRET not in said.read_text()
    there = contents(tmp / f"pvc/models/{seed}" if on_claim else store.root / f"bucket/out/{seed}")
    source = contents(folder) if not final else {}
    whole = check(there, source) is not None
    expected = ("unsent", FINAL_FAULTS[final], False) if final else ("sent", "", True)
    assert (message["output"], message.get("cause", ""), whole) == expected, message
    return Day(whole, message.get("cause", ""), faults)


def _fill(folder: Path, chance: random.Random) -> None:
    for index in range(chance.randrange(1, 7)):
        path = folder / f"{chance.choice(['', 'checkpoint-1/', 'checkpoint-2/deep/'])}{index}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.choice([0, 1, 4096, 300_000, PART - 1, PART, PART + 1, 2 * PART + 7])))


def _spoil(folder: Path, final: str) -> None:
    if final == "link":
        (folder / "bad").symlink_to("/proc/self/environ")
    elif final == "pipe":
        os.mkfifo(folder / "bad")
    elif final == "nothing":
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()


def _killed(env: dict[str, str], folder: Path, said: Path, line: BadLine, chance: random.Random) -> int:
    """Start a sender and kill it after some bytes; return whether it was still at work."""
    at = line.carried + chance.choice([0, 3_000, 200_000, 4_000_000])
    late = time.monotonic() + chance.uniform(0.05, 1)
    with child.started("output", env, folder, said) as process:
        while process.is_alive() and line.carried < at and time.monotonic() < late:
            time.sleep(0.002)
        alive = process.is_alive()
        process.kill()
    return int(alive)


class _Writer:
    """Goes on writing to a file while senders are at work, until it is stopped."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._paths = sorted(path for path in folder.rglob("*.bin") if path.is_file())
        self._seed = chance.random()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.changes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Write no more."""
        self._stopped.set()
        self._thread.join()

    def _write(self) -> None:
        chance = random.Random(self._seed)  # noqa: S311 no secret
        while self._paths and not self._stopped.wait(chance.uniform(0.01, 0.2)):
            with chance.choice(self._paths).open("r+b") as opened:
                opened.seek(chance.randrange(PART))
                opened.write(chance.randbytes(1000))
            self.changes += 1
