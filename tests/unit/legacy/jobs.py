"""Jobs of v1 and their pods, as short as a test can say them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from trainplane.api.legacy import names
from trainplane.legacy.decide import decide
from trainplane.legacy.decision import Decision, Observed, Settings
from trainplane.legacy.status import written

if TYPE_CHECKING:
    from trainplane.api.legacy.kinds import Kind

Tree = dict[str, Any]
NOW: Final = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
UID: Final = "uid-1"


def job(kind: Kind, replicas: dict[str, Any], *, policy: Tree | None = None, **spec: Any) -> Tree:
    """Return a job; replicas are counts by type, or `(count, restart policy)`."""
    template = {"spec": {"containers": [{"name": kind.container, "image": "images.example/train:1"}]}}
    specs: Tree = {}
    for name, said in replicas.items():
        count, restart = said if isinstance(said, tuple) else (said, None)
        specs[name] = {"replicas": count, "template": template, **({"restartPolicy": restart} if restart else {})}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "demo", "namespace": "team", "uid": UID},
        "spec": {"runPolicy": policy or {}, kind.specs: specs, **spec},
    }


def pod(kind: Kind, name: str, phase: str, *, code: int | None = None, going: bool = False, restarts: int = 0) -> Tree:
    """Return a pod that the job made two hours ago, by the rest of its name."""
    metadata: Tree = {"name": f"demo-{name}", "uid": f"uid-{name}", "creationTimestamp": ago(2)}
    if going:
        metadata["deletionTimestamp"] = ago(0)
    state: Tree = {"running": {}} if code is None else {"terminated": {"exitCode": code, "reason": "Error"}}
    statuses = [{"name": kind.container, "state": state, "restartCount": restarts}]
    status = {"phase": phase, "containerStatuses": statuses}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}


def look(
    kind: Kind,
    tree: Tree,
    *pods: Tree,
    services: tuple[Tree, ...] = (),
    others: tuple[Tree, ...] = (),
    settings: Settings | None = None,
    after: timedelta = timedelta(),
) -> Decision:
    """Return what follows from a look at a job."""
    seen = Observed(tree, pods, services, others, NOW)
    return decide(kind, replace(seen, now=NOW + after), settings or Settings())


def with_status(tree: Tree, *conditions: str, **status: Any) -> Tree:
    """Return a job that began three hours ago and has conditions, all True."""
    stated = [
        {"type": one, "status": "True", "reason": f"{tree['kind']}{one}", "message": "as it was"}
        for one in (names.CREATED, *conditions)
    ]
    return {**tree, "status": {"conditions": stated, "startTime": ago(3), "replicaStatuses": {}, **status}}


def ago(hours: float) -> str:
    """Return a time that is that long past."""
    return written(NOW - timedelta(hours=hours))


def states(decided: Decision) -> dict[str, str]:
    """Return the conditions of the new status."""
    assert decided.status is not None
    return {one["type"]: one["status"] for one in decided.status["conditions"]}


def message(decided: Decision, condition: str) -> str:
    """Return what a condition of the new status says."""
    assert decided.status is not None
    return next(str(one["message"]) for one in decided.status["conditions"] if one["type"] == condition)


def made(decided: Decision, kind: str = "Pod") -> list[str]:
    """Return the names of new objects of a kind."""
    return [one["metadata"]["name"] for one in decided.create if one["kind"] == kind]


def env(decided: Decision, name: str, container: int = 0) -> dict[str, Any]:
    """Return the variables of a new pod; of those that share a name the last, as the kubelet does."""
    found = next(one for one in decided.create if one["kind"] == "Pod" and one["metadata"]["name"] == name)
    return {one["name"]: one.get("value") for one in found["spec"]["containers"][container].get("env", ())}
