"""The reference as its users install it: its own manifests, and pods of an image under its own name.

The image is made here from the engine that the lab built; everything else is the reference's.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from typing import TYPE_CHECKING

import yaml

from lab import node
from lab.engines import binary, manifests

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

NAMESPACE = "kubeflow-system"
MANAGER = "kubeflow-trainer-controller-manager"
ADDRESS = "https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0"
"""Where its overlay is for who has a network."""
_JOBSET = "../../third-party/jobset"
_USER = "65532:65532"


def install(cluster: Cluster) -> Path:
    """Install it with its runtimes and wait until it is ready; return the folder of its overlay.

    JobSet is taken out of that: it is there already.
    """
    folder = cluster.folder / "reference-manifests"
    shutil.copytree(manifests("trainer") / "manifests", folder)
    overlay = folder / "overlays/manager"
    path = overlay / "kustomization.yaml"
    tree = yaml.safe_load(path.read_text())
    tree["resources"].remove(_JOBSET)
    path.chmod(0o644)
    path.write_text(yaml.safe_dump(tree))
    (image,) = tree["images"]
    name = f"{image['name']}:{image['newTag']}"
    archive = cluster.folder / "reference.tar"
    _write_image(archive, name)
    node.load(cluster, archive, name)
    cluster.kubectl("apply", "--server-side", "-k", str(overlay))
    cluster.kubectl("rollout", "status", f"deployment/{MANAGER}", "-n", NAMESPACE, "--timeout=120s")
    cluster.kubectl("apply", "--server-side", "-k", str(folder / "overlays/runtimes"))
    return overlay


def _write_image(path: Path, name: str) -> None:
    """Write an image with the binary alone, for the user that its Deployment asks for: one that is not root."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        archive.add(binary("trainer-controller-manager"), arcname="manager")
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/manager"], "User": _USER},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {
        "manifest.json": json.dumps(manifest).encode(),
        "config.json": json.dumps(config).encode(),
        "layer.tar": layer.getvalue(),
    }
    with tarfile.open(path, "w") as archive:
        for member, content in files.items():
            header = tarfile.TarInfo(member)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
