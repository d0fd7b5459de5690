"""`pvc://CLAIM/path`: which claim a URI names, and where pods find it.

What runs in user pods looks for a claim at `/pvc/CLAIM` (`initializers/schemes/folder`). A pod that mounts something
there already, or says with PVC_ROOT that claims lie elsewhere, is left as its author made it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.api import names

if TYPE_CHECKING:
    from trainplane.render.plan import Container, PodSet
    from trainplane.render.provenance import Origin

_URI: Final = re.compile(r"pvc://([^/?#]*)", re.IGNORECASE)


def claim_of(uri: str) -> str | None:
    """Return the claim that a URI names, whether there can be one of that name or not; None for another scheme."""
    found = _URI.match(uri)
    return found[1] if found else None


def mount_claim(
    pods: PodSet,
    container: Container,
    claim: str,
    *,
    read_only: bool,
    origin: Origin,
    volume: str = names.CLAIM_VOLUME,
) -> None:
    """Mount a claim of the TrainJob's namespace in a container, where what runs there looks for it."""
    path = f"{names.CLAIM_MOUNT_PATH}/{claim}"
    there = {str(mount.get("mountPath", "")).rstrip("/") for mount in container.tree.get("volumeMounts") or ()}
    elsewhere = any(entry.get("name") == names.ENV_PVC_ROOT for entry in container.env)
    if elsewhere or there & {path, names.CLAIM_MOUNT_PATH}:
        return
    pods.set_volumes({"name": volume, "persistentVolumeClaim": {"claimName": claim}}, origin=origin)
    mount = {"name": volume, "mountPath": path, **({"readOnly": True} if read_only else {})}
    container.set_mounts(mount, origin=origin)
