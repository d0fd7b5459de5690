"""How jobs look under one operator, so that they can be compared with how they look under the other.

What differs from one run to the next (times, uids, addresses, the words of messages) is left out; what differs on
purpose is declared here, by cause. Whatever else differs is a finding.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.legacy.old.members import Member
    from tests.legacy.old.stage import Stage

Tree = dict[str, Any]

_DRAWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace")
_TIMES = ("lastUpdateTime", "lastTransitionTime", "startTime", "completionTime", "lastReconcileTime")


def look(stage: Stage, namespace: str, members: tuple[Member, ...]) -> dict[str, Tree]:
    """Return each job's status, warnings, and what it owns, by the job's name.

    Good news is not compared: ours tells the steps of one course as one Event, and theirs goes by how often it looked.
    """
    jobs = stage.jobs(namespace, members)
    everything = stage.kept(namespace)
    events = stage.api.list("events", namespace)
    found = {}
    for name, job in jobs.items():
        uid = job["metadata"]["uid"]
        owned = {
            f"{plural} {item['metadata']['name']}": _anywhere(_steady(item, name), namespace)
            for plural, items in everything.items()
            for item in items
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences", ()))
        }
        warned = {
            f"{one['reason']}" for one in events if one["involvedObject"]["uid"] == uid and one["type"] == "Warning"
        }
        found[name] = {"status": status(job), "warnings": dict.fromkeys(sorted(warned), 1), **owned}
    return found


def status(job: Tree) -> Tree:
    """Return a job's status: times as whether they are there, conditions without words."""
    found = dict(job.get("status") or {})
    for time in _TIMES:
        if time in found:
            found[time] = "a time"
    found["conditions"] = [(one["type"], one["status"], one["reason"]) for one in found.get("conditions") or ()]
    return found


def times(job: Tree) -> Tree:
    """Return what an operator that takes over must leave as it is: a status without its words and last look."""
    found = dict(job.get("status") or {})
    found.pop("lastReconcileTime", None)
    found["conditions"] = [
        {key: value for key, value in one.items() if key != "message"} for one in found.get("conditions") or ()
    ]
    return found


def _steady(item: Tree, job: str) -> Tree:
    """Return an object without what is drawn anew for each."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in _DRAWN}
    metadata["ownerReferences"] = [
        {key: value for key, value in owner.items() if key != "uid"} for owner in metadata["ownerReferences"]
    ]
    spec = {key: value for key, value in item["spec"].items() if key not in ("clusterIP", "clusterIPs")}
    phase = item.get("status", {}).get("phase")
    return {"metadata": metadata, "spec": _without_accounts(spec), "phase": phase, "job": job}


def _anywhere(item: Tree, namespace: str) -> Tree:
    """Return an object without its namespace in names of hosts."""
    found: Tree = json.loads(json.dumps(item).replace(f".{namespace}.svc", ".namespace.svc"))
    return found


def _without_accounts(spec: Tree) -> Tree:
    """Leave out the volume of a pod's token, whose name is drawn."""

    def clean(container: Tree) -> Tree:
        mounts = [one for one in container.get("volumeMounts", ()) if not one["name"].startswith("kube-api-access-")]
        return {**container, "volumeMounts": mounts}

    found = dict(spec)
    for key in ("containers", "initContainers"):
        if key in found:
            found[key] = [clean(container) for container in found[key]]
    found["volumes"] = [one for one in found.get("volumes", ()) if not one["name"].startswith("kube-api-access-")]
    return found


# -- what differs ------------------------------------------------------------------------------------------------------


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Yield where two looks differ and no cause is declared: the path, what they have, what ours has."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from differences(theirs.get(key), ours.get(key), f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(one, other, f"{path}/{index}")
    elif theirs != ours and not _is_declared(path):
        yield f"{path}: theirs {theirs!r}, ours {ours!r}"


_DECLARED = {
    "/initContainers/0/": "how a worker awaits its master is the operator's own, and its image a setting",
    "/status/lastReconcileTime": "nobody reads when an operator last looked, and each write wakes every watcher",
    "JobFailed": "a failure is a warning; theirs tells it as good news",
    "/replicaStatuses/Worker/selector": "theirs has it or not, by the order in which it met its replica types",
}
"""Part of a path → why what lies there may differ."""


def _is_declared(path: str) -> bool:
    return any(part in f"{path}/" or path.endswith(part) for part in _DECLARED)
