"""One cluster with a real node and our operator, and a user of two namespaces who sees no more than a user does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from lab import accounts, profiles, trainplane
from tests.explain.failures import NAMESPACE, STRICT, surroundings
from tests.sdk.kubernetes.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.cluster import Cluster

USER = "practitioner"
READS = [
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs", "trainingruntimes"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]},
    {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": ["get", "list"]},
]
"""What a user may: nothing of nodes."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    (cluster,) = profiles.up("node", f"explain-{os.getpid()}", owned=True)
    try:
        trainplane.install(cluster)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
async def stages(cluster: Cluster) -> AsyncIterator[dict[str, Stage]]:
    """Return the user's view of both namespaces."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    found: dict[str, Stage] = {}
    for name, labels in ((NAMESPACE, {}), (STRICT, restricted)):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        cluster.apply(*_rights(name))
    cluster.apply(*surroundings(NAMESPACE))
    kubeconfig = accounts.kubeconfig(cluster, NAMESPACE, USER)
    for name in (NAMESPACE, STRICT):
        found[name] = Stage(cluster, name, kubeconfig)
    yield found
    for stage in found.values():
        await stage.client.close()


def _rights(namespace: str) -> list[dict[str, Any]]:
    meta = {"name": USER, "namespace": namespace}
    api = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": USER, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": READS},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": USER},
            "subjects": [subject],
        },
    ]
