"""Jobs, runtimes and events as people look at them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.unit.client.backend import CREATED_AT, a_job, a_runtime
from trainplane.client.types.descriptions import Advice, Description, QueueAnswer
from trainplane.client.types.jobs import Cause, Event, Progress, Step, TrainJob
from trainplane.client.types.runtimes import RuntimeKind, RuntimeTrainer, TrainerType

NOW = CREATED_AT + timedelta(minutes=7)
EVIL = "<script>alert('x')</script>&\"\x1b[31mred\x1b[0m"


def node(number: int, status: str | None = "Running", **changes: Any) -> Step:
    return Step(f"node-{number}", status, f"mnist-node-0-{number}", "gpu", "4", node=f"machine-{number}", **changes)


RUNNING = a_job(
    "Running",
    name="mnist",
    num_nodes=2,
    steps=[Step("dataset-initializer", "Succeeded", "mnist-dataset-0"), node(0), node(1, restarts=1)],
    progress=Progress(45, 184, {"loss": "0.12"}),
    queue="team-queue",
    cluster="east",
)
STARTING = a_job(
    "Created",
    name="mnist",
    num_nodes=4,
    steps=[node(0), node(1, "Pending", reason="ImagePullBackOff", message="there is no such image")],
)
FAILED = a_job(
    "Failed",
    name="mnist",
    num_nodes=2,
    steps=[node(0), node(1, "Failed", reason="OOMKilled", exit_code=137)],
    cause=Cause("OOMKilled", "it took more than 2Gi", "node-1", 137, ("epoch 1", "Killed")),
    finished=CREATED_AT + timedelta(minutes=3),
)
HELD = a_job("Suspended", name="held", num_nodes=8, steps=[], queue="q", cause=Cause("Queued", "it waits for quota"))
LARGE = a_job("Created", name="large", num_nodes=300, steps=[node(i, "Pending" if i % 99 == 5 else "Running") for i in range(300)])  # fmt: skip # noqa: E501 one line for one fact
EVENTS = [
    Event("TrainJob", "held", "made", "JobSetCreated", CREATED_AT),
    Event("Pod", "held-node-0-0", "no GPU is free", "FailedScheduling", CREATED_AT, "Warning", 7, last_time=NOW),
]
ANSWER = QueueAnswer(
    "It needs 8 GPUs, and 5 are free.",
    1,
    4,
    (Advice("bob/train holds 4 GPUs."),),
    (Advice("With 5 nodes it would start.", "client.scale_job('held', 5)", now=True),),
)
DESCRIPTION = Description(HELD, EVENTS, ANSWER)
TUNE = a_runtime(
    name="torchtune",
    kind=RuntimeKind.TRAINING_RUNTIME,
    trainer=RuntimeTrainer(TrainerType.BUILTIN_TRAINER, "torchtune", "tune:1", 2, "gpu", "2", ("tune", "run")),
    pretrained_model="Llama-3.2-1B",
    deprecated=True,
)


def evil_job() -> TrainJob:
    """Return a TrainJob whose every text tries to become markup."""
    return a_job(
        EVIL,
        name=EVIL,
        namespace=EVIL,
        queue=EVIL,
        cluster=EVIL,
        runtime=a_runtime(name=EVIL, trainer=RuntimeTrainer(TrainerType.CUSTOM_TRAINER, EVIL, EVIL, 1, EVIL, EVIL)),
        steps=[Step(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, 1, 1)],
        cause=Cause(EVIL, EVIL, EVIL, 1, (EVIL, EVIL)),
        progress=Progress(1, 1, {EVIL: EVIL}),
    )
