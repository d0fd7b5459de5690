"""Runtimes of these tests, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.kwok import LASTS
from tests.fleet import objects

if TYPE_CHECKING:
    from tests.fleet.objects import Tree

LONG = "24h"
"""How long pods run that a test ends itself."""
SHARED = (objects.runtime(objects.RUNTIME), objects.runtime(objects.HELD, lasts=LONG))


def step(
    name: str = "node",
    *,
    ancestor: str | None = "trainer",
    lasts: str | None = LONG,
    requests: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    after: tuple[str, ...] = (),
    pod: Tree | None = None,
    command: list[str] | None = None,
    **job: Any,
) -> Tree:
    """Return a replicated job; `after` are steps that it waits for, `job` adds to its Job's spec."""
    replicas = job.pop("replicas", 1)
    container: Tree = {"name": ancestor if ancestor not in {None, "trainer"} else "node", "image": "none.invalid/x:1"}
    container["command"] = command or ["train"]
    if requests or limits:
        resources = {"requests": requests, "limits": limits}
        container["resources"] = {kind: amounts for kind, amounts in resources.items() if amounts}
    marks = ({LASTS: lasts} if lasts else {}) | (annotations or {})
    template: Tree = {"spec": {"restartPolicy": "Never", "containers": [container], **(pod or {})}}
    if marks:
        template["metadata"] = {"annotations": marks}
    labels = {"labels": {objects.STEP_LABEL: ancestor}} if ancestor else {}
    tree: Tree = {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": labels, "spec": {"backoffLimit": 0, **job, "template": template}},
    }
    if after:
        tree["dependsOn"] = [{"name": one, "status": "Complete"} for one in after]
    return tree


def runtime(name: str, namespace: str, *steps: Tree, policy: Tree | None = None, **spec: Any) -> Tree:
    """Return a TrainingRuntime of these steps; `policy` is its mlPolicy, torch unless told."""
    return {
        "apiVersion": objects.TRAINER,
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            **({"mlPolicy": {"torch": {}} if policy is None else policy} if policy != {} else {}),
            "template": {"spec": {"replicatedJobs": list(steps), **spec}},
        },
    }


def in_namespace(name: str) -> Tree:
    """Return what leads a TrainJob (`Team.submit`) to a TrainingRuntime of its own namespace."""
    return {"runtime": name, "kind": "TrainingRuntime"}
