"""One node with our operator, an S3 server that its pods reach, and a tenant who has rights in one namespace."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lab import accounts, node, profiles, trainplane
from lab.engines import binary
from tests.cli.tenant import wait_allowed
from tests.sdk.kubernetes.stage import Stage
from tests.unit.initializers.versity import KEY, SECRET, Store, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from lab.cluster import Cluster

PORT = 7070
TENANT = "tenant"
_RULES: list[dict[str, Any]] = [
    {
        "apiGroups": ["trainer.kubeflow.org"],
        "resources": ["trainjobs"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"],
    },
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainingruntimes"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
]
"""What a tenant may: nothing of Secrets or nodes, and nothing elsewhere."""


@dataclass
class Site:
    """A tenant's namespace, and what an admin put there."""

    stage: Stage
    store: Store
    """The S3 server as this machine reaches it; pods have one of their own on the same folder."""
    volumes: Path
    """Folders of claims."""

    def arrived(self, path: str) -> Path:
        """Return where something lies that was sent to the bucket."""
        return self.store.root / "bucket" / self.stage.namespace / path

    def uri(self, path: str) -> str:
        """Return what a TrainJob writes to send there."""
        return f"s3://bucket/{self.stage.namespace}/{path}"

    def claim(self, name: str) -> Path:
        """Make a claim and its volume; return the folder behind it."""
        folder = self.volumes / self.stage.namespace / name
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        spec = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}}
        reference = {"namespace": self.stage.namespace, "name": name}
        self.stage.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"{self.stage.namespace}-{name}"},
                "spec": {**spec, "claimRef": reference},
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": reference,
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "",
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeName": f"{self.stage.namespace}-{name}",
                },
            },
        )
        return folder

    def secret(self, name: str, **values: str) -> None:
        """Make a Secret with what a sender needs."""
        keys = {"ENDPOINT": f"http://{self.stage.cluster.address}:{PORT}", "REGION": "us-east-1", **values}
        meta = {"name": name, "namespace": self.stage.namespace}
        self.stage.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": keys})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with serving(tmp_path_factory.mktemp("versitygw")) as served:
        yield served


@pytest.fixture(scope="module")
def cluster(store: Store) -> Iterator[Cluster]:
    def install(cluster: Cluster) -> None:
        image = node.give(cluster, "initializers")
        trainplane.install(cluster, settings={"output": {"image": image}})
        command = [binary("versitygw"), "--port", f"0.0.0.0:{PORT}", "--quiet", "posix", str(store.root)]
        cluster.start("versitygw", list(map(str, command)), {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET})

    with profiles.node_with(install, "outputs") as made:
        yield made


@pytest.fixture
async def site(cluster: Cluster, store: Store, tmp_path: Path) -> AsyncIterator[Site]:
    namespace = f"outputs-{uuid.uuid4().hex[:8]}"
    account = f"{TENANT}-{namespace}"
    cluster.kubectl("create", "namespace", namespace)
    cluster.kubectl("create", "serviceaccount", account, f"--namespace={namespace}")
    api, meta = "rbac.authorization.k8s.io", {"name": TENANT, "namespace": namespace}
    cluster.apply(
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": _RULES},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": TENANT},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    )
    wait_allowed(cluster, f"system:serviceaccount:{namespace}:{account}", "create", "trainjobs", namespace)
    async with Stage(cluster, namespace, accounts.kubeconfig(cluster, namespace, account)) as stage:
        site = Site(stage, store, cluster.folder / "volumes")
        site.secret("store", ACCESS_KEY_ID=KEY, SECRET_ACCESS_KEY=SECRET, SETTLE_SECONDS="1")
        yield site
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
