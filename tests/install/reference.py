"""The reference as its users install it: by its own manifests or its own chart, and pods of an image under its name.

The image is made here from the engine that the lab built; everything else is the reference's.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import yaml

from lab import node
from lab.engines import binary, manifests
from lab.helm import helm
from lab.images import single

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

NAMESPACE = "kubeflow-system"
RELEASE = "kubeflow-trainer"
MANAGER = "kubeflow-trainer-controller-manager"
OVERLAY = '"https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0"'
"""Where its overlay is for who has a network."""
CHART = "oci://ghcr.io/kubeflow/charts/kubeflow-trainer --version 2.3.0"
"""And its chart."""
IMAGE = "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0"
_JOBSET = "../../third-party/jobset"


def install_by_manifests(cluster: Cluster) -> Path:
    """Install it with its runtimes and wait until it is ready; return the folder of its overlay.

    JobSet is taken out of that: it is there already.
    """
    folder = _manifests(cluster)
    overlay = folder / "overlays/manager"
    path = overlay / "kustomization.yaml"
    tree = yaml.safe_load(path.read_text())
    tree["resources"].remove(_JOBSET)
    path.write_text(yaml.safe_dump(tree))
    (image,) = tree["images"]
    assert f"{image['name']}:{image['newTag']}" == IMAGE
    _load_image(cluster)
    cluster.kubectl("apply", "--server-side", "-k", str(overlay))
    cluster.kubectl("rollout", "status", f"deployment/{MANAGER}", "-n", NAMESPACE, "--timeout=120s")
    cluster.kubectl("apply", "--server-side", "-k", str(folder / "overlays/runtimes"))
    return overlay


def install_by_chart(cluster: Cluster) -> Path:
    """Install it by Helm and wait until it is ready; return the folder of its chart.

    The charts of JobSet, which is there already, and of LeaderWorkerSet are taken out of it. Its runtimes come by
    kubectl: the chart's own way is a Job that fetches kubectl from the network.
    """
    folder = cluster.folder / "reference-chart"
    shutil.copytree(manifests("trainer") / "charts/kubeflow-trainer", folder)
    path = folder / "Chart.yaml"
    tree = yaml.safe_load(path.read_text())
    assert {one["name"] for one in tree.pop("dependencies")} == {"jobset", "lws"}
    path.write_text(yaml.safe_dump(tree))
    _load_image(cluster)
    options = (f"--namespace={NAMESPACE}", "--create-namespace", "--set=jobset.install=false")
    helm(cluster, "install", RELEASE, str(folder), *options, "--wait", "--timeout=120s")
    cluster.kubectl("apply", "--server-side", "-k", str(_manifests(cluster) / "overlays/runtimes"))
    return folder


def _manifests(cluster: Cluster) -> Path:
    """Copy its manifests to where they may be changed."""
    folder = cluster.folder / "reference-manifests"
    shutil.copytree(manifests("trainer") / "manifests", folder)
    return folder


def _load_image(cluster: Cluster) -> None:
    archive = cluster.folder / "reference.tar"
    single.write(archive, IMAGE, binary("trainer-controller-manager"))
    node.load(cluster, archive, IMAGE)
