"""What the hub asks for before it sends a TrainJob, and whom it may send it to."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from lab import kueue
from lab.fleet import CHECK
from tests.fleet.objects import HELD, KUEUE, QUEUE, QUEUE_LABEL
from tests.fleet.team import true_condition, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.fleet import Fleet
    from tests.fleet.api import Api, Tree
    from tests.fleet.team import MakeTeam, Team

MANUAL = "manual"


@pytest.mark.scenario(50, "A check besides MultiKueue's gates the dispatch")
@pytest.mark.scenario("27-29", "managedBy decides whether MultiKueue takes a TrainJob")
@pytest.mark.scenario(45, "A TrainJob whose managedBy is not multikueue: check Rejected, never dispatched, never run")
@pytest.mark.scenario(52, "A worker that is added to the MultiKueueConfig gets the job that waits")
def test_what_the_hub_asks_for_before_it_dispatches(team: MakeTeam, checks: Team) -> None:
    gated, usual = team(checks=(CHECK, MANUAL)), team()
    narrow = team(checks=("narrow",), quotas={"worker1": {"cpu": "0"}})
    gated.submit("gated", runtime=HELD)
    narrow.submit("narrow", runtime=HELD)
    # No queue at first, so nobody says that it is MultiKueue's; the field cannot change later.
    stray = usual.submit("stray", queue=None, suspend=True)
    assert stray["spec"]["managedBy"] == "trainer.kubeflow.org/trainjob-controller"
    label = {"metadata": {"labels": {QUEUE_LABEL: QUEUE}}}
    usual.api().patch("trainjobs", usual.namespace, "stray", label)
    usual.wait("stray to be rejected", lambda: _is_rejected(usual.check("stray"), "spec.managedBy"))
    usual.wait("stray to be deactivated", lambda: (usual.workload("stray") or {})["spec"].get("active") is False)
    narrow.wait("narrow's copy on worker1", lambda: narrow.workload("narrow", on="worker1"))
    assert narrow.workload("narrow", on="worker2") is None
    gated.wait("gated's quota", lambda: true_condition(gated.workload("gated"), "QuotaReserved"))
    gated.wait("gated's checks", lambda: gated.check("gated", MANUAL) and gated.check("gated"))
    # One that was submitted later has run and gone: the gated one had its turn.
    usual.submit("usual")
    usual.wait_done("usual")
    for worker in usual.workers:
        assert gated.workload("gated", on=worker) is None
        assert usual.job("stray", on=worker) is None
    assert (usual.job("stray") or {})["spec"]["suspend"] is True

    narrow.api().apply(_config("narrow", "worker1", "worker2"))
    _answer(gated, "gated")
    narrow.end("narrow", on=narrow.wait_running("narrow", on="worker2"))
    gated.end("gated", on=gated.wait_running("gated"))
    narrow.wait_done("narrow")
    gated.wait_done("gated")


@pytest.mark.scenario(56, "Kubeconfigs that are insecure or broken are refused, a good one connects")
def test_insecure_kubeconfigs_are_refused(fleet: Fleet, team: MakeTeam) -> None:
    api = team().api()
    good = yaml.safe_load(fleet.workers[0].remote_kubeconfig())
    insecure = yaml.safe_load(fleet.workers[0].remote_kubeconfig())
    del insecure["clusters"][0]["cluster"]["certificate-authority-data"]
    insecure["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    texts = {"insecure": yaml.safe_dump(insecure), "broken": "no kubeconfig", "good": yaml.safe_dump(good)}
    reasons = {"insecure": "InsecureKubeConfig", "broken": "InsecureKubeConfig", "good": "Active"}
    reasons["absent"] = "BadKubeConfig"  # a MultiKueueCluster whose Secret is not there
    try:
        for name in reasons:
            secret, cluster = _worker(f"test-{name}", texts.get(name, ""))
            api.apply(*((secret,) if name in texts else ()), cluster)
        for name, reason in reasons.items():
            wait_until(f"{name} to be {reason}", partial(_has_reason, api, f"test-{name}", reason))
    finally:
        for name in reasons:
            api.delete("multikueueclusters", "", f"test-{name}")
            api.delete("secrets", kueue.NAMESPACE, f"test-{name}")


@pytest.fixture
def checks(team: MakeTeam) -> Iterator[Team]:
    """Make two admission checks: one that the test answers, and MultiKueue's with worker1 alone."""
    us = team()
    api = us.api()
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "narrow"}
    api.apply(
        _config("narrow", "worker1"),
        _check("narrow", {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}),
        _check(MANUAL, {"controllerName": "test.trainplane.dev/manual"}),
    )
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "the test answers"}
    status = {"status": {"conditions": [active | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    api.patch("admissionchecks", "", MANUAL, status, part="status")
    yield us
    for plural, name in (("admissionchecks", MANUAL), ("admissionchecks", "narrow"), ("multikueueconfigs", "narrow")):
        api.delete(plural, "", name)


def _is_rejected(state: Tree, why: str) -> bool:
    """Return whether a check is Rejected for a reason; Kueue resets both, and sets them again, while it evicts."""
    return state.get("state") == "Rejected" and why in state["message"]


def _answer(us: Team, name: str) -> None:
    """Let the manual check be Ready, as its controller would."""
    workload = us.workload(name)
    assert workload is not None
    states = [
        state | ({"state": "Ready", "message": "said the test"} if state["name"] == MANUAL else {})
        for state in workload["status"]["admissionChecks"]
    ]
    patch = {"status": {"admissionChecks": states}}
    us.api().patch("workloads", us.namespace, workload["metadata"]["name"], patch, part="status")


def _config(name: str, *clusters: str) -> Tree:
    spec = {"clusters": list(clusters)}
    return {"apiVersion": KUEUE, "kind": "MultiKueueConfig", "metadata": {"name": name}, "spec": spec}


def _check(name: str, spec: Tree) -> Tree:
    return {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": spec}


def _worker(name: str, kubeconfig: str) -> tuple[Tree, Tree]:
    data = {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}
    source = {"kubeConfig": {"locationType": "Secret", "location": name}}
    meta = {"name": name, "namespace": kueue.NAMESPACE}
    cluster = {"apiVersion": KUEUE, "kind": "MultiKueueCluster", "metadata": {"name": name}}
    return (
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data},
        cluster | {"spec": {"clusterSource": source}},
    )


def _has_reason(api: Api, name: str, reason: str) -> bool:
    cluster = api.get("multikueueclusters", "", name) or {}
    conditions = (cluster.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Active" and one["reason"] == reason for one in conditions)
