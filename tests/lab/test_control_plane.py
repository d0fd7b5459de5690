from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab import addresses
from lab.cluster import Cluster, clusters
from lab.engines import binary, build
from lab.errors import LabError, NoClusterError
from lab.images import usual
from lab.paths import REPOSITORY, cache_root, state_root
from lab.processes import Process, run, wait_for

if TYPE_CHECKING:
    from tests.suite import SuiteReport

_READY_GOAL_SECONDS = 20


def _traces(name: str, holder: Process, index: int) -> list[str]:
    """Return whatever a cluster left on the machine."""
    left = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/tplab-{name}")]
    if (state_root() / name).exists():
        left.append(str(state_root() / name))
    if holder.alive():
        left.append(f"process {holder.pid}")
    left += [line for line in Path("/proc/mounts").read_text().splitlines() if f"/{name}/" in line]
    left += [line for line in run(["ip", "-o", "addr"]).stdout.splitlines() if addresses.node(index) in line]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if f"/clusters/{name}/" in command:
                left.append(f"{entry.name}: {command}")
    return left


def test_engines_are_built_and_a_second_build_does_nothing(report: SuiteReport) -> None:
    start = time.monotonic()
    assert build.build_missing() == {}
    warm = time.monotonic() - start
    cold = build.build_seconds()
    report.figure("engines_build_cold_s", sum(cold.values()))
    report.figure("engines_build_warm_s", warm)
    for name, seconds in cold.items():
        report.row(engine=name, cold_build_s=seconds)
    images = {image.name: json.loads((image.built() / "build.json").read_text())["seconds"] for image in usual()}
    report.figure("images_build_cold_s", sum(images.values()))
    disk = subprocess.run(["du", "-sm", str(cache_root())], capture_output=True, text=True, check=True)
    report.figure("cache_disk_mb", float(disk.stdout.split()[0]))


def test_a_warm_start_is_ready_in_time_and_down_leaves_nothing(report: SuiteReport) -> None:
    start = time.monotonic()
    cluster = Cluster.up("self-warm", owned=True)
    ready = time.monotonic() - start
    holder = cluster.sandbox.holder
    start = time.monotonic()
    cluster.down()
    report.figure("readyz_s", ready)
    report.figure("down_s", time.monotonic() - start)
    assert ready < _READY_GOAL_SECONDS
    assert _traces("self-warm", holder, cluster.index) == []
    with pytest.raises(NoClusterError, match="no cluster `self-warm` is up"):
        Cluster.find("self-warm")


def test_a_killed_run_leaves_nothing_after_the_next_up() -> None:
    script = (
        "import time; from lab.cluster import Cluster; c = Cluster.up('self-killed', owned=True);"
        "print(c.sandbox.holder.pid, c.index, flush=True); time.sleep(600)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdout is not None
    pid, index = (int(word) for word in child.stdout.readline().split())
    holder = Process.of(pid)
    assert holder.alive()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    wait_for("the end of the killed run's cluster", lambda: not holder.alive(), seconds=30)
    next_one = Cluster.up("self-next", owned=True)
    try:
        assert _traces("self-killed", holder, index) == []
        assert [cluster.name for cluster in clusters() if cluster.name == "self-killed"] == []
    finally:
        next_one.down()


def test_two_clusters_at_once_know_nothing_of_each_other(cluster: Cluster) -> None:
    other = Cluster.up("self-other", owned=True)
    try:
        assert other.port != cluster.port
        assert other.index != cluster.index
        other.kubectl("create", "namespace", "only-there")
        assert cluster.kubectl("get", "namespace", "only-there", check=False).code
        with pytest.raises(LabError, match="is up already"):
            Cluster.up("self-other")
    finally:
        other.down()


def test_the_kubeconfig_works_on_the_machine_and_inside(cluster: Cluster) -> None:
    outside = cluster.kubectl("get", "--raw", "/readyz").stdout
    inside = cluster.sandbox.run(
        [binary("kubectl"), f"--kubeconfig={cluster.kubeconfig}", "get", "--raw", "/readyz"]
    ).stdout
    assert outside == inside == "ok"


def test_rbac_is_on(cluster: Cluster) -> None:
    kubeconfig = cluster.user("nobody", "nobody")
    refused = run([binary("kubectl"), f"--kubeconfig={kubeconfig}", "get", "secrets", "-A"], check=False)
    assert refused.code == 1
    assert 'User "nobody" cannot list resource "secrets"' in refused.output


def test_the_aggregation_layer_is_on(cluster: Cluster) -> None:
    trusted = cluster.get("configmap", "extension-apiserver-authentication", "-n", "kube-system")["data"]
    assert trusted["requestheader-client-ca-file"] == cluster.authority.read_text()
    assert json.loads(trusted["requestheader-allowed-names"]) == ["front-proxy"]
    service = {"name": "nothing", "namespace": "default"}
    spec = {"group": "lab.test", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10}
    api = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.lab.test"},
        "spec": spec | {"service": service, "insecureSkipTLSVerify": True},
    }
    cluster.apply(api)
    try:

        def judged() -> bool:
            conditions = cluster.get("apiservice", "v1.lab.test").get("status", {}).get("conditions", [])
            return [c["reason"] for c in conditions] == ["ServiceNotFound"]

        wait_for("the aggregator's verdict", judged, seconds=30)
    finally:
        cluster.kubectl("delete", "apiservice", "v1.lab.test")


def test_jobset_defaults_and_refuses_by_its_webhooks(cluster: Cluster, namespace: str) -> None:
    pod = {"containers": [{"name": "c", "image": "none"}]}
    job = {"name": "a", "template": {"spec": {"template": {"spec": pod}}}}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "defaulted", "namespace": namespace},
        "spec": {"replicatedJobs": [job]},
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(jobset))
    stored = cluster.get("jobset", "defaulted", "-n", namespace)
    assert stored["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] == "Indexed"
    jobset["metadata"] = {"name": "x" * 60, "namespace": namespace}
    refused = cluster.kubectl("create", "-f", "-", stdin=json.dumps(jobset), check=False)
    assert refused.code
    assert "job names generated for this JobSet will exceed 63" in refused.output
    wait_for("JobSet's Job", lambda: bool(cluster.get("jobs", "-n", namespace)["items"]), seconds=30)


def test_a_killed_engine_comes_back(cluster: Cluster, namespace: str) -> None:
    for engine in ("kube-apiserver", "etcd"):
        cluster.kill(engine)
        assert cluster.kubectl("get", "namespace", namespace, "--request-timeout=2s", check=False).code
        cluster.revive(engine)
        cluster.wait_ready()
        assert cluster.kubectl("get", "namespace", namespace).code == 0
