"""The shared node cluster, and a user of two namespaces who sees no more than a user does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lab import accounts, profiles, reference
from tests import shared
from tests.explain.failures import NAMESPACE, STRICT, surroundings
from tests.sdk.kubernetes.stage import Stage
from tests.sdk.local.documents import write_runtimes
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.types.backends import LocalProcessBackendConfig, TrainingRuntimeSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from lab.cluster import Cluster
    from trainplane.client.backends.local.backend import LocalBackend

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
    with shared.node_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def reference_cluster() -> Iterator[Cluster]:
    """Return the same with the reference's controller in place of ours."""
    with profiles.node_with(reference.install, "explain-reference", **shared.KUBELET) as cluster:
        yield cluster


@pytest.fixture
async def stages(cluster: Cluster) -> AsyncIterator[dict[str, Stage]]:
    """Return the user's view of both namespaces."""
    async with _staged(cluster) as found:
        yield found


@pytest.fixture
async def reference_stages(reference_cluster: Cluster) -> AsyncIterator[dict[str, Stage]]:
    """Return the same where the reference is."""
    async with _staged(reference_cluster) as found:
        yield found


@pytest.fixture
def backend(tmp_path: Path) -> LocalBackend:
    """Return a backend of local processes, with runtimes and a state of its own."""
    sources = TrainingRuntimeSource([str(write_runtimes(tmp_path / "runtimes"))])
    return ProcessBackend(LocalProcessBackendConfig(runtime_source=sources, state=tmp_path / "state"))


@asynccontextmanager
async def _staged(cluster: Cluster) -> AsyncIterator[dict[str, Stage]]:
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
