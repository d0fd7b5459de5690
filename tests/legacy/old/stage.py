"""One API server, two operators of the older kinds that take turns, and jobs whose pods the test plays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

from lab import jobset, training_operator, trainplane
from lab.cluster import Cluster
from lab.processes import wait_for
from tests.fleet.api import Api, RefusedError
from tests.legacy.old.members import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Tree = dict[str, Any]

JOB_NAME = "training.kubeflow.org/job-name"
AUTOSCALERS = "horizontalpodautoscalers"
KEPT = ("pods", "services", AUTOSCALERS)
"""What an operator that takes over may not touch."""
_FENCES = "fences"
_PATIENCE = 180.0
_ROUNDS = 20
"""Rounds of fences in which jobs must come to rest."""
_AT_ONCE = 4
_QPS = 200
_READY = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")]


class Stage:
    """A cluster without nodes, and the operator that runs now: at first that of others."""

    def __init__(self, name: str) -> None:
        self.cluster = Cluster.up(name, owned=True)
        self.api = Api(self.cluster)
        self._fences = count()
        self._homes: list[str] = []
        try:
            jobset.install(self.cluster)
            training_operator.install(self.cluster, qps=_QPS)
            self._make_namespace(_FENCES)
        except BaseException:
            self.cluster.down()
            raise

    def close(self) -> None:
        """End the cluster."""
        self.cluster.down()

    # -- who runs -------------------------------------------------------------------------------------------------

    def to_ours(self) -> None:
        """Stop the old operator and start ours, as an admin would: webhooks and CRDs too."""
        training_operator.stop(self.cluster)
        trainplane.install(self.cluster, qps=_QPS, older=tuple(training_operator.KINDS.values()))
        self.settle()

    def to_old(self) -> None:
        """Stop ours and start the old operator again."""
        trainplane.uninstall(self.cluster)
        training_operator.install_crds(self.cluster)
        training_operator.resume(self.cluster)
        self.settle()

    def settle(self) -> None:
        """Return when the operator has reached jobs of each kind made now, and changed no other one meanwhile.

        It has then reached every other one: news of a job may wait a moment for more, a job that is new does not.
        """
        before: Tree = {}
        for _ in range(_ROUNDS):
            self._pass_fences()
            if before == (before := self._versions()):
                return
        raise AssertionError(f"jobs were still being changed after {_ROUNDS} rounds of others")

    def _pass_fences(self) -> None:
        fences = {_fence(kind, next(self._fences)): ("start", "await Running") for kind in training_operator.KINDS}
        for fence in fences:
            self.begin(_FENCES, fence)
        self.tell(_FENCES, fences)

    def _versions(self) -> Tree:
        """Return which version of each job there is."""
        places = ((plural, home) for home in self._homes for plural in training_operator.KINDS.values())
        found = [job["metadata"] for plural, home in places for job in self.api.list(plural, home)]
        return {meta["uid"]: meta["resourceVersion"] for meta in found}

    # -- jobs -----------------------------------------------------------------------------------------------------

    def populate(self, namespace: str, members: Sequence[Member]) -> None:
        """Make a namespace with jobs."""
        self._make_namespace(namespace)
        self._homes.append(namespace)
        for member in members:
            self.begin(namespace, member)

    def begin(self, namespace: str, member: Member) -> None:
        """Create a job."""
        self.api.create(member.document(namespace))

    def job(self, namespace: str, member: Member) -> Tree:
        """Return a job."""
        found = self.api.get(_plural(member), namespace, member.name)
        assert found is not None, f"{member.name} is gone"
        return found

    def jobs(self, namespace: str, members: Sequence[Member]) -> dict[str, Tree]:
        """Return those of the jobs that are there."""
        found = {member.name: self.api.get(_plural(member), namespace, member.name) for member in members}
        return {name: job for name, job in found.items() if job}

    def tell(self, namespace: str, stories: Mapping[Member, tuple[str, ...]]) -> None:
        """Do to each job what its story says, in order; to several jobs at once."""

        def one(member: Member) -> None:
            for sentence in stories[member]:
                self._act(namespace, member, *sentence.split())

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(one, stories))

    def _act(self, namespace: str, member: Member, verb: str, *words: str) -> None:
        name = member.name
        match verb, words:
            case "start", ():
                self.until(f"{name} has its pods", lambda: self._whole(namespace, member))
                self._play(namespace, member, "Running")
            case "succeed", pods:
                self._play(namespace, member, "Succeeded", *pods)
            case "fail", (pod, code):
                self._play(namespace, member, "Failed", pod, code=int(code))
            case "renewed", (pod,):
                self.until(f"{name}-{pod} is made again", lambda: self._is_new(namespace, f"{name}-{pod}"))
            case (("suspend" | "resume"), ()):
                change = {"spec": {"runPolicy": {"suspend": verb == "suspend"}}}
                self.api.patch(_plural(member), namespace, name, change)
                if verb == "suspend":
                    self.until(f"{name} has no pods", lambda: not self.pods(namespace, name))
            case "delete", ():
                self.api.delete(_plural(member), namespace, name)
                self.until(f"{name} leaves nothing", lambda: not any(self.kept(namespace, name).values()))
            case "await", (kind,):
                self.until(f"{name} is {kind}", lambda: self.is_true(namespace, member, kind))
            case _:
                raise AssertionError((verb, *words))

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        wait_for(what, holds, seconds=_PATIENCE)

    def is_true(self, namespace: str, member: Member, kind: str) -> bool:
        """Tell if a condition of a job is True."""
        conditions = self.job(namespace, member).get("status", {}).get("conditions", ())
        return any((entry["type"], entry["status"]) == (kind, "True") for entry in conditions)

    def pods(self, namespace: str, name: str) -> list[Tree]:
        """Return a job's pods."""
        return self.api.list("pods", namespace, labels=f"{JOB_NAME}={name}")

    def kept(self, namespace: str, name: str = "") -> dict[str, list[Tree]]:
        """Return what an operator that takes over may not touch: of one job, or of all."""
        labels = f"{JOB_NAME}={name}" if name else ""
        return {plural: self.api.list(plural, namespace, labels=labels) for plural in KEPT}

    def _whole(self, namespace: str, member: Member) -> bool:
        return len(self.pods(namespace, member.name)) == member.size

    def _is_new(self, namespace: str, pod: str) -> bool:
        found = self.api.get("pods", namespace, pod)
        return found is not None and found["status"]["phase"] == "Pending"

    def _play(self, namespace: str, member: Member, phase: str, *names: str, code: int = 0) -> None:
        """Set the phase of pods that have not ended, in the place of a kubelet; of all, when none is named."""
        wanted = {f"{member.name}-{name}" for name in names}
        for pod in self.pods(namespace, member.name):
            name = pod["metadata"]["name"]
            if (wanted and name not in wanted) or pod["status"]["phase"] in ("Succeeded", "Failed"):
                continue
            try:
                self.api.patch("pods", namespace, name, {"status": _status(pod, phase, code)}, part="status")
            except RefusedError as error:
                if error.code != 404:  # the end of one may end its job, and so take the others with it
                    raise

    def _make_namespace(self, name: str) -> None:
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        # Pods are refused until their namespace has its account.
        self.until(f"{name} has an account", lambda: self._has_account(name))

    def _has_account(self, namespace: str) -> bool:
        return self.cluster.kubectl("get", "serviceaccount", "default", "-n", namespace, check=False).code == 0


def _fence(kind: str, number: int) -> Member:
    return Member(f"fence-{number}", kind, {"Master" if kind == "XGBoostJob" else "Worker": 1}, "")


def _plural(member: Member) -> str:
    return training_operator.KINDS[member.kind]


def _status(pod: Tree, phase: str, code: int) -> Tree:
    """Return a pod's status as a kubelet writes it, as far as operators read it."""
    if phase == "Running":
        return {"phase": phase, "conditions": _READY}
    ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
    shared = {"image": "test:1", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    statuses = [{"name": container["name"], **shared} for container in pod["spec"]["containers"]]
    return {"phase": phase, "conditions": [], "containerStatuses": statuses}
