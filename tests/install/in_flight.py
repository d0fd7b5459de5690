"""TrainJobs in flight and users who go on writing: what an admin must not disturb."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from lab.errors import LabError
from lab.images import reference
from lab.processes import wait_for

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from lab.connection import Connection

API = "trainer.kubeflow.org/v1alpha1"
PATH = f"/apis/{API}/namespaces/default/trainjobs"
MERGE = "application/merge-patch+json"
GATED, NOWHERE = "gated", "nowhere"
WRITERS = 3
"""Who write at once: an API server keeps a connection to webhooks for each."""
PAUSE_SECONDS = 0.2
"""Between two writes of a user."""

STARTING = "before all known HTTP paths have been installed"
"""What an API server answers that has begun to listen and not to serve."""

Tree = dict[str, Any]


class Refusal(Exception):  # noqa: N818 it is no error of ours
    """A write that the API server answered with a no."""


class Away(Exception):  # noqa: N818 the same
    """A write that found no API server, or one that does not serve yet."""


@dataclass
class Jobs:
    """TrainJobs that are there before anything happens, and must be there afterwards.

    Some run a pod on the node until the gate opens, some are suspended until the end and then resumed, the others stay
    suspended.
    """

    cluster: Cluster
    running: int
    resumed: int
    held: int

    @property
    def endings(self) -> dict[str, str]:
        """The condition that each must have in the end."""
        kinds = (("running", self.running, "Complete"), ("resumed", self.resumed, "Complete"))
        counts = (*kinds, ("held", self.held, "Suspended"))
        return {f"{kind}-{number}": end for kind, count, end in counts for number in range(count)}

    def runtimes(self) -> list[Tree]:
        """Return the runtimes of these jobs, and of those who write."""
        gate = self.cluster.folder / "gate"
        gate.mkdir(exist_ok=True)
        wait = "import os, time\nwhile not os.path.exists('/gate/open'): time.sleep(0.5)"
        return [_runtime(GATED, wait, gate=str(gate)), _runtime(NOWHERE, wait, node="nowhere")]

    def begin(self) -> None:
        """Create them all, and wait for their JobSets and for the pods that run."""
        self.cluster.apply(*self.runtimes())
        with self.cluster.connection() as connection:
            for name in self.endings:
                body = train_job(name, GATED, suspend=not name.startswith("running"))
                connection.send("POST", PATH, json.dumps(body))
        wait_for("the JobSets", lambda: self.endings.keys() <= self.jobsets().keys(), seconds=60)
        wait_for("the pods", lambda: len(self.pods()) == self.running, seconds=90)

    def jobsets(self) -> dict[str, str]:
        """Return the uid of each JobSet of the namespace."""
        return {name: one["metadata"]["uid"] for name, one in listed(self.cluster, "jobsets").items()}

    def pods(self) -> dict[str, str]:
        """Return the uid of each of their pods that runs."""
        pods = self.cluster.get("pods", "--field-selector=status.phase=Running")["items"]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    def end(self) -> set[str]:
        """Open the gate, resume those that are to run, and return those that do not end as they should."""
        (self.cluster.folder / "gate/open").touch()
        resumed = json.dumps({"spec": {"suspend": False}})
        with self.cluster.connection() as connection:
            for number in range(self.resumed):
                connection.send("PATCH", f"{PATH}/resumed-{number}", resumed, MERGE)

        def unfinished() -> set[str]:
            found = listed(self.cluster, "trainjobs")
            return {name for name, end in self.endings.items() if end not in conditions(found.get(name, {}))}

        try:
            wait_for("the jobs to end", lambda: not unfinished(), seconds=120)
        except LabError:
            return unfinished()
        return set()


class Writers:
    """Users who create, resume, suspend and delete TrainJobs until the block ends, each write through the webhooks.

    Their pods find no node, so that they cost nothing. Every other TrainJob is kept, to be counted afterwards.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.written = 0
        self.refused: list[str] = []
        self.unreachable = 0
        """Tries that found no API server; they are repeated."""
        self.kept: set[str] = set()
        self.deleted: set[str] = set()
        self._cluster = cluster
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in range(WRITERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let each user finish what they are at."""
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def await_more(self, count: int) -> None:
        """Wait until some more were written or refused."""

        def sent() -> int:
            return self.written + len(self.refused)

        end = sent() + count
        wait_for(f"{count} more writes", lambda: sent() >= end, seconds=60)

    def lost(self) -> set[str]:
        """Return which have no JobSet though they were kept, or still one though they were deleted."""

        def wrong() -> set[str]:
            jobsets = listed(self._cluster, "jobsets")
            held = {name for name, one in jobsets.items() if one["spec"].get("suspend")}
            return (self.kept - held) | (self.deleted & jobsets.keys())

        try:
            wait_for("the JobSets of what was written", lambda: not wrong(), seconds=60)
        except LabError:
            return wrong()
        return set()

    def _run(self, writer: int) -> None:
        for number in itertools.count():
            if self._ended.is_set():
                return
            self._write_one(f"written-{writer}-{number}", keep=bool(number % 2))

    def _write_one(self, name: str, *, keep: bool) -> None:
        """Create a TrainJob, resume it, suspend it, and delete it unless it is to be kept."""
        path = f"{PATH}/{name}"
        if not self._write("POST", PATH, train_job(name, NOWHERE, suspend=True)):
            return
        turned = [self._write("PATCH", path, {"spec": {"suspend": suspend}}) for suspend in (False, True)]
        if keep:
            if all(turned):
                self.kept.add(name)
        elif self._write("DELETE", path):
            self.deleted.add(name)

    def _write(self, method: str, path: str, body: Tree | None = None) -> bool:
        """Write until the API server has answered; tell whether it took it."""
        self._ended.wait(PAUSE_SECONDS)
        again = False
        while True:
            try:
                with self._cluster.connection() as connection:
                    _send(connection, method, path, body, again=again)
            except Away:
                self.unreachable += 1
                again = True
                self._ended.wait(PAUSE_SECONDS)
            except Refusal as refusal:
                self.refused.append(str(refusal))
                return False
            else:
                self.written += 1
                return True


def _send(connection: Connection, method: str, path: str, body: Tree | None, *, again: bool) -> None:
    """Send a write; `again` after one without an answer, which may have been done."""
    content_type = MERGE if method == "PATCH" else "application/json"
    try:
        connection.send(method, path, None if body is None else json.dumps(body), content_type)
    except (OSError, http.client.HTTPException) as error:
        raise Away from error
    except LabError as error:
        if STARTING in str(error):
            raise Away from error
        done = {"POST": "409", "DELETE": "404"}.get(method, "none")
        if not again or f": {done} " not in str(error):
            raise Refusal(str(error)) from error


def listed(cluster: Cluster, kind: str) -> dict[str, Tree]:
    """Return the objects of a kind by name; kubectl waits for an API server whose caches are not filled yet."""
    return {one["metadata"]["name"]: one for one in cluster.get(kind)["items"]}


def conditions(job: Tree) -> set[str]:
    """Return the conditions of a TrainJob that are True."""
    return {one["type"] for one in job.get("status", {}).get("conditions", ()) if one["status"] == "True"}


def train_job(name: str, runtime: str, *, suspend: bool) -> Tree:
    """Return a TrainJob of one pod."""
    spec = {"runtimeRef": {"name": runtime}, "suspend": suspend, "trainer": {"numNodes": 1}}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


def _runtime(name: str, script: str, *, gate: str = "", node: str = "") -> Tree:
    """Return a runtime whose pod runs a script on the node, or waits for a node that there is not."""
    container: Tree = {
        "name": "node",
        "image": reference("python"),
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", script],
    }
    pod: Tree = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if gate:
        container["volumeMounts"] = [{"name": "gate", "mountPath": "/gate"}]
        pod["volumes"] = [{"name": "gate", "hostPath": {"path": gate}}]
    if node:
        pod["nodeSelector"] = {"kubernetes.io/hostname": node}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}}
    spec = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [job]}}}
    return {"apiVersion": API, "kind": "ClusterTrainingRuntime", "metadata": {"name": name}, "spec": spec}
