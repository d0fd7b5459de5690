"""Files as arguments of a command line.

A deterministic tar, compressed, in base64, in chunks: Linux takes at most 128 KiB for one argument, and base64 has
nothing in it that Kubernetes or a shell would expand. It lies in the TrainJob itself, so it goes wherever that goes. To
the pods our operator gives it as a ConfigMap, where it is large (`render/plugins/shipped.py`).
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CHUNK: Final = 96 * 1024
"""Characters of one argument."""
LIMIT: Final = 900 * 1024
"""Characters in all: etcd stores no object of more than 1.5 MiB, and where an operator of the reference's runs, each
pod has them."""
_TIME: Final = 315532800
"""1980, for all files: zip, and so whoever makes a wheel in the pod, knows no earlier time."""


@dataclass(frozen=True)
class File:
    """A file to ship."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True)
class Payload:
    """Files, packed."""

    digest: str
    """SHA-256 of the files, whatever the compressor made of them: `sha256:…`."""
    chunks: list[str]

    @property
    def args(self) -> list[str]:
        """The arguments of the node's first program (`boot`)."""
        return [names.CODE_NODE, self.digest, *self.chunks]


def pack(files: Mapping[str, File]) -> Payload:
    """Return files as chunks of text.

    Raises:
        CodeError: they are too large. The message names the largest.
    """
    packed = _tar(files)
    text = base64.b64encode(zlib.compress(packed, 9)).decode()
    if len(text) > LIMIT:
        sizes = ((path, len(file.content)) for path, file in files.items())
        raise CodeError(too_large(f"{len(text) // 1024} KiB when packed, and {LIMIT // 1024} KiB can be", sizes))
    chunks = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]
    return Payload(names.CODE_DIGEST + hashlib.sha256(packed).hexdigest(), chunks)


def unpack(job: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that a TrainJob's arguments are, by path, as a node will have them; none where they are no code.

    This is what leaves, read back from where it stands.
    """
    args = ((job.get("spec") or {}).get("trainer") or {}).get("args") or []
    if len(args) < 3 or args[0] != names.CODE_NODE or not args[1].startswith(names.CODE_DIGEST):
        return {}
    packed = zlib.decompress(base64.b64decode("".join(args[2:])))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        return {entry.name: file.read() for entry in tar if (file := tar.extractfile(entry))}


def too_large(how: str, sizes: Iterable[tuple[str, int]]) -> str:
    """Return what to say about files that are too large."""
    largest = sorted(sizes, key=lambda entry: -entry[1])[:5]
    known = ", ".join(f"{path} ({size / 1024:.0f} KiB)" for path, size in largest)
    return (
        f"the code is too large to be shipped with the job: it is {how}. The largest files: {known}. Name what the job "
        f"does not need in .trainplaneignore; fetch data with a dataset initializer; build what seldom changes into "
        f"the image"
    )


def _tar(files: Mapping[str, File]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, file in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(file.content)
            entry.mode = 0o755 if file.executable else 0o644
            entry.mtime = _TIME
            tar.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()
