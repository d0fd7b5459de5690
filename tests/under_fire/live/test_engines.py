"""What engines decide: leadership beside a slow webhook of somebody else's, and an etcd set back to a backup."""

from __future__ import annotations

import base64
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab import backup, trainplane
from tests.integration.operator.test_operator import find, train_job, until

if TYPE_CHECKING:
    from lab.cluster import Cluster

SLOW_PORT = 9555
SLOW_SECONDS = 5
JOBS = 48


def _slow_webhook(cluster: Cluster) -> dict[str, Any]:
    rule = {
        "apiGroups": ["jobset.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["jobsets"],
    }
    webhook = {
        "name": "slow.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{SLOW_PORT}/", "caBundle": _bundle(cluster)},
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 10,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "slow"},
        "webhooks": [webhook],
    }


def _bundle(cluster: Cluster) -> str:

    return base64.b64encode(cluster.authority.read_bytes()).decode()


def _lease(cluster: Cluster) -> dict[str, Any]:
    spec: dict[str, Any] = cluster.get("lease", "-n", trainplane.NAMESPACE, "trainer.kubeflow.org")["spec"]
    return spec


def _held(cluster: Cluster) -> dict[str, Any] | None:
    """Return the Lease once somebody holds it: a replica is ready before it leads."""
    spec: dict[str, Any] = (find(cluster, trainplane.NAMESPACE, "lease", "trainer.kubeflow.org") or {}).get("spec", {})
    return spec if spec.get("holderIdentity") else None


@pytest.mark.finding("runtime", 1, "renewals and reads of reviews waited behind reconciles")
def test_a_slow_foreign_webhook_costs_no_leadership(hurt: Cluster, place: str) -> None:
    pair = hurt.webhook_pair
    script = Path(__file__).with_name("slow_webhook.py")
    hurt.start("slow", [sys.executable, str(script), str(SLOW_PORT), *map(str, (pair.certificate, pair.key)), "5"])
    process = hurt.engines()[trainplane.ENGINE].process
    before = until(lambda: _held(hurt), "a leader")
    hurt.apply(_slow_webhook(hurt))
    try:
        hurt.apply(*(train_job(place, f"job-{number}") for number in range(JOBS)))
        end = time.monotonic() + 2 * SLOW_SECONDS
        while time.monotonic() < end:  # longer than the deadline of 4 s, with writes waiting all the time
            hurt.kubectl("create", "-f", "-", "--dry-run=server", stdin=_yaml(train_job(place, "asked")))
            assert process.alive()
        after = _lease(hurt)
        assert after["holderIdentity"] == before["holderIdentity"]
        assert after["leaseTransitions"] == before["leaseTransitions"]
        assert after["renewTime"] > before["renewTime"]
    finally:
        hurt.kubectl("delete", "validatingwebhookconfiguration", "slow")
        hurt.kill("slow")
    until(lambda: len(hurt.get("jobsets", "-n", place)["items"]) == JOBS, "all JobSets")


@pytest.mark.finding("runtime", 8, "a restored etcd was never noticed")
def test_an_etcd_set_back_to_a_backup_is_noticed(hurt: Cluster, place: str) -> None:
    kept = hurt.folder / "backup.db"
    hurt.kill(trainplane.ENGINE)  # without election, or it would end by losing its Lease while there is no API server
    trainplane.install(hurt, with_crds=False, with_webhooks=False, settings={"leaderElection": {"leaderElect": False}})
    hurt.apply(train_job(place, "kept"))
    until(lambda: find(hurt, place, "jobset", "kept"), "the JobSet of the job before the backup")
    backup.save(hurt, kept)
    operator = hurt.engines()[trainplane.ENGINE].process
    hurt.apply(train_job(place, "lost"))
    until(lambda: find(hurt, place, "jobset", "lost"), "the JobSet of the job after the backup")
    with hurt.connection() as connection:  # so many versions that the restored server does not catch up with them soon
        for number in range(400):
            body = f'{{"metadata": {{"name": "filler-{number}"}}}}'
            connection.send("POST", f"/api/v1/namespaces/{place}/configmaps", body)
    backup.restore(hurt, kept)
    assert find(hurt, place, "trainjob", "lost") is None, "the backup does not have it"
    hurt.apply(train_job(place, "after"))
    until(lambda: find(hurt, place, "jobset", "after"), "the JobSet of a job made after the restore", 150)
    assert operator.alive(), "noticed by itself, not by a restart"


def _yaml(document: dict[str, Any]) -> str:

    return yaml.safe_dump(document)
