"""What one look at a legacy job sees, and what follows from it.

A job of these kinds runs on pods directly, so a look is the job, the pods and services under its names, and the time;
what follows is one `Decision`, which the operator carries out. Everything between the two is pure.

Jobs and pods are trees, as the API server wrote them: what a user's template says passes through unharmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.lifecycle.events import EventContent
    from trainplane.render.plan import CreateOnce

VOLCANO: Final = "volcano"
SCHEDULER_PLUGINS: Final = "scheduler-plugins"
INIT_IMAGE: Final = "alpine:3.10"
"""What the worker of a PyTorchJob waits for its master with, as the old operator's default has it."""
INIT_TRIES: Final = 100
"""How often it asks for the master's address before it gives up, to begin again as the pod's policy says."""


class Ref(NamedTuple):
    """One object, and which of those that had its name one after the other."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What an admin decides for all jobs."""

    cluster_domain: str = ""
    """The suffix of names within the cluster, where pods do not search it: `cluster.local`."""
    gang: str = ""
    """Who schedules all pods of a job or none: `volcano`, `scheduler-plugins`, or nobody."""
    job_managed_by: bool = True
    """Whether `runPolicy.managedBy` is read (the gate JobManagedBy)."""
    init_image: str = INIT_IMAGE
    init_tries: int = INIT_TRIES


@dataclass(frozen=True, slots=True)
class Observed:
    """A job and what there is of it, as one look meets it."""

    job: Tree
    """As stored; what it leaves out is filled in when it is read."""
    pods: tuple[Tree, ...]
    """Those that the job controls, terminating ones too."""
    services: tuple[Tree, ...]
    others: tuple[Tree, ...]
    """ConfigMaps, Secrets (without data), Jobs, PodGroups and autoscalers that the job controls."""
    now: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows: objects to make, objects to delete, the one status to write, the news, when to look again."""

    create: tuple[Tree, ...] = ()
    """Whole objects, with the job as their controller; one that is there by another's hand is left to it."""
    once: tuple[CreateOnce, ...] = ()
    """Objects that draw something random when they are made, and are never changed."""
    apply: tuple[Tree, ...] = ()
    """Whole objects that may change: applied by server-side apply."""
    delete: tuple[Ref, ...] = ()
    status: Tree | None = None
    """The whole new status; None if it is as it was."""
    events: tuple[EventContent, ...] = ()
    again: float | None = None
    """In how many seconds time alone changes something: a deadline, a time to live, a delay."""
    expired: bool = False
    """Whether the job itself is to be deleted: its time to live is over."""
