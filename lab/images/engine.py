"""An engine of the lab as an image, for who runs it as its users do: in a pod, by its own chart.

One static program in an image of its own, as the engines' own images are: `/manager`, run by a user without rights.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from lab.engines import binary, chosen
from lab.images import REGISTRY
from lab.images.containerd_root import write_layers

PROGRAM: Final = "manager"
_SETTINGS: Final = {"Entrypoint": [f"/{PROGRAM}"], "User": "65532:65532", "WorkingDir": "/"}


def repository(name: str) -> str:
    """Return the name of an engine's image, without its tag."""
    return f"{REGISTRY}/{name}"


def reference(name: str) -> str:
    """Return the name by which a pod asks for an engine's image."""
    return f"{repository(name)}:1"


def archive(name: str) -> Path:
    """Return an archive of an engine's image; made once, beside the program in the cache."""
    final = chosen(name).built() / "image.tar"
    if not final.exists():
        with tempfile.TemporaryDirectory(dir=final.parent) as folder:
            layer, partial = Path(folder, "layer"), Path(folder, final.name)
            _pack(binary(name), layer)
            with layer.open("rb") as packed:
                digest = hashlib.file_digest(packed, "sha256").hexdigest()
            with partial.open("wb") as sink:
                write_layers(reference(name), _SETTINGS, {digest: layer}, sink)
            partial.rename(final)
    return final


def _pack(program: str, layer: Path) -> None:
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as packed:
        packed.add(program, arcname=PROGRAM)
