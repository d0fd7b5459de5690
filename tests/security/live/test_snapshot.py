"""A tenant who may write TrainJobs and ConfigMaps runs the runtimes that there are, and none of its own making.

The prize is a template that Kueue never counted: it sizes a job by the runtime, and the job runs by its snapshot.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab import trainplane
from tests.integration.operator.test_operator import conditions, runtime, train_job, until
from tests.security.live.tenancy import controlled_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.security.live.tenancy import Tenancy

Tree = dict[str, Any]

IMAGE, EVIL = "example.com/curated:1", "example.com/evil:1"
WHO, PRIZE = "a tenant who may write ConfigMaps", "pods of its own making, which no quota was charged for"


@pytest.fixture
def curated(tenancy: Tenancy) -> Iterator[str]:
    """Return the name of a runtime that the administrator made for this test."""
    name = f"curated-{tenancy.namespace}"
    tenancy.cluster.apply(runtime(name, IMAGE))
    yield name
    tenancy.cluster.kubectl("delete", "clustertrainingruntime", name, "--wait=false")


def evil(name: str) -> str:
    """Return the text of a runtime of that name as an attacker would have it: larger, and with the node's files."""
    tree = runtime(name, EVIL)
    pod = tree["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    pod["volumes"] = [{"name": "node", "hostPath": {"path": "/"}}]
    text: str = yaml.safe_dump(tree)
    return text


def planted(job: Tree, text: str) -> Tree:
    """Return a ConfigMap that says that it is a TrainJob's snapshot."""
    meta = {"name": f"{job['metadata']['name']}-runtime-snapshot", "ownerReferences": [controlled_by(job)]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"runtime": text}}


def swap(tenancy: Tenancy, job: Tree, text: str) -> None:
    """Put another text in the place of a TrainJob's snapshot."""
    forged = planted(job, text)
    tenancy.kubectl("delete", "configmap", forged["metadata"]["name"])
    tenancy.create(forged)


def queue(tenancy: Tenancy, runtime_name: str) -> Tree:
    """Create a TrainJob that waits, and return it once the operator has seen to it."""
    tenancy.create(train_job(tenancy.namespace, "job", runtime_name=runtime_name, suspend=True))
    tenancy.wait("jobset", "job")
    until(lambda: "Suspended" in conditions(tenancy.cluster, tenancy.namespace, "job"), "Suspended")
    return tenancy.wait("trainjob", "job")


def restart(cluster: Cluster) -> None:
    """Let the operator forget what it knows."""
    cluster.kill(trainplane.ENGINE)
    cluster.revive(trainplane.ENGINE)
    trainplane.wait_ready(cluster)


def runs(tenancy: Tenancy) -> Tree:
    """Return the pods' spec of the job once it runs."""

    def resumed() -> Tree | None:
        jobset = tenancy.find("jobset", "job")
        return jobset if jobset is not None and not jobset["spec"].get("suspend") else None

    jobset = until(resumed, "a JobSet that runs")
    pod: Tree = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pod


def check_curated(pod: Tree) -> None:
    assert [one["image"] for one in pod["containers"]] == [IMAGE]
    assert pod["containers"][0]["resources"] == {"requests": {"cpu": "500m"}}
    assert "volumes" not in pod


@pytest.mark.attack(WHO, PRIZE)
def test_a_snapshot_planted_before_the_operators(tenancy: Tenancy, curated: str) -> None:
    name = "job-runtime-snapshot"
    tenancy.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"runtime": "x"}})
    job = tenancy.create(train_job(tenancy.namespace, "job", runtime_name=curated))
    tenancy.told("job", "not controlled by this TrainJob")  # so the operator waits, and the attacker knows the uid
    forged = planted(job, evil(curated))
    tenancy.patch("configmap", name, {"metadata": forged["metadata"], "data": forged["data"]})
    tenancy.told("job", "was not kept by this controller")
    assert tenancy.find("jobset", "job") is None
    tenancy.kubectl("delete", "configmap", name)
    check_curated(runs(tenancy))


@pytest.mark.attack(WHO, PRIZE)
@pytest.mark.parametrize("restarted", [False, True], ids=["the operator knows it", "the operator has restarted"])
def test_a_snapshot_swapped_while_the_job_waits(tenancy: Tenancy, curated: str, restarted: bool) -> None:
    job = queue(tenancy, curated)
    edited = tenancy.patch("configmap", "job-runtime-snapshot", {"data": {"runtime": evil(curated)}}, check=False)
    assert "immutable" in edited.output
    swap(tenancy, job, evil(curated))
    if restarted:
        restart(tenancy.cluster)
    tenancy.patch("trainjob", "job", {"spec": {"suspend": False}})
    check_curated(runs(tenancy))


@pytest.mark.attack(WHO, "the runtime of yesterday or one of its own, after the administrator has changed it")
def test_a_snapshot_swapped_while_the_runtime_changes(tenancy: Tenancy, curated: str) -> None:
    job = queue(tenancy, curated)
    swap(tenancy, job, evil(curated))
    tenancy.cluster.apply(runtime(curated, "example.com/curated:2"))
    restart(tenancy.cluster)
    tenancy.patch("trainjob", "job", {"spec": {"suspend": False}})
    until(lambda: "Failed" in conditions(tenancy.cluster, tenancy.namespace, "job"), "Failed")
    assert conditions(tenancy.cluster, tenancy.namespace, "job")["Failed"] == ("True", "RuntimeSnapshotChanged")
    until(lambda: tenancy.find("jobset", "job") is None, "no JobSet")
    told = tenancy.told("job", "RuntimeSnapshotChanged")
    assert "job-runtime-snapshot" in told
    assert "create it anew" in told


@pytest.mark.attack(WHO, "a digest of its own, so that a snapshot of its own fits it")
def test_a_digest_forged_with_the_snapshot(tenancy: Tenancy, curated: str) -> None:
    forged = {"runtimeDigest": "sha256:" + "0" * 64}
    suspended = train_job(tenancy.namespace, "job", runtime_name=curated, suspend=True)
    tenancy.create({**suspended, "status": forged})
    tenancy.wait("jobset", "job")
    until(lambda: "Suspended" in conditions(tenancy.cluster, tenancy.namespace, "job"), "Suspended")
    job = tenancy.wait("trainjob", "job")
    kept = job["status"].get("runtimeDigest")
    assert kept != forged["runtimeDigest"]
    refused = tenancy.patch("trainjob", "job", {"status": forged}, "--subresource=status", check=False)
    assert "forbidden" in refused.output.lower()
    tenancy.patch("trainjob", "job", {"status": forged, "metadata": {"labels": {"touched": "yes"}}})
    swap(tenancy, job, evil(curated))
    restart(tenancy.cluster)
    tenancy.patch("trainjob", "job", {"spec": {"suspend": False}})
    check_curated(runs(tenancy))
    assert tenancy.wait("trainjob", "job")["status"].get("runtimeDigest") == kept


@pytest.mark.attack(WHO, "its own template, by leaving the operator without a snapshot and giving it one later")
def test_a_snapshot_taken_away_and_planted_again(tenancy: Tenancy, curated: str) -> None:
    job = queue(tenancy, curated)
    tenancy.kubectl("delete", "configmap", "job-runtime-snapshot")
    tenancy.patch("trainjob", "job", {"metadata": {"annotations": {"touched": "yes"}}})
    tenancy.kubectl("delete", "configmap", "job-runtime-snapshot", "--ignore-not-found")
    tenancy.create(planted(job, evil(curated)))
    restart(tenancy.cluster)
    tenancy.patch("trainjob", "job", {"spec": {"suspend": False}})
    check_curated(runs(tenancy))


def test_what_it_costs_an_honest_tenant_is_nothing(tenancy: Tenancy, curated: str) -> None:
    queue(tenancy, curated)
    tenancy.cluster.apply(runtime(curated, "example.com/curated:2"))
    restart(tenancy.cluster)
    tenancy.patch("trainjob", "job", {"spec": {"suspend": False}})
    check_curated(runs(tenancy))  # the runtime that it began with, from its snapshot
    snapshot = tenancy.wait("configmap", "job-runtime-snapshot")
    assert json.dumps(IMAGE) in json.dumps(yaml.safe_load(snapshot["data"]["runtime"]))
