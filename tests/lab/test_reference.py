from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import yaml

from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from lab.cluster import Cluster
    from tests.suite import SuiteReport


def test_a_two_pod_torch_trainjob_completes_under_the_reference(
    measured: Callable[[str], AbstractContextManager[tuple[Cluster, ...]]], report: SuiteReport
) -> None:
    _, scripts = yaml.safe_load_all((REPOSITORY / "examples/lab/ddp.yaml").read_text())
    program = scripts["data"]["train.py"]
    trainer = {
        "numNodes": 2,
        "command": ["bash", "-c", 'printf "%s" "$PROGRAM" > /tmp/train.py && torchrun /tmp/train.py'],
        "env": [{"name": "PROGRAM", "value": program}, {"name": "OMP_NUM_THREADS", "value": "1"}],
        "resourcesPerNode": {"requests": {"cpu": "100m", "memory": "256Mi"}},
    }
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "torch"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
    }
    with measured("reference") as (cluster,):
        start = time.monotonic()
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
        cluster.kubectl("wait", "--for=condition=Complete", "--timeout=240s", "trainjob/torch")
        report.figure("reference_trainjob_s", time.monotonic() - start)
        logs = cluster.kubectl("logs", "--selector=jobset.sigs.k8s.io/jobset-name=torch", "--tail=-1").stdout
        assert logs.count("weights equal on all ranks: True") == 2
        (status,) = cluster.get("trainjob", "torch")["status"]["jobsStatus"]
        assert (status["name"], status["succeeded"]) == ("node", 1)
