"""A tenant who may write TrainJobs and ConfigMaps runs the runtimes that there are, and none of its own making.

The prize is a template that Kueue never counted: it sizes a job by the runtime, and the job runs by its snapshot.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab import trainplane
from tests.integration.operator.test_operator import conditions, runtime, train_job, until
from tests.security.live.tenancy import controlled_by, settle_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Cluster
    from tests.security.live.tenancy import Tenancy

    Resumed = dict[Callable[[Tenancy], None], Tenancy]

Tree = dict[str, Any]

IMAGE, EVIL = "example.com/curated:1", "example.com/evil:1"
WHO, PRIZE = "a tenant who may write ConfigMaps", "pods of its own making, which no quota was charged for"


def curated(tenancy: Tenancy, image: str = IMAGE) -> str:
    """Let the administrator make a runtime for a tenant, or change it, and return its name."""
    name = f"curated-{tenancy.namespace}"
    tenancy.cluster.apply(runtime(name, image))
    return name


def evil(name: str) -> str:
    """Return the text of a runtime of that name as an attacker would have it: on better nodes, and with their files.

    Where a JobSet waits already, JobSet itself lets only the nodes be others.
    """
    tree = runtime(name, EVIL)
    pod = tree["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    pod["volumes"] = [{"name": "node", "hostPath": {"path": "/"}}]
    pod["nodeSelector"] = {"pool": "premium"}
    pod["tolerations"] = [{"operator": "Exists"}]
    text: str = yaml.safe_dump(tree)
    return text


def planted(job: Tree, text: str) -> Tree:
    """Return a ConfigMap that says that it is a TrainJob's snapshot."""
    meta = {"name": f"{job['metadata']['name']}-runtime-snapshot", "ownerReferences": [controlled_by(job)]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"runtime": text}}


def swap(tenancy: Tenancy, job: Tree, text: str) -> None:
    """Put another text in the place of a TrainJob's snapshot.

    The operator puts its own back at once, and after each further deletion later: who keeps on comes first some time.
    """
    forged = planted(job, text)

    def is_first() -> bool:
        tenancy.kubectl("delete", "configmap", forged["metadata"]["name"], "--ignore-not-found")
        made = tenancy.kubectl("create", "-f", "-", stdin=json.dumps(forged), check=False)
        assert made.code == 0 or "already exists" in made.output, made.output
        return made.code == 0

    until(is_first, "a snapshot of the attacker's")


def queue(tenancy: Tenancy, **status: Any) -> Tree:
    """Create a TrainJob that waits, perhaps with a status, and return it once the operator has seen to it."""
    job = train_job(tenancy.namespace, "job", runtime_name=curated(tenancy), suspend=True)
    tenancy.create({**job, "status": status})
    tenancy.wait("jobset", "job")
    until(lambda: "Suspended" in conditions(tenancy.cluster, tenancy.namespace, "job"), "Suspended")
    return tenancy.wait("trainjob", "job")


def resume(tenancy: Tenancy) -> None:
    tenancy.patch("trainjob", "job", {"spec": {"suspend": False}})


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
    assert not {"nodeSelector", "tolerations"} & pod.keys()
    assert [one["name"] for one in pod["volumes"]] == ["kubeflow-trainer-token"], "what pods report with, and no other"


# -- while the operator runs ------------------------------------------------------------------------------------------


@pytest.mark.attack(WHO, PRIZE)
def test_a_snapshot_planted_before_the_operators(tenancy: Tenancy) -> None:
    name, runtime_name = "job-runtime-snapshot", curated(tenancy)
    tenancy.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"runtime": "x"}})
    job = tenancy.create(train_job(tenancy.namespace, "job", runtime_name=runtime_name))
    tenancy.told("job", name)  # so the operator waits, and the attacker knows the uid
    forged = planted(job, evil(runtime_name))
    tenancy.patch("configmap", name, {"metadata": forged["metadata"], "data": forged["data"]})
    tenancy.told("job", "was not kept by this controller")
    assert tenancy.find("jobset", "job") is None
    tenancy.kubectl("delete", "configmap", name)
    check_curated(runs(tenancy))


@pytest.mark.attack(WHO, PRIZE)
def test_a_snapshot_swapped_while_the_job_waits(tenancy: Tenancy) -> None:
    job = queue(tenancy)
    text = evil(curated(tenancy))
    tenancy.patch("configmap", "job-runtime-snapshot", {"data": {"runtime": text}}, check=False)
    swap(tenancy, job, text)
    resume(tenancy)
    check_curated(runs(tenancy))


@pytest.mark.attack(WHO, PRIZE)
def test_a_snapshot_edited_in_its_place(tenancy: Tenancy) -> None:
    queue(tenancy)
    change = {"immutable": False, "data": {"runtime": evil(curated(tenancy))}}
    assert "immutable" in tenancy.patch("configmap", "job-runtime-snapshot", change, check=False).output


# -- across a restart of the operator, which then knows nothing but what is written down ------------------------------


def swapped(tenancy: Tenancy) -> None:
    swap(tenancy, queue(tenancy), evil(curated(tenancy)))


def swapped_and_runtime_changed(tenancy: Tenancy) -> None:
    swapped(tenancy)
    curated(tenancy, "example.com/curated:2")


def digest_forged(tenancy: Tenancy) -> None:
    """Try to write the digest of an own text at creation, to the status, and with an edit; then swap the text."""
    text = evil(curated(tenancy))
    forged = {"runtimeDigest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"}
    job = queue(tenancy, **forged)
    refused = tenancy.patch("trainjob", "job", {"status": forged}, "--subresource=status", check=False)
    assert "forbidden" in refused.output.lower()
    tenancy.patch("trainjob", "job", {"status": forged, "metadata": {"labels": {"touched": "yes"}}})
    swap(tenancy, job, text)


def taken_away_and_planted(tenancy: Tenancy) -> None:
    job = queue(tenancy)
    tenancy.kubectl("delete", "configmap", "job-runtime-snapshot")
    tenancy.patch("trainjob", "job", {"metadata": {"annotations": {"touched": "yes"}}})
    swap(tenancy, job, evil(curated(tenancy)))


def honest(tenancy: Tenancy) -> None:
    """Wait, while the administrator changes the runtime."""
    queue(tenancy)
    curated(tenancy, "example.com/curated:2")


@pytest.fixture(scope="module")
def resumed(operated: Cluster) -> Resumed:
    """Return what each attacker has done before the operator was restarted, and its job resumed."""
    prepared: Resumed = {}
    for attack in (swapped, swapped_and_runtime_changed, digest_forged, taken_away_and_planted, honest):
        prepared[attack] = settle_in(operated)
        attack(prepared[attack])
    operated.kill(trainplane.ENGINE)
    operated.revive(trainplane.ENGINE)
    trainplane.wait_ready(operated)
    for tenancy in prepared.values():
        resume(tenancy)
    return prepared


@pytest.mark.attack(WHO, PRIZE)
def test_a_snapshot_swapped_before_a_restart(resumed: Resumed) -> None:
    check_curated(runs(resumed[swapped]))


@pytest.mark.attack(WHO, "a template of its own, after the administrator has changed the runtime")
def test_a_snapshot_swapped_while_the_runtime_changes(resumed: Resumed) -> None:
    tenancy = resumed[swapped_and_runtime_changed]
    until(lambda: "Failed" in conditions(tenancy.cluster, tenancy.namespace, "job"), "Failed")
    assert conditions(tenancy.cluster, tenancy.namespace, "job")["Failed"] == ("True", "RuntimeSnapshotChanged")
    until(lambda: tenancy.find("jobset", "job") is None, "no JobSet")
    told = tenancy.told("job", "RuntimeSnapshotChanged")
    assert "job-runtime-snapshot" in told
    assert "create it anew" in told


@pytest.mark.attack(WHO, "a digest of its own, so that a snapshot of its own fits it")
def test_a_digest_forged_with_the_snapshot(resumed: Resumed) -> None:
    check_curated(runs(resumed[digest_forged]))


@pytest.mark.attack(WHO, "a template of its own, by leaving the operator without a snapshot and giving it one later")
def test_a_snapshot_taken_away_and_planted_again(resumed: Resumed) -> None:
    check_curated(runs(resumed[taken_away_and_planted]))


def test_an_honest_job_goes_on_with_the_runtime_that_it_began_with(resumed: Resumed) -> None:
    check_curated(runs(resumed[honest]))
