"""The kubelets of TrainJobs whose pods react to SIGTERM and to each other, as far as their histories say so.

A history says by an annotation of the TrainJob what its pods do (`PodKind`). Pods of TrainJobs without the annotation
are left to `engines`: they end as fated, and leave without a word when they are deleted.

- A pod takes a moment to start. One that is deleted before ends with 137 and without times (`TerminatePod`).
- A pod that is deleted gets SIGTERM. Its container ends by the kind of the job, within its grace period: with 0 after
  it has saved, with 143 or 1, or with 137 at the end of the period. It still runs its own course until then.
- When a pod is deleted, fails, or is lost with its node, its running peers lose it, and end a moment later with 1 or
  134 and a log of a lost peer, if pods of the kind talk to each other.
- A kubelet reports an end up to a second late. A deleted pod leaves some time after its end was reported.
- The kubelet of a lost node reports nothing more.

`ends` says of each container that ended why it did, which no status shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from tests.simulation import job
from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.jobset import JOBSET, attempt_of
from tests.simulation.people import PODS_NOTE
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random
    from typing import TypeAlias

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Tree

    Cause: TypeAlias = Literal["fault", "stop", "peer of a fault", "peer of a stop"]
    Later: TypeAlias = Callable[..., None]
    """Calls a function after some seconds, and again if nothing can be stored then."""

UNKNOWN = 137
"""The exit code of a container that nothing is known of any more."""
PEER_SECONDS = (0.1, 20.0)
"""After how long a pod ends that has lost a peer."""
SAVING_SECONDS = 15.0
"""The longest that a pod saves after SIGTERM."""
ON_TERM = {"saves": (SAVING_SECONDS, 0), "signal": (1.0, 143), "error": (5.0, 1), "ignores": (0.0, UNKNOWN)}
"""After how long at most a container ends that gets SIGTERM, and with which code: within the grace period."""
LATE_SECONDS = 1.0
"""The longest that a kubelet takes to report an end: it lists containers once a second."""
LEAVING_SECONDS = (0.4, 2.5)
"""After how long a deleted pod is gone once its end is reported: its volumes are unmounted meanwhile."""

_FILE = 'Traceback (most recent call last):\n  File "/work/train.py", line 42, in <module>\n'
_KILLED = "RuntimeError: DataLoader worker (pid 12) is killed by signal: Terminated."
LOGS = {
    "program": f"{_FILE}    loss = model(batch)\nNameError: name 'model' is not defined\n",
    "python": f"{_FILE}    check(loss)\nRuntimeError: the loss is no number\n",
    "device": f"{_FILE}    loss.backward()\ntorch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n",
    "silent": "epoch 3, step 1200, loss 0.31\n",
    "peer": f"{_FILE}    dist.all_reduce(loss)\nRuntimeError: [gloo] Connection closed by peer\n",
    "abort": "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    "  what():  NCCL error: remote process exited or there was a network error\n",
    "stop": f"{_FILE}    batch = next(loader)\n{_KILLED}\n",
}
"""What a container logs last: faults of its own, lost peers, and SIGTERM."""

_PODS = collection_of(PODS)


class PodKind(msgspec.Struct, frozen=True):
    """How the pods of a TrainJob behave."""

    term: str = "signal"
    """What SIGTERM does: saves (0), signal (143), error (1), ignores (137), or mixed: each pod its own."""
    peers: str = ""
    """How a pod ends that loses a peer: error (1), abort (134); empty if pods do not talk to each other."""
    grace: int = 30
    """The grace period in seconds."""
    start: float = 1.0
    """The longest that a pod takes to start."""
    faults: tuple[str, ...] = ("python",)
    """What a pod that is fated to fail logs, for each attempt: names in LOGS."""

    def fault(self, attempt: int) -> str:
        """Return what a pod that fails by itself logs."""
        return self.faults[min(attempt, len(self.faults) - 1)]


class End(NamedTuple):
    """How a container ends."""

    at: float
    code: int
    cause: Cause
    log: str = ""
    """A name in LOGS."""


@dataclass
class Container:
    """The only container of a pod, as its kubelet has it."""

    key: Key
    uid: str
    kind: PodKind
    attempt: int
    group: tuple[str, int]
    """The pods that it talks to: those of one attempt of one JobSet."""
    end: End | None = None
    """Its end, which may still change; None until it has started."""
    has_started: bool = False
    has_ended: bool = False
    is_reported: bool = False
    is_stopping: bool = False
    """Whether it got SIGTERM, or never will because it had not started."""
    is_lost: bool = False
    """Whether its node is lost."""


class Kubelet:
    """See the module's docstring. `fate` says when a pod ends by itself, and how."""

    def __init__(
        self,
        server: ApiServer,
        loop: VirtualLoop,
        random: Random,
        fate: Callable[[Tree], tuple[float, int]],
    ) -> None:
        self._server = server
        self._loop = loop
        self._random = random
        self._fate = fate
        self.later: Later = loop.call_later
        self.ends: dict[str, End] = {}
        """How containers ended, by the uid of the pod."""
        self.lost: dict[str, float] = {}
        """When pods were lost with their nodes, by uid."""
        self._containers: dict[str, Container] = {}
        self._kinds: dict[str, PodKind | None] = {}

    def kind(self, pod: Tree) -> PodKind | None:
        """Return how a pod behaves; None if its TrainJob says nothing of it."""
        uid = pod["metadata"]["uid"]
        if uid not in self._kinds:
            self._kinds[uid] = kind_of(self._server.find(TRAINJOBS, _job_of(pod)))
        return self._kinds[uid]

    def running(self, name: str) -> list[Tree]:
        """Return the pods of a TrainJob that run, or are about to, and are not being deleted."""
        pods = self._server.storage.objects.get(_PODS, {})
        keys = sorted(one.key for one in self._containers.values() if one.key in pods)
        mine = (self._server.find(_PODS, key) for key in keys)
        living = (pod for pod in mine if pod is not None and _job_of(pod).name == name)
        return [pod for pod in living if job.phase(pod) in {"Pending", "Running"} and not job.goes(pod)]

    def mark(self, pod: Tree) -> Tree:
        """Return what the API server adds to the metadata of a pod that is deleted: the end of its grace period."""
        kind = self.kind(pod)
        if kind is None:
            return {"deletionTimestamp": self._stamp()}
        return {"deletionTimestamp": self._stamp(kind.grace), "deletionGracePeriodSeconds": kind.grace}

    def look(self, pod: Tree) -> None:
        """Look at a pod that changed."""
        uid = pod["metadata"]["uid"]
        one = self._containers.get(uid)
        if one is None:
            one = self._meet(pod)
        if one.is_lost:
            return
        if job.goes(pod) and not one.is_stopping:
            one.is_stopping = True
            self._terminate(one)
        elif one.has_ended and job.goes(pod):
            self._leaves(one)

    def look_again(self) -> None:
        """Report again what was stored before it was set back."""
        for one in list(self._containers.values()):
            pod = self._pod(one)
            if pod is None:
                self.forget(one.uid)
            elif one.has_ended and job.phase(pod) in {"Pending", "Running"} and not one.is_lost:
                one.is_reported = False
                self.later(self._random.uniform(0.0, LATE_SECONDS), self._report, one)
            elif one.has_started and job.phase(pod) == "Pending" and not one.is_lost:
                self._show(pod, "Running", {"running": {"startedAt": self._stamp()}})

    def _meet(self, pod: Tree) -> Container:
        """Take over a pod that is new, or that a restore brought back: of its container nothing is known then."""
        meta = pod["metadata"]
        kind = self.kind(pod) or PodKind()
        key, attempt = Key(meta["namespace"], meta["name"]), attempt_of(meta["labels"])
        one = Container(key, meta["uid"], kind, attempt, (meta["labels"][f"{JOBSET}/jobset-uid"], attempt))
        self._containers[one.uid] = one
        phase = job.phase(pod)
        if phase == "Pending" and one.uid not in self.ends:
            self.later(self._random.uniform(0.0, kind.start), self._start, one)
        elif phase in {"Pending", "Running"}:
            one.has_started = one.has_ended = True
            one.end = self.ends.setdefault(one.uid, End(self._loop.time(), UNKNOWN, "fault"))
            self.later(self._random.uniform(0.0, 2.0), self._report, one)
        else:
            one.has_started = one.has_ended = one.is_reported = True
        return one

    def _start(self, one: Container) -> None:
        pod = self._pod(one)
        if pod is None or job.goes(pod) or one.is_lost:
            return
        self._show(pod, "Running", {"running": {"startedAt": self._stamp()}})
        one.has_started = True
        seconds, code = self._fate(pod)
        log = one.kind.fault(one.attempt) if code else ""
        self._plan(one, End(self._loop.time() + seconds, code, "fault", log))

    # -- ends

    def _plan(self, one: Container, end: End) -> None:
        """Let a container end so, unless it ends earlier by another cause."""
        if one.end is None or end.at < one.end.at:
            one.end = end
            self.later(end.at - self._loop.time(), self._ends, one, end)

    def _ends(self, one: Container, end: End) -> None:
        if one.end is not end or one.has_ended or one.is_lost:
            return
        one.has_ended = True
        self.ends[one.uid] = end
        self._server.logs[one.uid] = LOGS.get(end.log, "").encode()
        if end.code and not one.is_stopping:
            self._lose_peers(one, "stop" if end.cause == "peer of a stop" else "fault")
        self.later(self._random.uniform(0.05, LATE_SECONDS), self._report, one)

    def _terminate(self, one: Container) -> None:
        """Stop the container of a pod that is deleted."""
        if one.has_ended:
            self._leaves(one)
        elif not one.has_started:
            one.has_ended = True
            self.ends[one.uid] = one.end = End(self._loop.time(), UNKNOWN, "stop")
            self.later(self._random.uniform(0.1, LATE_SECONDS), self._report, one)
        else:
            seconds, code = self._on_term(one.kind)
            log = "stop" if code == 1 else ""
            self._plan(one, End(self._loop.time() + seconds, code, "stop", log))
            self._lose_peers(one, self._origin(one))

    def _on_term(self, kind: PodKind) -> tuple[float, int]:
        """Return after how long a container ends that gets SIGTERM, and with which code."""
        term = self._random.choice(tuple(ON_TERM)) if kind.term == "mixed" else kind.term
        longest, code = ON_TERM[term]
        seconds = self._random.uniform(0.0, longest)
        return (seconds, code) if seconds <= kind.grace and term != "ignores" else (kind.grace, UNKNOWN)

    def _origin(self, one: Container) -> Literal["fault", "stop"]:
        """Return whether a pod is deleted because a fault ended its attempt, or for another reason."""
        faults = (each.end for each in self._peers(one) if each.has_ended and not each.is_stopping)
        return "fault" if any(end and end.code and end.cause != "peer of a stop" for end in faults) else "stop"

    def _peers(self, one: Container) -> Iterator[Container]:
        return (each for each in list(self._containers.values()) if each.group == one.group and each is not one)

    def _lose_peers(self, one: Container, origin: Literal["fault", "stop"]) -> None:
        """Let the pods that run and talk to this one fail a moment later."""
        for each in self._peers(one):
            if each.kind.peers and each.has_started and not (each.has_ended or each.is_lost):
                at = self._loop.time() + self._random.uniform(*PEER_SECONDS)
                code, log = (134, "abort") if each.kind.peers == "abort" else (1, "peer")
                self._plan(each, End(at, code, "peer of a stop" if origin == "stop" else "peer of a fault", log))

    def lose(self, pod: Tree) -> bool:
        """Lose the node of a pod; returns whether it was there to lose."""
        one = self._containers.get(pod["metadata"]["uid"])
        if one is None or one.has_ended or one.is_lost:
            return False
        one.is_lost = True
        self.lost[one.uid] = self._loop.time()
        self._lose_peers(one, "stop")
        return True

    def find(self, uid: str) -> None:
        """Let the node of a pod come back, without the container."""
        one = self._containers.get(uid)
        if one is not None and one.is_lost:
            one.is_lost, one.has_ended, one.is_stopping = False, True, True
            one.has_started = False  # nothing is known of its container any more, as if there had been none
            self.ends[uid] = one.end = End(self._loop.time(), UNKNOWN, "stop")
            self.later(0.0, self._report, one)

    # -- what is stored

    def _report(self, one: Container) -> None:
        pod = self._pod(one)
        if pod is None or one.is_lost or one.is_reported:
            return
        end = one.end or End(self._loop.time(), UNKNOWN, "stop")
        state: Tree = {"exitCode": end.code, "reason": "Error" if end.code else "Completed"}
        if one.has_started:
            state |= {"finishedAt": self._stamp(end.at - self._loop.time())}
        else:
            text = "The container could not be located when the pod was terminated"
            state |= {"reason": "ContainerStatusUnknown", "message": text, "finishedAt": None}
        self._show(pod, "Failed" if end.code else "Succeeded", {"terminated": state})
        one.is_reported = True
        if job.goes(pod):
            self._leaves(one)

    def _leaves(self, one: Container) -> None:
        if one.is_reported:
            self.later(self._random.uniform(*LEAVING_SECONDS), self._gone, one)

    def _gone(self, one: Container) -> None:
        pod = self._pod(one)
        if pod is not None and job.goes(pod):
            self.forget(one.uid)
            self._server.storage.writer = "engines"
            self._server.storage._remove(_PODS, one.key, pod)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._containers.pop(uid, None)

    def _pod(self, one: Container) -> Tree | None:
        pod = self._server.find(_PODS, one.key)
        return pod if pod is not None and pod["metadata"]["uid"] == one.uid else None

    def _show(self, pod: Tree, phase: str, state: Tree) -> None:
        kept = [one for one in pod["status"]["conditions"] if one["type"] not in {"PodScheduled", "Ready"}]
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
        status = {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True"}, ready, *kept],
            "containerStatuses": [{"name": "node", "restartCount": 0, "state": state}],
        }
        self._server.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "machine"}, "status": status}, "engines")

    def _stamp(self, since: float = 0.0) -> str:
        return stamp(self._server, since)


def stamp(server: ApiServer, since: float = 0.0) -> str:
    """Return the time some seconds from now, as objects have it."""
    moment = server.storage.now() + timedelta(seconds=since)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def kind_of(train_job: Tree | None) -> PodKind | None:
    """Return how the pods of a TrainJob behave; None if it does not say."""
    notes: Any = {} if train_job is None else train_job["metadata"].get("annotations") or {}
    return msgspec.json.decode(notes[PODS_NOTE], type=PodKind) if PODS_NOTE in notes else None


def _job_of(pod: Tree) -> Key:
    return Key(pod["metadata"]["namespace"], pod["metadata"]["labels"][f"{JOBSET}/jobset-name"])
