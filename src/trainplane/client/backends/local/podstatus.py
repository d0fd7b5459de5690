"""The status of a pod as the kubelet writes it. Each function changes the Pod that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

CONTAINERS: Final = "containerStatuses"
INIT: Final = "initContainerStatuses"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"


def begin(pod: Tree) -> None:
    """Let all containers wait to be made."""
    for group, kind in ((INIT, "initContainers"), (CONTAINERS, "containers")):
        entries = pod["spec"].get(kind) or ()
        if entries:
            waiting = {"waiting": {"reason": "PodInitializing" if group == CONTAINERS else "ContainerCreating"}}
            pod["status"][group] = [
                {
                    "name": entry["name"],
                    "image": entry.get("image", ""),
                    "ready": False,
                    "restartCount": 0,
                    "state": dict(waiting),
                }
                for entry in entries
            ]


def of_container(pod: Tree, group: str, name: str) -> Tree:
    """Return the status of a container, to write into."""
    entries: list[Tree] = pod["status"][group]
    return next(entry for entry in entries if entry["name"] == name)


def set_waiting(pod: Tree, group: str, name: str, reason: str, message: str = "") -> None:
    """Let a container wait for something."""
    waiting = {"reason": reason, **({"message": message} if message else {})}
    of_container(pod, group, name).update(state={"waiting": waiting}, ready=False)


def set_running(pod: Tree, group: str, name: str, now: str, *, ready: bool) -> None:
    """Let a container run."""
    of_container(pod, group, name).update(state={"running": {"startedAt": now}}, ready=ready, started=True)
    _settle(pod, now)


def set_ready(pod: Tree, name: str, now: str) -> None:
    """Let a running container be ready."""
    of_container(pod, CONTAINERS, name)["ready"] = True
    _settle(pod, now)


def set_ended(pod: Tree, group: str, name: str, now: str, *, code: int, reason: str, message: str = "") -> None:
    """Let a container have ended."""
    status = of_container(pod, group, name)
    began = (status["state"].get("running") or {}).get("startedAt", now)
    said = reason or ("Completed" if code == 0 else "Error")
    ended = {"exitCode": code, "reason": said, "startedAt": began, "finishedAt": now}
    if message:
        ended["message"] = message
    status.update(state={"terminated": ended}, ready=False)
    _settle(pod, now)


def set_restarting(pod: Tree, group: str, name: str, seconds: float) -> None:
    """Let a container that ended wait to be started again."""
    status = of_container(pod, group, name)
    status.update(lastState=status["state"], restartCount=status["restartCount"] + 1)
    set_waiting(pod, group, name, "CrashLoopBackOff", f"it starts again in {seconds:g} s")


def set_phase(pod: Tree, phase: str, now: str, reason: str = "", message: str = "") -> None:
    """Set a pod's phase, and why if it is for a reason of its own."""
    pod["status"]["phase"] = phase
    if reason:
        pod["status"].update(reason=reason, message=message)
    _settle(pod, now)


def is_ready(pod: Tree) -> bool:
    """Return whether all containers of a pod are ready, or done."""
    entries: list[Tree] = pod["status"].get(CONTAINERS) or []
    return pod["status"]["phase"] == RUNNING and all(entry["ready"] or _is_done(entry) for entry in entries)


def _is_done(entry: Tree) -> bool:
    ended = entry["state"].get("terminated")
    return ended is not None and ended["exitCode"] == 0


def _settle(pod: Tree, now: str) -> None:
    """Bring the condition Ready up to date."""
    conditions: list[Tree] = pod["status"].setdefault("conditions", [])
    value = "True" if is_ready(pod) else "False"
    present = next((one for one in conditions if one["type"] == "Ready"), None)
    if present is None:
        conditions.append({"type": "Ready", "status": value, "lastTransitionTime": now})
    elif present["status"] != value:
        present.update(status=value, lastTransitionTime=now)
