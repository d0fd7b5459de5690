"""A cluster under Kueue that is attacked from within: two flavors, and a tenant who may write TrainJobs and no more."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lab.errors import LabError
from lab.kwok import TAINT
from tests.fleet import objects
from tests.fleet.one_cluster import runtimes, stage
from tests.fleet.one_cluster.team import Team

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

CHEAP, PREMIUM = "cheap", "premium"
"""Flavors: nodes of the pool `plain`, and nodes of the pool `spot`, which are tainted."""
TENANT = "tenant"
_JOB = "template.spec.replicatedJobs[*].template"
_POD = f"{_JOB}.spec.template"
ALLOWED = [
    f"{_JOB}.metadata.labels",
    f"{_POD}.metadata",
    f"{_POD}.spec.nodeSelector",
    f"{_POD}.spec.tolerations",
    f"{_POD}.spec.containers[*].env",
]
"""What the operator lets runtimePatches set."""
_RULES = (
    ("trainer.kubeflow.org", ["trainjobs"], ["*"]),
    ("kueue.x-k8s.io", ["workloads", "localqueues"], ["get", "list", "watch"]),
    ("jobset.x-k8s.io", ["jobsets"], ["get", "list", "watch"]),
    ("", ["pods", "events"], ["get", "list", "watch"]),
)
"""What a tenant may do in its own namespace."""


@pytest.fixture(scope="session")
def queued_cluster() -> Iterator[Cluster]:
    """Return a cluster with Kueue, our operator, simulated nodes and the two flavors, shared by the run."""
    settings = {"admission": {"allowedRuntimePatches": ALLOWED}}
    cluster = stage.bring_up(f"attacked-{os.getpid()}", owned=True, settings=settings)
    try:
        toleration = {"key": TAINT["key"], "operator": "Equal", "value": TAINT["value"], "effect": TAINT["effect"]}
        cheap = objects.flavor(CHEAP, nodeLabels={stage.POOL: "plain"})
        premium = objects.flavor(PREMIUM, nodeLabels={stage.POOL: "spot"}, tolerations=[toleration])
        cluster.apply(*runtimes.SHARED, cheap, premium)
        _wait_judged(cluster)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def admin(queued_cluster: Cluster) -> Iterator[Team]:
    """Return the administrator of a namespace whose queue charges for `CHEAP` first, and is closed."""
    with queued_cluster.connection() as connection:
        team = Team(queued_cluster, connection, f"team-{uuid.uuid4().hex[:8]}")
        team.create(objects.namespace(team.namespace))
        queued_cluster.apply(*_grant(team.namespace))
        team.open_queue({"cpu": "4"}, flavors=(CHEAP, PREMIUM))
        team.patch("clusterqueues", team.namespace, {"spec": {"stopPolicy": "Hold"}})
        team.wait("the queue to be closed", lambda: not team.holds("clusterqueues", team.namespace, "Active"))
        yield team  # what it leaves behind goes with the cluster


@pytest.fixture
def tenant(admin: Team) -> Iterator[Team]:
    """Return the same namespace as its tenant sees it."""
    with admin.cluster.connection(user=TENANT) as connection:
        team = Team(admin.cluster, connection, admin.namespace)
        admin.wait("the tenant's rights", lambda: _is_granted(team))
        yield team


def _is_granted(tenant: Team) -> bool:
    """Tell whether the API server knows the tenant's rights: it reads roles a moment after they are written."""
    try:
        tenant.all("trainjobs")
    except LabError as error:
        if ": 403 " not in str(error):
            raise
        return False
    return True


def _wait_judged(cluster: Cluster) -> None:
    """Wait until the API server judges by our policy: it reads policies a moment after they are written."""
    name = f"probe-{uuid.uuid4().hex[:8]}"
    with cluster.connection() as connection, cluster.connection(user=TENANT) as theirs:
        team, tenant = Team(cluster, connection, name), Team(cluster, theirs, name)
        team.create(objects.namespace(name))
        cluster.apply(*_grant(name))
        job = team.submit("job", suspend=True, queue=None)
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
        (entry,) = job["spec"]["runtimePatches"]
        forged = {**job["spec"], "runtimePatches": [{**entry, "trainingRuntimeSpec": {"template": template}}]}

        def refused() -> bool:
            try:
                tenant.patch("trainjobs", "job", {"spec": forged}, subresource="?dryRun=All")
            except LabError as error:
                return "Kueue's to write" in str(error)
            return False

        team.wait("the policy to be in force", refused)


def _grant(namespace: str) -> tuple[dict[str, Any], ...]:
    meta = {"name": TENANT, "namespace": namespace}
    api = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [group], "resources": plurals, "verbs": verbs} for group, plurals, verbs in _RULES]
    role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": rules}
    subjects = [{"kind": "User", "name": TENANT, "apiGroup": api}]
    ref = {"kind": "Role", "name": TENANT, "apiGroup": api}
    binding = {**role, "kind": "RoleBinding", "roleRef": ref, "subjects": subjects}
    del binding["rules"]
    return role, binding
