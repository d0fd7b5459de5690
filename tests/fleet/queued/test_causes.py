"""Every cause, made for real with Kueue on one cluster of the fleet; then taken away as the answer says."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from tests.fleet import objects
from tests.fleet.api import RefusedError
from tests.fleet.queued.asking import GPU, Desk, checked, clock

if TYPE_CHECKING:
    from tests.fleet.queued.conftest import MakeDesk
    from trainplane.hub.pending.answer import Answer

Tree = dict[str, Any]

GATES = "kueue.x-k8s.io/admission-gated-by"


def test_every_cause_is_told(desk: MakeDesk) -> None:
    ours = desk()
    _make_queues(ours)
    ours.submit("by-user", queue=None, suspend=True)
    ours.submit("no-queue-there", queue="nowhere")
    ours.submit("local-stopped", queue="local-stopped")
    ours.submit("leads-nowhere", queue="leads-nowhere")
    ours.submit("stopped", queue="stopped")
    ours.submit("no-flavor", queue="no-flavor")
    ours.submit("no-check", queue="no-check")
    ours.submit("idle-check", queue="idle-check")
    ours.submit("not-selected", queue="not-selected")
    ours.submit("gated", annotations={GATES: "example.com/data,example.com/legal"})
    ours.submit("too-much", queue="small", gpus=1, nodes=9)
    ours.submit("not-covered", queue="no-gpus", gpus=1)
    ours.submit("tainted", queue="tainted")
    ours.submit("fat", queue="small", gpus=16, nodes=1)
    ours.submit("refused", gpus=5)
    ours.wait_refused("too-much")
    told = ours.wait_answers(
        {
            "by-user": ["SuspendedByUser"],
            "no-queue-there": ["LocalQueueMissing"],
            "local-stopped": ["LocalQueueStopped"],
            "leads-nowhere": ["ClusterQueueMissing"],
            "stopped": ["ClusterQueueStopped"],
            "no-flavor": ["ClusterQueueInactive"],
            "no-check": ["ClusterQueueInactive"],
            "idle-check": ["ClusterQueueInactive"],
            "not-selected": ["NamespaceNotSelected"],
            "gated": ["Gated"],
            "too-much": ["ExceedsQuota"],
            "not-covered": ["ResourceNotCovered"],
            "tainted": ["NoMatchingFlavor"],
            "fat": ["ExceedsQuota", "NoNodeFits"],
            "refused": ["Refused"],
        }
    )
    assert told["by-user"].state == "Suspended"
    assert {one.state for name, one in told.items() if name != "by-user"} == {"Queued"}
    assert "queue" in told["no-queue-there"].causes[0].do, "the queues that exist are named"
    assert "no-such-flavor" in told["no-flavor"].summary
    assert "no-such-check" in told["no-check"].summary
    assert "example.com/data, example.com/legal" in told["gated"].summary
    short = told["too-much"].causes[0].quota
    assert short is not None
    assert (str(short.need), str(short.nominal), short.of) == ("9", "8", (objects.FLAVOR, GPU))
    assert told["too-much"].position is not None
    assert told["gated"].position is None, "Kueue does not queue what is gated"
    assert "maximum capacity" in told["too-much"].kueue, "Kueue says the same"
    _follow(ours)


def _make_queues(ours: Desk) -> None:
    api = ours.team.api(ours.on)
    taint = {"key": "example.com/team", "value": "other", "effect": "NoSchedule"}
    tainted = f"{ours.team.namespace}-tainted"
    api.apply(objects.flavor(tainted, nodeTaints=[taint], nodeLabels={"example.com/team": "other"}))
    ours.queue("local-stopped", "8", local={"stopPolicy": "Hold"})
    ours.queue("leads-nowhere", "8", local={"clusterQueue": "no-such-cluster-queue"})
    ours.queue("stopped", "8", stopPolicy="Hold")
    ours.queue("no-flavor", "8", flavor="no-such-flavor")
    ours.queue("no-check", "8", **checked("no-such-check"))
    ours.queue("idle-check", "8", **checked(ours.check("idle")))
    ours.queue("not-selected", "8", namespaceSelector={"matchLabels": {"example.com/team": "other"}})
    ours.queue("small", "8")
    ours.queue("tainted", "8", flavor=tainted)
    bare = objects.cluster_queue(f"{ours.team.namespace}-no-gpus", namespaceSelector={})
    group = bare["spec"]["resourceGroups"][0]
    group["coveredResources"].remove(GPU)
    group["flavors"][0]["resources"] = [r for r in group["flavors"][0]["resources"] if r["name"] != GPU]
    leading = objects.local_queue(ours.team.namespace, name="no-gpus", cluster_queue=bare["metadata"]["name"])
    most = {"limits": [{"type": "Container", "max": {GPU: "4"}}]}
    meta = {"name": "most", "namespace": ours.team.namespace}
    api.apply(bare, leading)
    ours.team.cluster(ours.on).apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": most})


def _follow(ours: Desk) -> None:
    """Do as the answers say, with kubectl, and see the jobs start."""
    told = ours.ask("by-user", "stopped", "local-stopped")
    for one in told.values():
        ours.team.cluster(ours.on).kubectl(*_command(one))
    _open_gate(ours, "gated")
    ours.wait_started("by-user", "stopped", "local-stopped", "gated")


def test_checks_backoff_and_deactivation_are_told(desk: MakeDesk) -> None:
    ours = desk()
    check = ours.check("by-hand")
    ours.work_on(check)
    ours.queue("checked", "8", **checked(check))
    asked = ("pending", "retried", "rejected")
    for name in asked:
        ours.submit(name, queue="checked")
    ours.submit("held-back", annotations={GATES: "example.com/data"})
    ours.submit("stopped-by-hand")
    ours.wait_answers({"held-back": ["Gated"], **{name: ["AdmissionCheck"] for name in asked}})
    ours.wait_started("stopped-by-hand")

    _decide(ours, "pending", check, "Pending", "two of five nodes are there")
    _decide(ours, "retried", check, "Retry", "no machines today", requeueAfterSeconds=600)
    _decide(ours, "rejected", check, "Rejected", "the project has ended")
    _patch(ours, "held-back", {"status": {"requeueState": {"count": 1, "requeueAt": clock(600)}}}, part="status")
    _patch(ours, "stopped-by-hand", {"spec": {"active": False}})
    _open_gate(ours, "held-back")
    told = ours.wait_answers(
        {
            "pending": ["AdmissionCheck"],
            "retried": ["AdmissionCheck"],
            "rejected": ["Deactivated"],
            "held-back": ["Backoff"],
            "stopped-by-hand": ["Deactivated"],
        }
    )
    assert "two of five nodes are there" in told["pending"].summary
    ours.team.wait("Kueue to say when it tries again", lambda: _is_retried(ours, "retried", "no machines today"))
    assert "the project has ended" in told["rejected"].summary
    assert re.search(r"again at 20\S+Z, in \d+ s", told["held-back"].summary)
    assert (ours.team.job("held-back", on=ours.on) or {})["spec"]["suspend"], "there is room, and Kueue waits"

    ours.team.cluster(ours.on).kubectl(*_command(told["stopped-by-hand"]))
    _decide(ours, "pending", check, "Ready", "all there")
    ours.wait_started("stopped-by-hand", "pending")


def test_a_job_without_its_runtime_has_no_workload(desk: MakeDesk) -> None:
    ours = desk()
    api, namespace = ours.team.api(ours.on), ours.team.namespace
    runtime = objects.namespaced(objects.runtime("short-lived"), namespace)
    runtime["metadata"]["labels"]["trainer.kubeflow.org/webhook-validation"] = "disabled"
    api.apply(runtime)
    made: list[Tree] = []

    def accepted() -> bool:
        try:
            made.append(ours.submit("orphan", runtime="short-lived", kind="TrainingRuntime", gpus=9))
        except RefusedError as error:
            assert "not found" in error.message, "Kueue's cache has the runtime a moment later"  # noqa: PT017 tried again
        return bool(made)

    ours.team.wait("Kueue to know the runtime", accepted)
    ours.wait_answer("orphan", "ExceedsQuota", "NoNodeFits")
    workload = ours.team.workload("orphan", on=ours.on)
    assert workload is not None
    api.delete("trainingruntimes", namespace, "short-lived")
    ours.wait_answer("orphan", "RuntimeMissing", "ExceedsQuota", "NoNodeFits")
    ours.team.wait("Kueue to see it too", lambda: _is_frozen(ours, "orphan"))
    _patch(ours, "orphan", {"metadata": {"finalizers": None}})
    api.delete("workloads", namespace, workload["metadata"]["name"])
    told = ours.wait_answer("orphan", "RuntimeMissing")
    assert told.position is None
    assert "short-lived" in told.summary


def _is_frozen(ours: Desk, name: str) -> bool:
    """Return whether Kueue refuses any change of a TrainJob, because it knows no runtime of it."""
    patch = {"metadata": {"labels": {"any": "change"}}}
    try:
        ours.team.api(ours.on).patch("trainjobs", ours.team.namespace, name, patch)
    except RefusedError as error:
        return "not found" in error.message
    return False


def _is_retried(ours: Desk, name: str, why: str) -> bool:
    """Return whether the answer tells when Kueue tries again: it writes that down after the check has asked for it."""
    return re.search(rf"again at 20\S+Z, in \d+ s. {why}", ours.ask(name)[name].summary) is not None


def _decide(ours: Desk, name: str, check: str, state: str, message: str, **more: Any) -> None:
    """Speak for an admission check, as its controller would."""
    entry = {"name": check, "state": state, "message": message, "lastTransitionTime": clock(), **more}
    _patch(ours, name, {"status": {"admissionChecks": [entry]}}, part="status")


def _patch(ours: Desk, name: str, patch: Tree, *, part: str = "") -> None:
    workload = ours.team.workload(name, on=ours.on)
    assert workload is not None
    ours.team.api(ours.on).patch("workloads", ours.team.namespace, workload["metadata"]["name"], patch, part=part)


def _open_gate(ours: Desk, name: str) -> None:
    patch = {"metadata": {"annotations": {GATES: None}}}
    ours.team.api(ours.on).patch("trainjobs", ours.team.namespace, name, patch)


def _command(told: Answer) -> list[str]:
    """Return the kubectl command that an answer's first cause gives."""
    command = told.causes[0].do.partition("kubectl ")[2]
    assert command, told.causes[0].do
    return shlex.split(command)
