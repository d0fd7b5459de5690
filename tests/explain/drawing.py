"""Faults drawn at random: what goes wrong, on which rank, when, how the others die, what else is in the logs.

What each ought to be called is said here, by who made the fault. Shares nothing with what is judged.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PROGRAM: Final = Path(__file__).with_name("rank.py")
KINDS: Final = {
    "python_error": "PythonError",
    "chained": "PythonError",
    "missing_module": "MissingModule",
    "file_missing": "FileMissing",
    "permission": "PermissionDenied",
    "disk_full": "DiskFull",
    "port_taken": "PortTaken",
    "exit_code": "ExitCode",
    "crash": "NativeCrash",
    "killed": "Killed",
    "memory": "OutOfMemory",
    "memory_error": "OutOfMemory",
    "name": "NameNotResolved",
    "refused": "NetworkError",
    "denied": "AccessDenied",
    "data_missing": "DataMissing",
    "expired": "CertificateExpired",
    "cuda_memory": "CudaOutOfMemory",
    "cuda_error": "CudaError",
    "ecc": "GpuFault",
    "not_a_number": "NotANumber",
    "arguments": "WrongArguments",
    "script": "WrongCommand",
    "shared_memory": "SharedMemory",
    "launched_killed": "OutOfMemory",
    "launched_crash": "NativeCrash",
    "launched_error": "PythonError",
    "hang": "Hang",
    "world_size": "WrongWorldSize",
}
"""What goes wrong, and what that is called."""
_RAISED: Final = ("python_error", "chained", "missing_module", "file_missing", "denied", "expired", "cuda_memory")
"""Faults after which a process may linger before it ends: exit handlers, destructors of process groups."""
MEMORY: Final = "200Mi"


@dataclass(frozen=True)
class Case:
    """One fault."""

    seed: int
    kind: str
    ranks: int
    rank: int
    """Who fails."""
    skew: tuple[float, ...]
    """By how many seconds the clock of each rank's node is wrong."""
    told: dict[str, Any]
    """What the ranks are told."""

    @property
    def name(self) -> str:
        """The TrainJob's name."""
        return f"case-{self.seed}"

    @property
    def expected(self) -> str:
        """What it is called."""
        return KINDS[self.kind]

    def trainjob(self) -> dict[str, Any]:
        """Return the TrainJob that fails so."""
        trainer: dict[str, Any] = {
            "numNodes": self.ranks,
            "command": [sys.executable, "-uS", str(PROGRAM), json.dumps(self.told)],
        }
        if self.kind == "memory":
            trainer["resourcesPerNode"] = {"limits": {"memory": MEMORY}, "requests": {"memory": MEMORY}}
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": self.name},
            "spec": {
                "runtimeRef": {"name": "torch", "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
                "trainer": trainer,
            },
        }


def draw(seed: int) -> Case:
    """Return the fault of a seed; kinds take turns, all else is drawn."""
    drawn = random.Random(seed)  # noqa: S311 no secret
    kind = list(KINDS)[seed % len(KINDS)]
    ranks = drawn.choice([2, 2, 3, 4])
    rank = 0 if kind == "world_size" else drawn.randrange(ranks)
    skew = tuple(drawn.uniform(-20, 20) if drawn.random() < 0.1 else drawn.gauss(0, 0.5) for _ in range(ranks))
    stop = drawn.choice(["die", "die", "ignore", "ignore", "torchrun"])
    told = {
        "seed": seed,
        "kind": kind,
        "rank": rank,
        "after": round(drawn.uniform(0.1, 1.0), 2),
        "noise": drawn.choice([0, 3, 40, 200]),
        "handled": drawn.random() < 0.25,
        "notice": drawn.choice(["gloo", "gloo", "nccl", "os", "mute", "silent"]) if kind != "hang" else "gloo",
        "stop": "ignore" if kind == "hang" else stop,
        "patience": 2.0 if kind == "hang" else 60.0,
        "lingers": round(drawn.uniform(0.2, 1.5), 2) if kind in _RAISED and drawn.random() < 0.3 else 0,
    }
    if kind == "hang" and drawn.random() < 0.4:
        told["notice"] = "nccl"
    return Case(seed, kind, ranks, rank, skew, told)
