"""An older TrainJob that says all itself, with real pods: torchrun's processes find each other by what it became."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lab.images import reference as image
from tests.legacy.older.user import Teammate
from tests.legacy.older.world import OLDER

if TYPE_CHECKING:
    from lab.cluster import Cluster

PROGRAM = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {int(total.item())}", flush=True)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.full
def test_processes_on_two_nodes_meet_and_the_end_is_told_on_the_older_job(node_cluster: Cluster) -> None:
    user = Teammate(node_cluster, f"older-{uuid.uuid4().hex[:8]}")
    node_cluster.kubectl("create", "namespace", user.namespace)
    trainer = {
        "image": image("torch"),
        "command": ["torchrun", "--no-python", "python3", "-c", PROGRAM],
        "resourcesPerNode": {"requests": {"cpu": "50m", "memory": "128Mi"}},
    }
    spec = {"numNodes": 2, "trainer": trainer}
    user.apply({"apiVersion": OLDER, "kind": "TrainJob", "metadata": {"name": "whole"}, "spec": spec})
    user.wait_older("whole", "SUCCESS")
    logs = user.kubectl("logs", "--selector=jobset.sigs.k8s.io/jobset-name=whole", "--tail=-1").stdout
    assert {"rank 0 of 2: sum 2", "rank 1 of 2: sum 2"} <= set(logs.splitlines())
