"""The last chapter of docs/first-hour.md: a queue of a hub, and lines that outlive their pods."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from lab import node, reference
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.cli.first_hour.script import Reader, chapters
from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.hub.test_sdk import RBAC, RULES

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from tests.fleet.hub.stage import Seen

PAGE = (REPOSITORY / "docs/first-hour.md").read_text(encoding="utf-8")
RUNTIME = "first-hour"


def _runtime() -> dict[str, object]:
    """Return the runtime that we ship, for the one node of the fleet that runs pods."""
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    runtime["metadata"]["name"] = RUNTIME
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"]["spec"] |= {
            "nodeSelector": {"kubernetes.io/hostname": node.NAME},
            "tolerations": [objects.REAL],
        }
    return reference.with_image(runtime, image("torch"))


def _user(hub: Cluster, namespace: str) -> Path:
    """Return the kubeconfig of somebody with a Role in the namespace, on the hub alone."""
    user = f"user-{uuid.uuid4().hex[:6]}"
    meta = {"name": user, "namespace": namespace}
    hub.apply(
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": RULES},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
            "roleRef": {"kind": "Role", "name": user, "apiGroup": RBAC},
        },
    )
    return hub.user(user, user)


def test_the_chapter_on_a_hub(seen: Seen, tmp_path: Path) -> None:
    team = seen.team
    for cluster in team.fleet.clusters:
        Api(cluster).apply(_runtime())
    environment = {
        **os.environ,
        "KUBECONFIG": str(_user(team.fleet.hub, team.namespace)),
        "DEFAULT_TRAINING_RUNTIME": RUNTIME,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "120",
    }
    swaps = {
        "--queue team": f"--queue {objects.QUEUE} --namespace {team.namespace}",
        "logs far": f"logs far --namespace {team.namespace}",
    }
    reader = Reader(tmp_path, environment, swaps)
    write = next(block for block in chapters(PAGE)["On this machine"] if "cat >train.py" in block.code)
    run, logs = chapters(PAGE)["On a hub"]
    reader.follow(write)
    reader.follow(run)
    team.wait_gone("far", on="worker1")
    reader.follow(logs)
