"""What a TrainJob looks like from outside: its state, its steps, what happened, what it printed.

`TrainJob`, `Step` and `Event` have the fields of the `kubeflow` SDK, in its order; fields of ours come last.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.client.types.runtimes import UNKNOWN
from trainplane.client.types.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainplane.client.types.outputs import JobOutput
    from trainplane.client.types.runtimes import Runtime

DATASET_PATH: Final = os.environ.get(names.ENV_DATASET_PATH, names.PATH_DATASET)
"""Where a dataset initializer puts the data, in every node: import it in the function, so that it is right there."""
MODEL_PATH: Final = os.environ.get(names.ENV_MODEL_PATH, names.PATH_MODEL)
"""Where a model initializer puts the model, in every node: import it in the function, so that it is right there."""

CREATED: Final = "Created"
"""Accepted; not all of its nodes run yet."""
SUSPENDED: Final = "Suspended"
"""Held: by you, or by Kueue until there is quota."""
RUNNING: Final = "Running"
"""All nodes run."""
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
STATUSES: Final = (CREATED, SUSPENDED, RUNNING, COMPLETE, FAILED)
FINISHED: Final = frozenset({COMPLETE, FAILED})
"""Words of the SDK's own, light to import; whether a document's conditions end it says `lifecycle.conditions`."""


@dataclass
class Step(Shown):
    """A pod of a TrainJob: an initializer or a node."""

    name: str
    """`dataset-initializer`, `model-initializer`, `node-0`, `node-1`, ..."""
    status: str | None
    """The pod's phase: Pending, Running, Succeeded, Failed; None where it cannot be told."""
    pod_name: str
    device: str = UNKNOWN
    device_count: str = UNKNOWN
    cluster: str | None = None
    """The worker cluster that it is on; None for the cluster that was asked."""
    node: str | None = None
    """The machine that it is on."""
    reason: str | None = None
    """Why it waits or failed: ImagePullBackOff, Unschedulable, OOMKilled, Error, ..."""
    message: str | None = None
    """The same in words, where there are any."""
    exit_code: int | None = None
    """Of its container, once that ended."""
    restarts: int = 0
    """How often its container was started again."""


@dataclass(frozen=True)
class Cause(Shown):
    """Why a TrainJob failed, or does not get on: the first fault, not the last."""

    reason: str
    """One word: OOMKilled, Error, DeadlineExceeded, ImagePullBackOff, ..."""
    message: str
    """A sentence, with what to do where that is known."""
    step: str | None = None
    """The step that failed first."""
    exit_code: int | None = None
    log_tail: tuple[str, ...] = ()
    """The telling lines of that step."""
    kind: str = ""
    """The class of the trouble: a heading of docs/troubleshooting.md, which says what to do."""

    def __str__(self) -> str:
        where = f" in {self.step}" if self.step else ""
        code = f" (exit code {self.exit_code})" if self.exit_code is not None else ""
        text = f"{self.reason}{where}{code}: {self.message}"
        if self.log_tail:
            text += "\nits last lines:\n" + "\n".join(f"  {line}" for line in self.log_tail)
        return text


@dataclass(frozen=True)
class Progress:
    """What the training says about itself, where it does."""

    percent: int | None = None
    remaining_seconds: int | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    updated: datetime | None = None


@dataclass(frozen=True)
class Milestone:
    """A stage that a TrainJob reached, or that it began again."""

    stage: str
    """Queued, Admitted, Initialized, Scheduled, Pulled, Running, FirstStep; Restarted, PodRestarted, Suspended,
    Resumed; Succeeded or Failed."""
    time: datetime
    reason: str = ""
    number: int = 0
    """Of what happens again: the how manieth attempt or stop it was, from 1."""


@dataclass
class TrainJob(Shown):
    """A TrainJob as it is now."""

    name: str
    runtime: Runtime
    steps: list[Step]
    num_nodes: int
    creation_timestamp: datetime
    status: str = UNKNOWN
    """Created, Suspended, Running, Complete or Failed."""
    namespace: str = ""
    """Empty on local backends."""
    cause: Cause | None = None
    """Why it failed, is held, or does not start."""
    cluster: str | None = None
    """The worker cluster that it was dispatched to; None where it runs where it was submitted."""
    queue: str | None = None
    """Its LocalQueue, if Kueue has it."""
    progress: Progress | None = None
    finished: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    metrics_history: Mapping[str, tuple[tuple[datetime, float], ...]] = field(default_factory=dict, compare=False)
    """The last points of each metric that it reported, at most 64, spread over its time; `get_job` brings them."""
    timeline: tuple[Milestone, ...] = field(default=(), compare=False)
    """When it reached each stage of its life, and what made it begin again; `get_job` brings it."""
    outputs: tuple[JobOutput, ...] = ()
    """What is kept of it, where that goes, and whether it is there."""


@dataclass
class Event(Shown):
    """Something that happened to a TrainJob or to what it is made of."""

    involved_object_kind: str
    involved_object_name: str
    message: str
    reason: str
    event_time: datetime
    """When it happened first."""
    type: str = "Normal"
    """Normal or Warning."""
    count: int = 1
    cluster: str | None = None
    """The worker cluster that it happened on; None for the cluster that was asked."""
    last_time: datetime | None = None
    """When it happened last."""


@dataclass(frozen=True)
class LogLine:
    """A line that a step printed."""

    step: str
    """Such as `node-1`."""
    text: str
    """Without the newline."""
    time: datetime | None = None
    """When it was printed."""

    def __str__(self) -> str:
        return f"[{self.step}] {self.text}"
