"""Our image as it lies in its archive: what a registry or a node is given."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Archive:
    """An image in an OCI archive: one manifest, its config, and the files of its layers."""

    digest: str
    config: dict[str, Any]
    files: tuple[tarfile.TarInfo, ...]

    @classmethod
    def read(cls, path: Path) -> Archive:
        with tarfile.open(path) as archive:

            def blob(digest: str) -> Any:
                return archive.extractfile(f"blobs/{digest.replace(':', '/')}")

            (entry,) = json.load(archive.extractfile("index.json") or blob(""))["manifests"]
            manifest = json.load(blob(entry["digest"]))
            config = json.load(blob(manifest["config"]["digest"]))
            files = []
            for layer in manifest["layers"]:
                with tarfile.open(fileobj=blob(layer["digest"])) as content:
                    files += content.getmembers()
        return cls(entry["digest"], config, tuple(files))

    @property
    def megabytes(self) -> float:
        """Return what a node unpacks."""
        return sum(file.size for file in self.files) / 1e6
