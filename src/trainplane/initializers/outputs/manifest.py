"""The manifests: what was sent, file by file, and what produced it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.initializers import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FINAL: Final = "trainplane-output.json"
"""The name of the manifest of a whole output: it is there once everything else is."""
CHECKPOINT: Final = "trainplane-checkpoint.json"
"""The name of the manifest in the folder of a checkpoint."""
VERSION: Final = 1
_MAX_MARKER: Final = 65_536
_MAX_WORDS: Final = 2_048


@dataclass(frozen=True, slots=True)
class Sent:
    """One file as it lies at the destination."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as it is stored."""

    text: bytes
    files: int
    size: int

    @property
    def digest(self) -> str:
        """What identifies an output, letter by letter."""
        return f"sha256:{hashlib.sha256(self.text).hexdigest()}"


def write(uri: str, files: Iterable[Sent], provenance: Mapping[str, Any], **more: Any) -> Manifest:
    """Return a manifest; the same for the same files, so that sending twice makes no difference."""
    listed = sorted(files, key=lambda file: file.path)
    tree = {
        "version": VERSION,
        "uri": uri,
        "files": [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in listed],
        **more,
        "provenance": dict(provenance),
    }
    text = json.dumps(tree, indent=1, ensure_ascii=False).encode() + b"\n"
    return Manifest(text, len(listed), sum(file.size for file in listed))


def data_beside(folder: Path) -> dict[str, Any]:
    """Return which data the job was given, by the markers that initializers left beside the output.

    Training may write there too: it is what the volume says, bounded, and no proof.
    """
    told: dict[str, Any] = {}
    for what in ("dataset", "model"):
        try:
            with paths.open_plain(folder.parent / what / paths.OURS / "complete") as opened:
                marker = json.loads(opened.read(_MAX_MARKER))
        except (OSError, ValueError):
            continue
        if isinstance(marker, dict):
            words = {
                name: marker[name][:_MAX_WORDS]
                for name in ("uri", "revision", "digest")
                if isinstance(marker.get(name), str)
            }
            counts = {name: marker[name] for name in ("files", "bytes") if type(marker.get(name)) is int}
            told[what] = words | counts
    return told
