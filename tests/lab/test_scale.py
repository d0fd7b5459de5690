from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from lab.processes import wait_for
from lab.profiles import SCALE_NODES
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

_PODS = sized(250, full=5000)


@pytest.mark.timeout(600)
def test_kwok_runs_thousands_of_pods_on_1000_nodes(
    measured: Callable[[str], AbstractContextManager[tuple[Cluster, ...]]], report: SuiteReport
) -> None:
    with measured("scale") as (cluster,):
        nodes = json.loads(cluster.kubectl("get", "--raw", "/api/v1/nodes").stdout)["items"]
        assert len(nodes) == SCALE_NODES
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        template = {"metadata": {"labels": {"app": "many"}}, "spec": {"containers": [container]}}
        spec = {"replicas": _PODS, "selector": {"matchLabels": {"app": "many"}}, "template": template}
        start = time.monotonic()
        cluster.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "many"}, "spec": spec})

        def all_ready() -> bool:
            status: dict[str, Any] = cluster.get("replicaset", "many").get("status", {})
            time.sleep(1)
            return bool(status.get("readyReplicas", 0) == _PODS)

        wait_for(f"{_PODS} running pods", all_ready, seconds=540, log=cluster.log("kwok"))
        report.figure(f"scale_{_PODS}_pods_running_s", time.monotonic() - start)
        used = {
            pod["spec"]["nodeName"]
            for pod in json.loads(cluster.kubectl("get", "--raw", "/api/v1/namespaces/default/pods").stdout)["items"]
            if pod["status"]["phase"] == "Running"
        }
        assert len(used) > SCALE_NODES // 5, "the scheduler spreads them"
