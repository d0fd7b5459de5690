"""What is looked at: TrainJobs with 2, 8 and 256 nodes, a list of them, a fleet; of documents as clusters have them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tests.unit.client.backend import a_job
from tests.unit.client.reading.documents import condition, ended, event, pod, train_job, waiting
from trainplane.client.reading.jobs import read_job
from trainplane.client.types.overview import Concern, DeviceUse, Overview, QueueUse, QuotaUse, WorkerState
from trainplane.explain.facts import Facts, Line
from trainplane.page.fleet import fleet_page
from trainplane.page.job import job_page
from trainplane.page.jobs import jobs_page
from trainplane.page.look import Look, look_at
from trainplane.page.shell import served, style_sheet

if TYPE_CHECKING:
    from trainplane.client.reading.history import Points
    from trainplane.client.types.jobs import TrainJob
    from trainplane.page.markup import Html

BEGIN: Final = datetime(2026, 11, 15, 5, 0, tzinfo=UTC)
NOW: Final = BEGIN + timedelta(minutes=42)
TRACE: Final = (
    "step 118: loss 2.114",
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 88, in <module>',
    "    loss.backward()",
    '  File "/usr/lib/python3/dist-packages/torch/_tensor.py", line 626, in backward',
    "    torch.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.40 GiB. GPU 0 has a capacity of 79.15 GiB.",
)


def failed() -> Look:
    """Two nodes, one of which ran out of GPU memory."""
    job = train_job(
        "llama-finetune",
        nodes=2,
        conditions=[condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")],
        metadata={"labels": {"kueue.x-k8s.io/queue-name": "research"}},
        status={
            "trainerStatus": _progress(23, None, loss="2.114", lr="0.0003"),
            "timeline": _timeline(Queued=0, Admitted=95, Scheduled=97, Pulled=310, Running=312, FirstStep=371),
        },
    )
    pods = [
        _pod(0, "llama-finetune", "Failed", state=ended(1), limits={"nvidia.com/gpu": 8}),
        _pod(1, "llama-finetune", "Failed", state=ended(143, second=34), limits={"nvidia.com/gpu": 8}),
    ]
    logs = {
        "node-0": [_line(number, text) for number, text in enumerate(TRACE)],
        "node-1": [_line(1, "step 118: loss 2.114"), _line(9, "RuntimeError: [pair.cc:547] Connection closed by peer")],
    }
    events = [
        event("TrainJob", "llama-finetune", "Created", "JobSet llama-finetune was made", second=2),
        event("Pod", pods[0]["metadata"]["name"], "Scheduled", "Successfully assigned to gpu-a100-001", second=4),
        event("Pod", pods[0]["metadata"]["name"], "BackOff", "Back-off restarting failed container node", second=40)
        | {"type": "Warning", "count": 3},
    ]
    return look_at(Facts(job, pods, events, logs=logs), NOW, known=_known(23))


def running() -> Look:
    """Eight nodes that train, one of them for the second time."""
    job = train_job(
        "resnet-imagenet",
        nodes=8,
        metadata={"labels": {"kueue.x-k8s.io/queue-name": "vision"}},
        status={
            "trainerStatus": _progress(64, 1380, loss="0.871", accuracy="0.713", throughput="18234"),
            "timeline": _timeline(Queued=0, Admitted=4, Scheduled=7, Pulled=31, Running=33, FirstStep=52),
        },
    )
    pods = [_pod(rank, "resnet-imagenet", restarts=int(rank == 3), limits={"nvidia.com/gpu": 4}) for rank in range(8)]
    logs = {
        f"node-{rank}": [_line(second, f"epoch 57 step {second}: loss 0.{900 - second}") for second in range(6)]
        for rank in range(8)
    }
    events = [event("Pod", one["metadata"]["name"], "Pulled", "Image torch:2.6 was there", second=5) for one in pods]
    return look_at(Facts(job, pods, events, logs=logs, unread=["nodes: forbidden"]), NOW, known=_known(64))


def large() -> Look:
    """256 nodes, of which two wait for an image, and one failed."""
    timeline = _timeline(Scheduled=40, Pulled=420, Running=431, FirstStep=640)
    status = {"trainerStatus": _progress(8, 86_400, loss="5.120"), "timeline": timeline}
    job = train_job("moe-pretraining-256", nodes=256, status=status)
    odd = {
        17: _pod(17, job["metadata"]["name"], "Pending", state=waiting("ImagePullBackOff", "Back-off pulling image")),
        18: _pod(18, job["metadata"]["name"], "Pending", state=waiting("ImagePullBackOff", "Back-off pulling image")),
        200: _pod(200, job["metadata"]["name"], "Failed", state=ended(137, reason="OOMKilled")),
    }
    pods = [odd.get(rank) or _pod(rank, job["metadata"]["name"]) for rank in range(256)]
    logs = {f"node-{rank}": [_line(rank % 60, f"rank {rank}: joined the rendezvous")] for rank in range(64)}
    return look_at(Facts(job, pods, logs=logs), NOW, known=_known(8))


def jobs() -> Html:
    """Return the list of a dozen TrainJobs in all states."""
    failing = [condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")]
    complete = [condition("Complete", "AllJobsCompleted", "jobset completed successfully")]
    listed = []
    for number in range(12):
        name = f"sweep-{number:02d}-lr-{3 * 10 ** -(number % 4 + 2):g}".replace(".", "-")
        conditions = {0: failing, 1: complete}.get(number % 5, ())
        held = number % 5 == 2
        tree = train_job(
            name,
            nodes=2,
            conditions=conditions,
            spec={"suspend": True} if held else {},
            metadata={"labels": {"kueue.x-k8s.io/queue-name": "research"}},
            status={} if held else {"trainerStatus": _progress(7 * number, 60 * number)},
        )
        pods = [] if held else [_pod(rank, name) for rank in range(2)]
        listed.append(read_job(tree, pods, runtime=None))
    return jobs_page(listed, NOW, namespace="research")


def fleet() -> Html:
    """Return a hub with three workers, one of them lost."""
    gib = float(1 << 30)
    seen = Overview(
        jobs={"Running": 14, "Restarting": 1, "Pending": 2, "Queued": 6, "Suspended": 1, "Failed": 3, "Succeeded": 210},
        concerns=(
            Concern("research", "llama-finetune", "Failed", NOW - timedelta(minutes=9), "CudaOutOfMemory", "research"),
            Concern(
                "vision", "detector-4", "Queued", NOW - timedelta(hours=3), "no quota for nvidia.com/gpu", "vision"
            ),
        ),
        queues=(
            QueueUse("research", 4, 9, cohort="all", quotas=(QuotaUse("a100", "nvidia.com/gpu", 64, 64),)),
            QueueUse(
                "vision",
                2,
                5,
                cohort="all",
                quotas=(QuotaUse("a100", "nvidia.com/gpu", 32, 12), QuotaUse("a100", "memory", 4096 * gib, 1200 * gib)),
            ),
            QueueUse("archive", 0, 0, is_active=False, why="stopPolicy is Hold"),
        ),
        workers=(
            WorkerState("worker-east", is_connected=True, jobs=9),
            WorkerState("worker-north", is_connected=False, why="dial tcp: i/o timeout"),
            WorkerState("worker-west", is_connected=True, jobs=5),
        ),
        devices=(DeviceUse("nvidia.com/gpu", 96, 76, 8, 16),),
        unread={"nodes": "you may not list nodes"},
    )
    return fleet_page(seen, NOW, namespace="research")


def pages() -> dict[str, str]:
    """Return each page that is looked at by its name, whole: with its style in it, a file shows what a server does."""
    bodies = {
        "job-2-nodes": ("llama-finetune", job_page(failed())),
        "job-8-nodes": ("resnet-imagenet", job_page(running(), following=True)),
        "job-256-nodes": ("moe-pretraining-256", job_page(large(), following=True)),
        "jobs": ("TrainJobs", jobs()),
        "fleet": ("Fleet", fleet()),
    }
    places = {"jobs": "/jobs", "fleet": "/"}
    return {
        name: inlined(served(title, body, NOW, place=places.get(name, ""))) for name, (title, body) in bodies.items()
    }


def inlined(page: str) -> str:
    """Return a page of the server with its style sheet in it, and without its script."""
    link = '<link rel="stylesheet" href="/style.css"><script src="/script.js" defer></script>'
    if link not in page:
        raise AssertionError("the page has no style sheet")
    return page.replace(link, f"<style>{style_sheet()}</style>")


def _pod(rank: int, job: str, phase: str = "Running", **others: Any) -> Any:
    spec = {} if phase == "Pending" else {"nodeName": f"gpu-a100-{rank + 1:03d}"}
    tree = pod(rank, phase, job=job, **others)
    return {**tree, "spec": {**tree["spec"], **spec}}


def _line(second: int, text: str) -> Line:
    return Line(text, NOW - timedelta(seconds=20 - second / 4))


def _progress(percent: int, remaining: int | None, **metrics: str) -> Any:
    told: Any = {"progressPercentage": percent, "metrics": [{"name": k, "value": v} for k, v in metrics.items()]}
    return told if remaining is None else {**told, "estimatedRemainingSeconds": remaining}


def _timeline(**reached: int) -> Any:
    """Return the stages of a status, each by the seconds after which it was reached."""
    times = {stage: BEGIN + timedelta(seconds=seconds) for stage, seconds in reached.items()}
    return [{"stage": stage, "time": f"{time:%Y-%m-%dT%H:%M:%SZ}"} for stage, time in times.items()]


def _known(points: int) -> TrainJob:
    """Return a TrainJob as `get_job` has it, for the points of its metrics."""
    return a_job(metrics_history=_history(points))


def _history(points: int) -> dict[str, Points]:
    times = [BEGIN + timedelta(seconds=30 * at) for at in range(points)]
    return {
        "loss": tuple((when, 6 * math.exp(-at / 20) + 0.2 * math.sin(at)) for at, when in enumerate(times)),
        "accuracy": tuple((when, 1 - math.exp(-at / 30)) for at, when in enumerate(times)),
        "lr": tuple((when, 3e-4 * min(1.0, at / 10)) for at, when in enumerate(times)),
    }
