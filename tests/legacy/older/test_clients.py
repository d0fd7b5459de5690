"""Clients other than kubectl keep to the shape that they know: the official SDK, RBAC, OpenAPI, Kueue."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from lab import kueue, profiles, trainplane
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.cli.tenant import wait_allowed
from tests.legacy.older.user import Teammate
from tests.legacy.older.world import KINDS, OLDER, TODAY, TODAYS_RUNTIME, rights, runtime, train_job
from tests.sdk.official.sdk import PYTHON, Sdk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

pytestmark = pytest.mark.full

Tree = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
ANN = "ann"
QUEUE = "narrow"


# -- the official SDK -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not PYTHON.exists(), reason="the official SDK is not installed: make build/official-sdk/stamp")
def test_the_official_sdk_sees_todays_jobs_and_those_that_older_ones_became(user: Teammate) -> None:
    user.apply(train_job(TODAY, "ours"), train_job(OLDER, "older"), runtime(OLDER, f"{user.namespace}-older"))
    user.wait_sync("older")
    user.wait_sync(f"{user.namespace}-older", kind="v2alpha1clustertrainingruntimes")
    with Sdk(user.cluster.kubeconfig, user.namespace) as sdk:
        assert sorted(sdk.run("[job.name for job in client.list_jobs()]")) == ["older", "ours"]
        assert sdk.run("client.get_job('older').runtime.name") == "today"
        listed = sdk.run("[one.name for one in client.list_runtimes()]")
        assert {"today", f"v2alpha1-runtime.{user.namespace}-older"} <= set(listed)
        outcome = sdk.outcome("client.get_job('ours').name")
        assert outcome.value == "ours"
        assert all("/apis/kubeflow.org/" not in one for one in outcome.requests)
        sdk.run("client.delete_job('ours')")
    user.wait("ours to go", lambda: user.names("trainjobs") == ["older"])
    assert user.names("v2alpha1trainjobs") == ["older"]


# -- RBAC -------------------------------------------------------------------------------------------------------------


def _allow(user: Teammate, group: str, resource: str) -> None:
    meta = {"name": ANN, "namespace": user.namespace}
    rule = {"apiGroups": [group], "resources": [resource], "verbs": ["*"]}
    ref = {"apiGroup": RBAC, "kind": "Role", "name": ANN}
    subject = {"apiGroup": RBAC, "kind": "User", "name": ANN}
    user.apply(
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": meta, "roleRef": ref, "subjects": [subject]},
    )


@pytest.mark.parametrize(
    ("group", "resource", "other"),
    [
        ("trainer.kubeflow.org", "trainjobs", "v2alpha1trainjobs"),
        ("kubeflow.org", "v2alpha1trainjobs", "trainjobs"),
        ("*", "trainjobs", "v2alpha1trainjobs"),
    ],
)
def test_a_role_for_one_shape_gives_nothing_on_the_other(user: Teammate, group: str, resource: str, other: str) -> None:
    _allow(user, group, resource)
    wait_allowed(user.cluster, ANN, "list", resource, user.namespace)
    assert user.kubectl("get", resource, f"--as={ANN}", check=False).code == 0
    refused = user.kubectl("get", other, f"--as={ANN}", check=False)
    assert "Forbidden" in refused.stderr
    assert f'cannot list resource "{other}"' in refused.stderr


def test_a_tenant_cannot_write_a_status_by_the_object_itself(user: Teammate) -> None:
    user.apply(train_job(OLDER, "older") | {"status": {"state": "SUCCESS"}})
    user.wait_sync("older")
    assert "state" not in user.older("older")["status"]


# -- OpenAPI and discovery --------------------------------------------------------------------------------------------


def _kinds(cluster: Cluster, path: str) -> set[tuple[str, str, str]]:
    with cluster.connection() as connection:
        document: Tree = json.loads(connection.send("GET", path))
    schemas = document.get("definitions") or document["components"]["schemas"]
    return {
        (one["group"], one["version"], one["kind"])
        for schema in schemas.values()
        for one in schema.get("x-kubernetes-group-version-kind", [])
    }


def test_openapi_has_both_shapes_each_under_its_group(cluster: Cluster) -> None:
    ours, older = (("trainer.kubeflow.org", "v1alpha1", "TrainJob"), ("kubeflow.org", "v2alpha1", "TrainJob"))
    assert {ours, older} <= _kinds(cluster, "/openapi/v2")
    for group, version, kind in (ours, older):
        found = _kinds(cluster, f"/openapi/v3/apis/{group}/{version}")
        assert {one for one in found if one[2] == kind} == {(group, version, kind)}


def test_discovery_prefers_neither_for_the_other(cluster: Cluster) -> None:
    with cluster.connection() as connection:
        groups = json.loads(connection.send("GET", "/apis"))["groups"]
        listed = json.loads(connection.send("GET", f"/apis/{OLDER}"))["resources"]
    preferred = {one["name"]: one["preferredVersion"]["version"] for one in groups}
    assert (preferred["trainer.kubeflow.org"], preferred["kubeflow.org"]) == ("v1alpha1", "v1")
    names = {part for one in listed for part in (one["name"], one["singularName"], *one.get("shortNames", ()))}
    assert names.isdisjoint({"trainjobs", "trainjob", "trainingruntimes", "trainingruntime", "clustertrainingruntimes"})


# -- Kueue ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def queuing() -> Iterator[Teammate]:
    """Return a user whose queue has room for one node, where the operator serves this shape with its rights alone."""
    (cluster,) = profiles.up("control", f"older-{os.getpid()}", owned=True)
    try:
        crds = [f"kubeflow.org_{plural}.yaml" for plural in KINDS]
        cluster.apply(*documents(*(REPOSITORY / "manifests/crds-legacy" / name for name in crds)))
        cluster.wait_established(*(f"{plural}.kubeflow.org" for plural in KINDS))
        cluster.apply(*rights())
        trainplane.install(cluster, settings={"legacy": {"kinds": list(KINDS)}})
        kueue.install(cluster, frameworks=("batch/job", "trainer.kubeflow.org/trainjob"))
        cluster.apply(TODAYS_RUNTIME, *kueue.queue(QUEUE, "default", cpu="1", memory="1Gi"))
        yield Teammate(cluster, "default")
    finally:
        cluster.down()


def test_kueue_queues_and_admits_what_an_older_job_became(queuing: Teammate) -> None:
    user = queuing
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    for name in ("first", "second"):
        job = train_job(OLDER, name, trainer={"resourcesPerNode": resources})
        job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
        user.apply(job)
        user.wait_sync(name)
        if name == "first":
            user.wait("first to be admitted", lambda: not user.today("first")["spec"].get("suspend"))
    assert user.today("second")["spec"]["suspend"] is True
    owners = [
        one["metadata"]["ownerReferences"][0] for one in user.cluster.get(f"-n{user.namespace}", "workloads")["items"]
    ]
    assert {(one["apiVersion"], one["kind"]) for one in owners} == {(TODAY, "TrainJob")}
    user.play("first", "node", "run")
    user.wait_older("first", "RUNNING")
    user.kubectl("label", "v2alpha1trainjobs", "first", "touched=yes")
    user.wait("the label to be handed on", lambda: "touched" in user.today("first")["metadata"].get("labels", {}))
    assert not user.today("first")["spec"].get("suspend")
    user.play("first", "node", "succeed")
    user.wait_older("first", "SUCCESS")
    user.wait("second to be admitted", lambda: not user.today("second")["spec"].get("suspend"))
