"""JobSets, plans and launches of these tests."""

from __future__ import annotations

from typing import Any

from trainplane.api.podindex import PodIndex
from trainplane.client.backends.local.pods import LocalJobSet, pod_at, read_jobset
from trainplane.client.backends.local.runner import Launch

Tree = dict[str, Any]
NOW = "2026-11-15T05:00:00.000000Z"


def job(name: str = "node", pods: int = 2, *, spec: Tree | None = None, pod: Tree | None = None, **more: Any) -> Tree:
    template = {"spec": {"containers": [{"name": "node", "image": "i", "command": ["run"]}], **(pod or {})}}
    body = {"parallelism": pods, "completions": pods, "template": template, **(spec or {})}
    return {"name": name, "template": {"spec": body}, **more}


def plan(*jobs: Tree, **spec: Any) -> LocalJobSet:
    jobset = {"metadata": {"name": "a"}, "spec": {"replicatedJobs": list(jobs or (job(),)), **spec}}
    return read_jobset(jobset, "uid-1")


def pod(place: PodIndex | None = None, **changes: Any) -> Tree:
    return pod_at(
        plan(**changes),
        place or PodIndex("node", 0, 0),
        suffix="x",
        attempt=0,
        now=NOW,
        address="10.0.0.2",
        machine="m",
    )


def launch(container: Tree | None = None, **more: Any) -> Launch:
    fields: Tree = {
        "pod": pod(),
        "place": PodIndex("node", 0, 1),
        "container": {"name": "node", "image": "i", **(container or {})},
        "identity": "a-node-0-1-x.node",
        "command": ["run"],
        "args": ["fast"],
        "variables": {},
    }
    return Launch(**{**fields, **more})
