"""Jobs and fleets to draw, friendly and hostile."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from trainplane.client.types.jobs import Cause, Milestone, Progress, Step, TrainJob
from trainplane.client.types.observation import Observation
from trainplane.client.types.overview import Concern, DeviceUse, Overview, QueueUse, QuotaUse, WorkerState
from trainplane.client.types.runtimes import Runtime

BEGAN = datetime(2026, 11, 16, 8, tzinfo=UTC)
NOW = BEGAN + timedelta(minutes=32)
SIZES = [(80, 24), (120, 40), (200, 60), (60, 16), (20, 5)]
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.40 GiB"
HOSTILE = [
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "[bold red]markup[/] [link=http://evil]x[/link]",
    "宽" * 300,
    "\u202eesrever\u202c \u2066x",
    "שלום עולם مرحبا",
    "a" + "\u0301" * 500,
    "👩\u200d👩\u200d👧\ufe0f" * 50,
    "one\ntwo\r\nthree\x0b\x85four\u2028five\x00",
    "x" * 100_000,
    "\ud800 lone",
    "",
]
"""What tenants may write into names, messages, metrics and logs."""


def points(value: Any, count: int = 120) -> tuple[tuple[datetime, float], ...]:
    return tuple((BEGAN + timedelta(seconds=10 * n), float(value(n))) for n in range(count))


def a_training(nodes: int, status: str = "Running", **changes: Any) -> Observation:
    """Return a job whose last node failed, whose second was started again, and that reports three metrics."""
    steps = [Step("dataset-initializer", "Succeeded", "mnist-dataset")]
    steps += [Step(f"node-{n}", "Running", f"mnist-node-{n}", node=f"gpu-{n}") for n in range(nodes)]
    steps[2].restarts = 1
    steps[-1].status, steps[-1].reason, steps[-1].exit_code = "Failed", "OOMKilled", 137
    reported = Progress(40, 795, {"loss": "0.123456789012345", "accuracy": "0.91"}, NOW - timedelta(seconds=5))
    base: dict[str, Any] = {"namespace": "vision", "queue": "team-a", "progress": reported}
    seen: dict[str, Any] = {
        "metrics": {
            "loss": points(lambda n: 2 * math.exp(-n / 30)),
            "accuracy": points(lambda n: 0.91 - 0.8 * math.exp(-n / 20)),
        },
        "lines": {step.name: "step 118: loss 0.1235, 1.84 s" for step in steps} | {steps[-1].name: OUT_OF_MEMORY},
        "timeline": (
            Milestone("Queued", BEGAN),
            Milestone("Admitted", BEGAN + timedelta(minutes=20)),
            Milestone("Running", BEGAN + timedelta(minutes=21)),
            Milestone("Restarted", BEGAN + timedelta(minutes=25), "NodeLost", 1),
        ),
    }
    for field in list(changes):
        (seen if field in Observation.__dataclass_fields__ else base)[field] = changes.pop(field)
    return Observation(TrainJob("mnist", Runtime("torch-distributed"), steps, nodes, BEGAN, status, **base), **seen)


def a_hostile_training(text: str) -> Observation:
    """Return a job of which all that others write is `text`."""
    steps = [
        Step(text, text, text, reason=text, message=text, node=text),
        Step("node-0", "Running", text, restarts=-(10**30)),
        Step("node-" + "9" * 400, "Failed", text, reason=text, exit_code=1, restarts=10**30),
    ]
    wild = {text: text, "nan": "NaN", "inf": "-inf", "big": "1e308", "digits": "9" * 5000}
    job = TrainJob(
        text,
        Runtime(text),
        steps,
        3,
        BEGAN,
        text,
        namespace=text,
        queue=text,
        cluster=text,
        cause=Cause(text, text, text, 3, (text,)),
        progress=Progress(10**9, -(10**9), wild, BEGAN + timedelta(days=9)),
    )
    return Observation(
        job,
        metrics={text: points(lambda n: 1e308 if n % 2 else -1e308), "one": points(lambda n: n, 1)},
        lines={text: text, "node-0": text},
        timeline=(Milestone(text, NOW, text), Milestone(text, BEGAN, text, -1)),
        unread={"logs": text},
    )


def a_fleet(queues: int = 8, workers: int = 5, text: str = "") -> Overview:
    """Return a hub whose queue team-1 is stopped and whose worker2 is away; `text` is in all that others write."""
    made = tuple(
        QueueUse(
            f"team-{n}{text}",
            n % 3,
            n,
            n != 1,
            f"flavor a100 is missing{text}" if n == 1 else "",
            "all",
            (
                QuotaUse(f"spot{text}", f"cpu{text}", 256, n),
                QuotaUse(f"a100{text}", f"nvidia.com/gpu{text}", 32, min(32, 4 * n)),
                QuotaUse(f"a100{text}", "memory", 512 * 2**30, n * 2**30),
            ),
        )
        for n in range(queues)
    )
    concerns = [Concern("vision", f"job-{n}{text}", "Failed", NOW - timedelta(minutes=n), f"OOM{text}") for n in (1, 2)]
    concerns += [Concern("speech", f"tts-{n}", "Queued", BEGAN, "", f"team-0{text}") for n in range(40)]
    return Overview(
        {"Running": 12, "Queued": 40, "Failed": 2, "Succeeded": 120},
        None,
        tuple(concerns),
        made,
        tuple(WorkerState(f"worker{n}{text}", n != 2, f"no route{text}" * (n == 2), n) for n in range(workers)),
        (DeviceUse(f"nvidia.com/gpu{text}", 64, 40, 16, 8),),
        {f"nodes{text}": f"you may not list nodes{text}"} if text else {},
    )
