from __future__ import annotations

import contextlib
import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from lab.images import reference as image
from lab.node import NAME
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from lab.cluster import Cluster


@pytest.fixture(scope="module")
def node_cluster(measured: Callable[[str], AbstractContextManager[tuple[Cluster, ...]]]) -> Iterator[Cluster]:
    with measured("node") as (cluster,):
        yield cluster


def _pod(name: str, command: list[str], *, labels: dict[str, str] | None = None, **container: Any) -> dict[str, Any]:
    main = {"name": "main", "image": image("python"), "imagePullPolicy": "Never", "command": command} | container
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main]},
    }


def _phase(cluster: Cluster, name: str) -> str:
    phase: str = cluster.get("pod", name)["status"]["phase"]
    return phase


def test_the_node_is_ready(node_cluster: Cluster) -> None:
    node = node_cluster.get("node", NAME)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")


def test_logs_are_followed_through_the_api_server(node_cluster: Cluster) -> None:
    script = "import time\nfor n in range(5): print('line', n, flush=True); time.sleep(0.2)"
    node_cluster.apply(_pod("talker", ["python3", "-c", script]))
    node_cluster.kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].started}", "pod/talker", check=False)
    wait_for("the pod", lambda: _phase(node_cluster, "talker") != "Pending", seconds=60)
    followed = node_cluster.kubectl("logs", "--follow", "talker").stdout
    assert followed.splitlines() == [f"line {number}" for number in range(5)]


def test_a_cluster_ip_answers_from_a_pod_and_from_the_api_server(node_cluster: Cluster) -> None:
    server = ["python3", "-m", "http.server", "8000", "--directory", "/etc"]
    probe = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    node_cluster.apply(_pod("web", server, labels={"app": "web"}, readinessProbe=probe), service)
    node_cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/web")
    address = node_cluster.get("service", "web")["spec"]["clusterIP"]

    def answers_on_the_node() -> bool:
        with node_cluster.sandbox.entered():
            try:
                with contextlib.closing(http.client.HTTPConnection(address, 80, timeout=2)) as connection:
                    connection.request("GET", "/debian_version")
                    return connection.getresponse().status == 200
            except OSError:
                return False

    wait_for("the ClusterIP on the API server's side", answers_on_the_node, seconds=30)
    proxied = ("get", "--raw", "/api/v1/namespaces/default/services/web:80/proxy/")
    wait_for(
        "the Service through the API server's proxy",
        lambda: "debian_version" in node_cluster.kubectl(*proxied, check=False).stdout,
        seconds=30,
    )
    asks = "import urllib.request as u; print(u.urlopen('http://{}/debian_version', timeout=10).status)"
    for number, host in enumerate((address, "web.default.svc.cluster.local")):
        node_cluster.apply(_pod(f"asker-{number}", ["python3", "-c", asks.format(host)]))
    for number in range(2):
        node_cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", f"pod/asker-{number}")
        assert node_cluster.kubectl("logs", f"asker-{number}").stdout.strip() == "200"


def test_a_pod_over_its_memory_limit_is_oom_killed(node_cluster: Cluster) -> None:
    hog = "data = []\nwhile True: data.append(bytearray(8 << 20))"
    node_cluster.apply(_pod("hog", ["python3", "-c", hog], resources={"limits": {"memory": "64Mi"}}))
    wait_for("the pod's end", lambda: _phase(node_cluster, "hog") == "Failed", seconds=90)
    (status,) = node_cluster.get("pod", "hog")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["reason"] == "OOMKilled"
    assert status["state"]["terminated"]["exitCode"] == 137


def test_exec_reaches_a_container(node_cluster: Cluster) -> None:
    assert node_cluster.kubectl("exec", "web", "--", "cat", "/etc/hostname").stdout.strip() == "web"


def test_pods_may_use_their_service_account(node_cluster: Cluster) -> None:
    script = (
        "import json, ssl, urllib.request as u; d='/var/run/secrets/kubernetes.io/serviceaccount/';"
        "r=u.Request('https://kubernetes.default.svc/version');"
        "r.add_header('Authorization', 'Bearer '+open(d+'token').read());"
        "print(json.load(u.urlopen(r, context=ssl.create_default_context(cafile=d+'ca.crt')))['gitVersion'])"
    )
    node_cluster.apply(_pod("in-cluster", ["python3", "-c", script]))
    node_cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/in-cluster")
    assert node_cluster.kubectl("logs", "in-cluster").stdout.strip() == "v1.36.3"
    assert json.loads(node_cluster.kubectl("version", "-o", "json").stdout)["serverVersion"]["gitVersion"] == "v1.36.3"
