"""One side of the comparison: an API server with one operator, and the requests that cases make of it."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from tests.conformance import gangs
from tests.conformance.cases import NAMESPACE, Await, Change, Create, Remove, Report, Step, Tree
from tests.conformance.compare import verdict
from tests.conformance.normal import by_case

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lab.cluster import Cluster
    from tests.conformance.cases import Case
    from tests.conformance.compare import Verdict

_TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
_PATHS = {
    "TrainJob": (_TRAINER, "trainjobs"),
    "TrainingRuntime": (_TRAINER, "trainingruntimes"),
    "ClusterTrainingRuntime": (_TRAINER, "clustertrainingruntimes"),
    "JobSet": ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Secret": ("/api/v1", "secrets"),
    "Event": ("/api/v1", "events"),
    "Namespace": ("/api/v1", "namespaces"),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses"),
    **{f"PodGroup.{group}": (f"/apis/{group}/{version}", "podgroups") for group, version in gangs.VERSIONS.items()},
}
_CLUSTER_SCOPED = ("ClusterTrainingRuntime", "Namespace", "PriorityClass")
OBSERVED = (
    *("TrainJob", "JobSet", "ConfigMap", "Secret", "TrainingRuntime", "ClusterTrainingRuntime", "Event"),
    *gangs.KINDS,
)
_FEW = 20
"""Namespaces that are asked one by one; a list of the whole server takes as long as asking so many."""
FENCE_SECONDS = 60.0
"""How long an operator may take to reach a TrainJob made just now; more means that it does not work."""


@dataclass(frozen=True)
class Answer:
    """What an API server said."""

    code: int
    body: Tree = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Side:
    """An API server with one operator. Two sides may share a server: `prefix` keeps their namespaces apart."""

    fence_seconds = FENCE_SECONDS

    def __init__(self, cluster: Cluster, name: str, *, prefix: str) -> None:
        self.name = name
        self.prefix = prefix
        self._cluster = cluster
        self._context = ssl.create_default_context(cafile=str(cluster.authority))
        self._context.load_cert_chain(cluster.folder / "pki/admin.crt", cluster.folder / "pki/admin.key")
        self._thread = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []
        self._fences = 0

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._connections:
            connection.close()

    def namespace(self, number: int) -> str:
        """Return the name of a case's namespace; names of both sides are of one length."""
        return f"{self.prefix}-{number:05d}-ns"

    # -- what is compared -----------------------------------------------------------------------------------------

    def begin(self, case: Case, namespace: str) -> None:
        """Create the namespace of a case."""
        del case
        self._make(namespace, "Namespace", {"metadata": {"name": namespace}})

    def take(self, step: Step, namespace: str) -> Verdict:
        """Take one step of a case, and return what admission decided."""
        return verdict(self.perform(step, namespace))

    def states(self, namespaces: Sequence[str]) -> list[dict[str, Tree]]:
        """Return the objects of each namespace in normal form."""
        found = by_case(self.observe(namespaces), namespaces)
        return [found[name] for name in namespaces]

    # -- requests -------------------------------------------------------------------------------------------------

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """Send one request, and again while the server asks for time: for a moment it serves no list of a new kind."""
        deadline = time.monotonic() + FENCE_SECONDS
        while (answer := self._send(method, path, body, content_type)).code == http.HTTPStatus.TOO_MANY_REQUESTS:
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)
        return answer

    def _send(self, method: str, path: str, body: Any, content_type: str) -> Answer:
        """Send one request on this thread's connection; a connection that the server has closed is made anew."""
        text = None if body is None else json.dumps(body)
        for last in (False, True):
            connection = getattr(self._thread, "connection", None)
            if connection is None:
                connection = http.client.HTTPSConnection(
                    "127.0.0.1", self._cluster.port, timeout=60, context=self._context
                )
                self._thread.connection = connection
                self._connections.append(connection)
            try:
                connection.request(method, path, text, {"Content-Type": content_type})
                response = connection.getresponse()
                data = response.read()
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
                connection.close()
                self._thread.connection = None
                if last:
                    raise
                continue
            warnings = tuple(value for key, value in response.getheaders() if key.lower() == "warning")
            return Answer(response.status, msgspec.json.decode(data), warnings)
        raise AssertionError  # pragma: no cover - the loop returns or raises

    def perform(self, step: Step, namespace: str) -> Answer:
        """Take one step of a case in its namespace."""
        match step:
            case Create(document):
                return self.send("POST", path(document["kind"], namespace), _filled(document, namespace))
            case Change(change, kind, name):
                form = "json-patch" if isinstance(change, list) else "merge-patch"
                target = path(kind, namespace, _filled(name, namespace))
                return self.send("PATCH", target, _filled(change, namespace), f"application/{form}+json")
            case Report(status, name):
                target = f"{path('JobSet', namespace, name)}/status"
                return self.send("PATCH", target, {"status": status}, "application/merge-patch+json")
            case Remove(kind, name):
                return self.send("DELETE", path(kind, namespace, _filled(name, namespace)))
            case Await():
                return Answer(200)

    # -- what there is --------------------------------------------------------------------------------------------

    def observe(self, namespaces: Collection[str]) -> dict[str, list[Tree]]:
        """Return every object of the kinds that matter, by kind; few namespaces are asked one by one."""
        found = {}
        for kind in OBSERVED:
            base, plural = _PATHS[kind]
            paths = {path(kind, namespace) for namespace in namespaces}
            if len(namespaces) > _FEW:
                paths = {f"{base}/{plural}"}
            items = [item for one in sorted(paths) for item in self._list(one)]
            found[kind] = [{**item, "kind": kind} for item in items]
        return found

    def _list(self, where: str) -> list[Tree]:
        answer = self.send("GET", where)
        assert answer.code == http.HTTPStatus.OK, answer
        items: list[Tree] = answer.body["items"]
        return items

    def prepare(self, fence_runtime: Tree) -> None:
        """Make the namespace in which fences stand."""
        self._make(self.prefix, "Namespace", {"metadata": {"name": self.prefix}})
        self._make(self.prefix, "TrainingRuntime", fence_runtime)

    def fence(self, document: Tree) -> None:
        """Return when the operator has reached a TrainJob made now, so has reached whatever was queued before it."""
        self._fences += 1
        name = f"fence-{self._fences}"
        deadline = time.monotonic() + self.fence_seconds
        job = {**document, "metadata": {"name": name}}
        # Until its caches are warm an operator's webhook may not know the fence's runtime.
        while (answer := self.send("POST", path("TrainJob", self.prefix), job)).code == http.HTTPStatus.FORBIDDEN:
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)
        assert answer.code == http.HTTPStatus.CREATED, answer
        while self.send("GET", path("JobSet", self.prefix, name)).code != http.HTTPStatus.OK:
            assert time.monotonic() < deadline, f"{self.name}: no JobSet for {name} in {self.fence_seconds} s"
            time.sleep(0.02)

    def _make(self, namespace: str, kind: str, document: Tree) -> None:
        answer = self.send("POST", path(kind, namespace), document)
        assert answer.code == http.HTTPStatus.CREATED, answer


def path(kind: str, namespace: str, name: str = "") -> str:
    """Return the address of an object, or of the kind's objects in the namespace."""
    base, plural = _PATHS[kind]
    scope = "" if kind in _CLUSTER_SCOPED else f"/namespaces/{namespace}"
    return f"{base}{scope}/{plural}" + (f"/{name}" if name else "")


def _filled(document: Any, namespace: str) -> Any:
    """Return a document with the namespace's name where it says `@ns@`."""
    return json.loads(json.dumps(document).replace(NAMESPACE, namespace))
