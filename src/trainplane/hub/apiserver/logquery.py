"""What a reader of logs asks for, and which runs of which containers that means. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api import names
from trainplane.api.legacy import names as legacy_names
from trainplane.api.legacy.kinds import KINDS as LEGACY
from trainplane.api.podindex import number_pods
from trainplane.hub.errors import NoLogError, QueryError
from trainplane.hub.logarchive.keptjob import in_turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainplane.hub.logarchive.journal import Journal
    from trainplane.hub.logarchive.keptjob import KeptJob, KeptPod

ALL: Final = "all"
_PARAMETERS: Final = frozenset(
    {
        "follow",
        "previous",
        "timestamps",
        "container",
        "rank",
        "step",
        "tailLines",
        "sinceSeconds",
        "limitBytes",
        "pretty",
    }
)
_TRAINING: Final = (
    names.JOB_LAUNCHER,
    names.JOB_NODE,
    *(name.lower() for name in (legacy_names.CHIEF, legacy_names.MASTER, legacy_names.WORKER)),
)
"""Steps that train: of those that a job has, the first tells the most."""
_CONTAINERS: Final = tuple(kind.container for kind in LEGACY.values())
_TRUTHS: Final = {"true": True, "1": True, "": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The parameters of a request for logs, in the words of pods' own where they have one."""

    follow: bool = False
    """Go on until the job has finished, through restarts; wait for pods that are not there yet."""
    previous: bool = False
    """The run before the last: of the container, or of the pod whose place was taken."""
    timestamps: bool = False
    """Begin each line with the time at which it was printed."""
    container: str | None = None
    """The container; None: the one that trains."""
    rank: int | None = 0
    """The pod's number within its step; None: all of them, each line marked with whose it is."""
    step: str | None = None
    """The part of the job: `node`, `dataset-initializer`, `master`; None: the one that trains."""
    tail_lines: int | None = None
    """Only so many last lines, of each rank."""
    since_seconds: int | None = None
    """Only lines that are not older."""
    limit_bytes: int | None = None
    """Only so many bytes of text, of all ranks together."""


def parse(query: Mapping[str, str]) -> LogQuery:
    """Return what the parameters of a URL ask for; raises QueryError that names the wrong one."""
    unknown = sorted(set(query) - _PARAMETERS)
    if unknown:
        raise QueryError(f"{unknown[0]}: is no parameter of logs: these are {', '.join(sorted(_PARAMETERS))}")
    rank = query.get("rank", "0")
    return LogQuery(
        follow=_truth(query, "follow"),
        previous=_truth(query, "previous"),
        timestamps=_truth(query, "timestamps"),
        container=query.get("container"),
        rank=None if rank == ALL else _number({"rank": rank}, "rank", f"write a number, or {ALL}"),
        step=query.get("step"),
        tail_lines=_number(query, "tailLines"),
        since_seconds=_number(query, "sinceSeconds"),
        limit_bytes=_number(query, "limitBytes"),
    )


def _truth(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "false")
    if value not in _TRUTHS:
        raise QueryError(f"{name}: is {value!r}: write true or false")
    return _TRUTHS[value]


def _number(query: Mapping[str, str], name: str, advice: str = "write a number") -> int | None:
    value = query.get(name)
    if value is None:
        return None
    if not value.isdecimal() or len(value) > 18:
        raise QueryError(f"{name}: is {value!r}: {advice}")
    return int(value)


class Run(NamedTuple):
    """One run of a container."""

    pod: KeptPod
    container: str
    number: int
    journal: Journal


class Rank(NamedTuple):
    """The place that pods take within a job, one at a time."""

    step: str
    number: int

    def __str__(self) -> str:
        return f"{self.step}-{self.number}"


def ranks(job: KeptJob) -> dict[Rank, list[KeptPod]]:
    """Return the pods of a job by the place they took, each place's in the order in which they took it."""
    found: dict[Rank, list[KeptPod]] = {}
    numbers = number_pods(pod.index for pod in job.pods.values())
    for pod in in_turn(job.pods.values()):
        found.setdefault(Rank(pod.step, numbers[pod.index]), []).append(pod)
    return dict(sorted(found.items()))


def training_step(steps: Iterable[str]) -> str | None:
    """Return the step that trains: with MPI the launcher, whose output is all ranks'; else the nodes, or who leads."""
    present = sorted(set(steps))
    for name in _TRAINING:
        if name in present:
            return name
    others = [step for step in present if step not in {names.JOB_DATASET, names.JOB_MODEL}]
    return next(iter(others or present), None)


def choose(job: KeptJob, query: LogQuery) -> dict[Rank, list[Run]]:
    """Return the runs of each rank that a query means, oldest first: a reader takes the last, or the one before.

    Raises NoLogError where nothing of the kind has printed anything, naming what there is.
    """
    places = ranks(job)
    step = query.step or training_step(rank.step for rank in places)
    chosen = {
        rank: _runs(pods, query.container)
        for rank, pods in places.items()
        if rank.step == step and query.rank in {None, rank.number}
    }
    found = {rank: runs for rank, runs in chosen.items() if len(runs) > int(query.previous)}
    if not found:
        raise NoLogError(_why_none(job, query, places, chosen))
    return found


def _runs(pods: list[KeptPod], container: str | None) -> list[Run]:
    runs = []
    for pod in pods:
        name = container or training_container(pod)
        numbers = sorted(number for known, number in pod.runs if known == name)
        runs += [Run(pod, name, number, pod.runs[name, number]) for number in numbers]
    return runs


def training_container(pod: KeptPod) -> str:
    """Return the container of a pod that does its work."""
    for name in (names.CONTAINER_NODE, pod.step, *_CONTAINERS):
        if name in pod.containers:
            return name
    return next(iter(pod.containers), "")


def _why_none(job: KeptJob, query: LogQuery, places: dict[Rank, list[KeptPod]], chosen: dict[Rank, list[Run]]) -> str:
    name = str(job.key)
    if not places:
        return f"{name} has had no pod yet; follow=true waits for it"
    if not chosen:
        return f"{name} has no such pod: there are {', '.join(map(str, places))}"
    if query.previous and any(chosen.values()):
        return f"{name}: {', '.join(map(str, chosen))} ran only once: there is nothing previous"
    pods = [pod for rank in chosen for pod in places[rank]]
    containers = {name for pod in pods for name in (*pod.init_containers, *pod.containers)}
    if query.container and query.container not in containers:
        return f"{name}: there is no container {query.container!r}: there are {', '.join(sorted(containers))}"
    return f"{name}: no container of {', '.join(map(str, chosen))} has started yet; follow=true waits for it"
