"""What an admin does with jobs in flight: upgrade, lose a replica, rotate certificates, drain, lose the API server.

Users go on writing all the while. The tests are steps of one story and run in order; the last one counts.

The upgrade is from the image of `BEFORE=ARCHIVE`, which `make image` of another commit leaves in build/image/operator;
without it, from this one under another tag.
"""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lab import jobset, node
from lab.cluster import Cluster
from lab.images import trainplane
from lab.images.containerd_root import SOCKET
from lab.processes import wait_for
from tests.install.admin import CHART, NAMESPACE, RELEASE, Admin
from tests.install.authority import aged
from tests.install.in_flight import Jobs, Writers
from tests.size import sized
from trainplane.kube.pki import CertificatePolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

RUNNING, RESUMED, HELD = sized((2, 3, 15), full=(8, 12, 30))
IMAGE_NAME = trainplane.name("operator").rpartition(":")[0]
CTR = ("ctr", "--address", SOCKET, "--namespace", "k8s.io")
SECRET = f"{RELEASE}-webhook-cert"
SELECTOR = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component=manager"
SETTLE = CertificatePolicy(dns_names=("any",)).settle
"""How long an authority is there before it signs."""
AWAY_SECONDS = 3.0
"""How long the API server is away before it is started again."""


@dataclass
class Busy:
    """A cluster with the release, jobs in flight and users who write."""

    admin: Admin
    jobs: Jobs
    writers: Writers
    report: SuiteReport
    jobsets: dict[str, str]
    pods: dict[str, str]

    @contextlib.contextmanager
    def event(self, name: str, *, away: bool = False, crash: bool = False) -> Iterator[None]:
        """Count what is written and refused while something happens, and a moment after.

        `away`: the API server is, for a while. `crash`: what is refused is counted apart.
        """
        start, written = time.monotonic(), self.writers.written
        refused, unreachable = len(self.writers.refused), self.writers.unreachable
        yield
        self.writers.await_more(20)
        found = self.writers.refused[refused:]
        self.report.row(
            event=name,
            seconds=round(time.monotonic() - start, 1),
            writes=self.writers.written - written,
            refused=len(found),
            unreachable=self.writers.unreachable - unreachable,
        )
        if crash:
            self.report.figure("writes_refused_by_crash", len(found))
            del self.writers.refused[refused : refused + len(found)]
            found = []
        assert found == []
        assert (self.writers.unreachable > unreachable) == away

    def pods_of_release(self) -> dict[str, dict[str, Any]]:
        """Return the operator's pods by name."""
        pods = self.admin.cluster.get("pods", "-n", NAMESPACE, "-l", SELECTOR)["items"]
        return {pod["metadata"]["name"]: pod for pod in pods}

    def replicas(self) -> dict[str, dict[str, Any]]:
        """Return the operator's pods by name, without those that are ending."""
        pods = self.pods_of_release()
        return {name: pod for name, pod in pods.items() if "deletionTimestamp" not in pod["metadata"]}

    def ready(self) -> set[str]:
        """Return the operator's pods that are ready."""
        return {name for name, pod in self.replicas().items() if _is_ready(pod)}

    def holder(self) -> str:
        """Return who holds the Lease."""
        spec = self.admin.cluster.get("lease", "trainer.kubeflow.org", "-n", NAMESPACE)["spec"]
        return str(spec.get("holderIdentity") or "")

    def leader(self) -> str:
        """Return the pod that leads."""
        holder = self.holder()
        return next((name for name in self.replicas() if name in holder), "")


@pytest.fixture(scope="module")
def busy(archived: Path, report: SuiteReport) -> Iterator[Busy]:
    cluster = Cluster.up(f"busy-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        node.install(cluster)
        for archive, tag in ((Path(os.environ.get("BEFORE", archived)), "before"), (archived, "after")):
            node.load(cluster, archive, trainplane.name("operator"))
            cluster.sandbox.run([*CTR, "images", "tag", "--force", trainplane.name("operator"), f"{IMAGE_NAME}:{tag}"])
        admin = Admin(cluster)
        admin.make_namespace()
        admin.install("--set-string=image.tag=before")
        jobs = Jobs(cluster, RUNNING, RESUMED, HELD)
        jobs.begin()
        jobsets, pods = jobs.jobsets(), jobs.pods()
        with Writers(cluster) as writers:
            yield Busy(admin, jobs, writers, report, jobsets, pods)
    finally:
        cluster.down()


def test_an_upgrade_refuses_no_write(busy: Busy) -> None:
    before = busy.replicas()
    with busy.event("upgrade"):
        busy.admin.helm(
            *("upgrade", RELEASE, str(CHART), "--reuse-values", "--set-string=image.tag=after"),
            *("--wait", "--timeout=120s"),
        )
        wait_for("the former pods to go", lambda: not before.keys() & busy.pods_of_release().keys(), seconds=60)
    images = {pod["spec"]["containers"][0]["image"] for pod in busy.replicas().values()}
    assert images == {f"{IMAGE_NAME}:after"}


def test_a_replica_deleted_by_force_refuses_no_write(busy: Busy) -> None:
    wait_for("a leader", lambda: bool(busy.leader()), seconds=60)
    killed = busy.leader()
    with busy.event("replica deleted by force"):
        busy.admin.cluster.kubectl("delete", "pod", killed, "-n", NAMESPACE, "--grace-period=0", "--force")
        wait_for("two replicas", lambda: len(busy.ready() - {killed}) == 2, seconds=90)
        wait_for("another leader", lambda: busy.leader() not in ("", killed), seconds=60)


@pytest.mark.full
def test_a_replica_that_crashes_loses_nothing(busy: Busy) -> None:
    """It stays in the Service until its kubelet has told: what the API server asks it meanwhile is refused."""
    name, former = busy.leader(), busy.holder()
    (status,) = busy.replicas()[name]["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    with busy.event("replica crashed", crash=True):
        busy.admin.cluster.sandbox.run([*CTR, "tasks", "kill", "--signal=SIGKILL", container])
        wait_for("another leader", lambda: busy.holder() not in ("", former), seconds=60)
        wait_for("two replicas", lambda: len(busy.ready()) == 2, seconds=60)


@pytest.mark.full
def test_a_new_certificate_refuses_no_write(busy: Busy) -> None:
    """An admin empties a part of the Secret: the operator makes it anew, and API server and replicas follow."""
    former = _shown(busy)
    with busy.event("serving certificate rotated"):
        _empty(busy, "tls.crt", "tls.key")
        wait_for("a new certificate", lambda: not _shown(busy) & former, seconds=60)
    with busy.event("authority rotated"):
        _empty(busy, "ca.key")
        wait_for("both authorities", lambda: _authorities(busy) == {2}, seconds=60)
    former = _shown(busy)
    with busy.event("authority settled"):
        _age_authority(busy)
        wait_for("a certificate of the new authority", lambda: not _shown(busy) & former, seconds=60)


@pytest.mark.full
def test_a_drained_node_refuses_no_write(busy: Busy) -> None:
    """On one node, a drain waits at the second replica until the first has a place again, which uncordon gives it."""
    cluster, before = busy.admin.cluster, busy.ready()
    drain = threading.Thread(
        target=cluster.kubectl,
        args=("drain", node.NAME, f"--pod-selector={SELECTOR}", "--timeout=120s"),
        daemon=True,
    )
    with busy.event("node drained"):
        drain.start()
        wait_for("the first eviction", lambda: len(before & busy.ready()) == 1, seconds=60)
        busy.writers.await_more(40)
        assert len(busy.ready()) == 1, "the PodDisruptionBudget keeps one"
        cluster.kubectl("uncordon", node.NAME)
        wait_for("two other replicas", lambda: len(busy.ready() - before) == 2, seconds=120)
        drain.join(60)
    assert not drain.is_alive()


@pytest.mark.full
def test_an_api_server_that_starts_again_refuses_no_write(busy: Busy) -> None:
    with busy.event("API server restarted", away=True):
        busy.admin.cluster.kill("kube-apiserver")
        time.sleep(AWAY_SECONDS)
        busy.admin.cluster.revive("kube-apiserver")
        busy.admin.cluster.wait_ready()
        wait_for("two replicas", lambda: len(busy.ready()) == 2, seconds=60)


def test_nothing_is_lost(busy: Busy, report: SuiteReport) -> None:
    busy.writers.stop()
    after = busy.jobs.jobsets()
    anew = {name for name, uid in busy.jobsets.items() if after.get(name) != uid}
    gone = busy.pods.items() - busy.jobs.pods().items()
    lost = anew | busy.writers.lost() | busy.jobs.end()
    report.figure("jobs_in_flight", len(busy.jobsets))
    report.figure("writes_in_flight", busy.writers.written)
    report.figure("writes_refused", len(busy.writers.refused))
    report.figure("writes_unreachable", busy.writers.unreachable)
    report.figure("jobs_lost", len(lost))
    assert busy.writers.refused == []
    assert lost == set()
    assert gone == set(), "pods of running jobs were replaced"


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _empty(busy: Busy, *keys: str) -> None:
    data = ",".join(f'"{key}":""' for key in keys)
    busy.admin.cluster.kubectl(
        "patch", "secret", SECRET, "-n", NAMESPACE, "--type=merge", f'--patch={{"data":{{{data}}}}}'
    )


def _age_authority(busy: Busy) -> None:
    """Let the new authority be there for longer than it takes until it signs."""
    data = busy.admin.cluster.get("secret", SECRET, "-n", NAMESPACE)["data"]
    ca_crt, ca_key = (base64.b64decode(data[name]) for name in ("ca.crt", "ca.key"))
    older = base64.b64encode(aged(ca_crt, ca_key, 2 * SETTLE)).decode()
    busy.admin.cluster.kubectl(
        "patch", "secret", SECRET, "-n", NAMESPACE, "--type=merge", f'--patch={{"data":{{"ca.crt":"{older}"}}}}'
    )


def _shown(busy: Busy) -> set[str]:
    """Return the certificates that the replicas show."""
    with busy.admin.cluster.sandbox.entered():
        return {
            ssl.get_server_certificate((pod["status"]["podIP"], 9443), timeout=60) for pod in busy.replicas().values()
        }


def _authorities(busy: Busy) -> set[int]:
    """Return how many authorities the API server trusts, for each webhook."""
    kinds = (
        "mutatingwebhookconfiguration/defaulter.trainer.kubeflow.org",
        "validatingwebhookconfiguration/validator.trainer.kubeflow.org",
    )
    found = [one for kind in kinds for one in busy.admin.cluster.get(kind)["webhooks"]]
    return {base64.b64decode(one["clientConfig"]["caBundle"]).count(b"BEGIN CERTIFICATE") for one in found}
