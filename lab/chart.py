"""Our release by Helm: the chart of this checkout and the image that `make image` built, on a cluster with a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.helm import helm
from lab.images import trainplane
from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from lab.cluster import Cluster

FOLDER: Final = REPOSITORY / "charts/trainplane"
RELEASE: Final = "trainplane"
NAMESPACE: Final = "trainplane-system"
_RESTRICTED: Final = {"pod-security.kubernetes.io/enforce": "restricted"}


def image_values() -> tuple[str, ...]:
    """Return Helm's options for the lab's image: no registry answers there, so it must not be pulled."""
    registry, _, rest = trainplane.name("operator").partition("/")
    repository, _, tag = rest.partition(":")
    values = {"registry": registry, "repository": repository, "tag": tag, "pullPolicy": "Never"}
    return "--set-string", ",".join(f"image.{name}={value}" for name, value in values.items())


def make_namespace(cluster: Cluster, namespace: str = NAMESPACE) -> None:
    """Make the release's namespace, whose pods are held to Pod Security's `restricted`."""
    metadata = {"name": namespace, "labels": _RESTRICTED}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def offer_volume(cluster: Cluster) -> None:
    """Offer a volume for the hub's claim: the lab has no StorageClass that would make one."""
    folder = cluster.folder / "hub-volume"
    folder.mkdir()
    folder.chmod(0o777)
    size, path = {"storage": "10Gi"}, {"path": str(folder)}
    spec = {"capacity": size, "accessModes": ["ReadWriteOnce"], "hostPath": path}
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "hub"}, "spec": spec})


def install(cluster: Cluster, *values: str, namespace: str = NAMESPACE) -> None:
    """Install the release and wait until its pods are ready."""
    options = (*image_values(), *values, f"--namespace={namespace}", "--wait", "--timeout=120s")
    helm(cluster, "install", RELEASE, str(FOLDER), *options)
