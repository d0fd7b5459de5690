"""The real processes of the operator and of the hub server, before an API server that a test tells what to say."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from lab.paths import REPOSITORY
from lab.pki import Authority
from lab.processes import wait_for
from tests.unit.hub.kept import NAMESPACE_UID, keep, numbered, pod
from tests.unit.operator.objects import NAMESPACE, runtime, train_job
from trainplane.client.backends.process.addresses import free_port
from trainplane.hub.apiserver.delegated_auth import CONFIG_MAP
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.retention import Retention
from trainplane.kube.clock import SystemClock
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, NAMESPACES, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import ExitStack

    from trainplane.kube.testing.faults import Fault
    from trainplane.kube.testing.verbs import Asking

PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""
FILES = 1024
"""Files that a process may have: what many systems give it."""
VALIDATE = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
SCRAPER = "system:serviceaccount:monitoring:prometheus"


def go_first(process: int = 0) -> None:
    """Let a process, or the calling thread alone, go before all else: attackers have machines of their own.

    By the scheduler's class for what is urgent: nice values count within one session only where the kernel shares cores
    by session (`sched_autogroup_enabled`), and another suite would get as much as the one that is attacked.
    """
    alone = 0 if process else os.SCHED_RESET_ON_FORK
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(process, os.SCHED_RR | alone, os.sched_param(1))


class Judging(FakeServer):
    """An API server that knows two tokens and lets one of them read metrics; users of the hub may everything."""

    def act(self, asking: Asking, fault: Fault | None) -> dict[str, Any]:
        """Review tokens and access; the rest is as usual."""
        plural = None if asking.target is None else asking.target.collection.plural
        if plural == "tokenreviews":
            known = {"scraper": SCRAPER, "tenant": "system:serviceaccount:team:default"}
            user = known.get(msgspec.json.decode(asking.body)["spec"]["token"])
            return {"status": {"authenticated": user is not None, "user": {"username": user or ""}}}
        if plural == "subjectaccessreviews":
            spec = msgspec.json.decode(asking.body)["spec"]
            return {"status": {"allowed": "resourceAttributes" in spec or spec["user"] == SCRAPER}}
        return super().act(asking, fault)


@contextlib.contextmanager
def in_thread(server: FakeServer) -> Iterator[None]:
    """Let a server answer from a thread of its own, as another process's must."""
    loop = asyncio.new_event_loop()
    loop.call_soon(go_first)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(PATIENCE)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Served:
    """A process of ours with TLS on loopback. Ends with the stack."""

    port: int

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.api = Judging()
        stack.enter_context(in_thread(self.api))
        self.authority = Authority.create(folder / "pki", "served")
        pair = self.authority.issue("tls", "served", hosts=("127.0.0.1", "localhost"))
        self.certificates = pair.certificate.parent
        entry = {"name": "c", "cluster": {"server": self.api.url}}
        context = {"name": "c", "context": {"cluster": "c"}}
        tree = {"current-context": "c", "contexts": [context], "clusters": [entry]}
        (folder / "kubeconfig").write_text(yaml.safe_dump(tree))
        self.log = folder / "log"
        self._stack = stack

    def start(self, module: str, *flags: str) -> None:
        """Start the module, with as many files as many systems give it."""
        command = [sys.executable, "-m", module, f"--kubeconfig={self.folder / 'kubeconfig'}", *flags]
        limited = ["prlimit", f"--nofile={FILES}:{FILES}", *command]
        with self.log.open("wb") as log:
            environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
            self.process = subprocess.Popen(limited, stdout=log, stderr=log, env=environment)
        self._stack.callback(self._end)
        go_first(self.process.pid)

    def _end(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def wait(self, what: str, done: Callable[[], object]) -> None:
        def is_done() -> bool:
            if done():
                return True
            assert self.process.poll() is None, self.log.read_text()
            return False

        wait_for(what, is_done, seconds=PATIENCE, log=self.log)

    def said(self, message: str) -> dict[str, Any] | None:
        """Return the log line of a message."""
        whole = (line for line in self.log.read_text().splitlines(keepends=True) if line.endswith("}\n"))
        lines = [json.loads(line) for line in whole if line.startswith("{")]
        return next((line for line in lines if line["msg"] == message), None)

    def trusting(self, certificate: str = "") -> ssl.SSLContext:
        """Return a client's context, with a certificate of this name if it has one."""
        context = ssl.create_default_context(cafile=str(self.folder / "pki/ca.crt"))
        if certificate:
            pair = self.authority.issue(certificate, certificate)
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    def memory(self) -> int:
        """Return the bytes of memory that the process has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def loop_seconds(self) -> float:
        """Return the CPU time of the thread in which the event loop runs."""
        spent = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat").read_text().split()[0]
        return int(spent) / 1e9

    def files(self) -> int:
        """Return how many files the process has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


class OperatorProcess(Served):
    """The operator: webhooks, metrics over TLS, a runtime that reviews find."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        super().__init__(folder, stack)
        # Of no range that the kernel gives out: a connection of somebody's would have one before the process does.
        self.port = free_port()
        self.metrics_port = free_port({self.port})
        health = free_port({self.port, self.metrics_port})
        self.api.put(CLUSTER_TRAINING_RUNTIMES, runtime())
        configuration = {
            "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
            "kind": "Configuration",
            "webhook": {"host": "127.0.0.1", "port": self.port},
            "metrics": {"bindAddress": f"127.0.0.1:{self.metrics_port}"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            "certManagement": {"enable": False},
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(configuration))
        self.start(
            "trainplane.operator",
            f"--config={folder / 'config.yaml'}",
            "--namespace=kubeflow-system",
            f"--webhook-cert-dir={self.certificates}",
        )
        self.wait("readiness", lambda: _answers(health, "/readyz"))


class HubProcess(Served):
    """The hub server, over an archive with one TrainJob's log of so many bytes."""

    def __init__(self, folder: Path, stack: ExitStack, log_bytes: int) -> None:
        super().__init__(folder, stack)
        archive = Archive(folder / "data", Retention(job_bytes=2 * log_bytes + (1 << 20)), SystemClock())
        lines = numbered(5000, text="x" * 60)
        size = sum(len(line) + 1 for line in lines)
        job, kept = keep(archive, pod(), lines)
        for _ in range(log_bytes // size):
            keep(archive, pod(), lines)
        kept.journal("node", 0).finish("ended")
        self.log_bytes = job.size
        archive.close()
        self.api.put(NAMESPACES, {"metadata": {"name": "team", "uid": NAMESPACE_UID}})
        metadata = {"name": "x", "namespace": "team", "uid": "job-1", "creationTimestamp": "2026-11-15T05:00:00Z"}
        self.api.put(TRAIN_JOBS, {"metadata": metadata, "spec": {}, "status": {}})
        data = {
            "requestheader-client-ca-file": (folder / "pki/ca.crt").read_text(),
            "requestheader-allowed-names": '["front-proxy"]',
            "requestheader-username-headers": '["X-Remote-User"]',
        }
        self.api.put(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP, "namespace": "kube-system"}, "data": data})
        keep_bytes = 4 * log_bytes + (1 << 20)
        self.metrics_port = free_port()
        self.start(
            "trainplane.hub",
            f"--data={folder / 'data'}",
            "--namespace=hub",
            "--listen=127.0.0.1:0",
            f"--metrics=127.0.0.1:{self.metrics_port}",
            f"--keep-job-bytes={keep_bytes}",
            "--readers-per-namespace=256",  # all users of these tests are of one
            f"--tls-cert-dir={self.certificates}",
        )
        self.wait("a start", lambda: self.said("hub server runs"))
        line = self.said("hub server runs")
        assert line is not None
        self.port = line["port"]


def _answers(port: int, path: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            return b" 200 " in connection.recv(100)
    except OSError:
        return False


def review(number: int, padding: int = 0) -> bytes:
    """Return the review of a TrainJob's creation, as an API server sends it."""
    request = {
        "uid": str(number),
        "operation": "CREATE",
        "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"},
        "resource": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "trainjobs"},
        "name": f"job-{number}",
        "namespace": NAMESPACE,
        "userInfo": {"username": "ana"},
        "object": train_job(
            f"job-{number}",
            meta={"annotations": {"padding": "x" * padding}},
            trainer={"numNodes": 2, "command": ["train"]},
        ),
    }
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
