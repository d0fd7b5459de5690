"""An output, brought to this machine and compared with its manifest.

The initializers' program fetches it, in a process of its own: it resumes, checks what the store says of its files, and
writes nothing outside the folder, and its libraries are not the SDK's. What it brought is then compared with the
manifest, and the manifest with the digest that the TrainJob's status has: whoever may write to the store can change
files and manifest, and not that.
"""

from __future__ import annotations

import asyncio
import glob
import hashlib
import os
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.output import read_output
from trainplane.client.errors import InvalidError, RefusedError, TrainplaneError, UnsupportedError
from trainplane.client.types.outputs import SENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trainplane.api.output import OutputUri
    from trainplane.client.types.outputs import JobOutput

_MOST_MANIFEST: Final = 64 << 20
"""Bytes of a manifest: a hundred thousand files with long names have half of that."""
_PIECE: Final = 1 << 20
_DATASETS: Final = "hf://datasets/"
"""How a repository of data begins where output goes; where it is read from, that it is data is said otherwise."""
_LAST_WORDS: Final = 2000


class _File(msgspec.Struct, frozen=True):
    path: str
    size: int
    sha256: str


class _Manifest(msgspec.Struct, frozen=True):
    files: list[_File]


@dataclass(frozen=True)
class Download:
    """One output on its way to a folder."""

    output: JobOutput
    folder: Path
    env: Mapping[str, str]
    path: str = ""
    """A file or a folder of the output, for no more than that; empty for all of it."""

    async def run(self) -> Path:
        """Bring the output, and return the folder in which its manifest lies.

        Raises:
            TrainplaneError: it cannot be fetched, with the program's own words; or it is not what was sent.
        """
        uri = read_output(self.output.uri)
        if uri.claim is not None:
            raise UnsupportedError(
                f"{uri.text} is a claim of the cluster: mount it in a pod, or let a TrainJob read it by that URI"
            )
        await self._fetch(self._patterns(uri))
        root = self.folder / inside_of(uri)
        await asyncio.to_thread(verify, root, self.output.digest or "", self.path)
        return root

    def _patterns(self, uri: OutputUri) -> str:
        """Return what the program is to fetch: the manifest always."""
        if not self.path:
            return "*"
        if "," in self.path:
            raise InvalidError(f"path {self.path!r} has a comma: fetch the folder that it is in")
        part = glob.escape(self.path)
        inside = inside_of(uri)
        begin = glob.escape(f"{inside}/" if inside else "")
        return ",".join(begin + one for one in (part, f"{part}/*", names.OUTPUT_MANIFEST))

    async def _fetch(self, patterns: str = "*") -> None:
        source = self.output.uri.replace(_DATASETS, "hf://", 1)
        what = "model" if source == self.output.uri else "dataset"
        program = [sys.executable, "-m", "trainplane.initializers", what, str(self.folder)]
        env = {**os.environ, **self.env, names.ENV_STORAGE_URI: source, "ALLOW_PATTERNS": patterns}
        process = await asyncio.create_subprocess_exec(
            *program, env=env, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        try:
            _, printed = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise TrainplaneError(
                f"{self.output.uri} could not be fetched: {printed[-_LAST_WORDS:].decode(errors='replace').strip()}"
            )


def inside_of(uri: OutputUri) -> str:
    """Return where in what is fetched an output lies: files of the hub keep their place in the repository."""
    if uri.scheme != "hf":
        return ""
    _, _, inside = uri.path.partition("/")
    return inside.partition("/")[2] if uri.text.startswith(_DATASETS) else inside


def choose(name: str, outputs: Sequence[JobOutput]) -> JobOutput:
    """Return the output of a TrainJob that can be fetched; raises InvalidError or RefusedError."""
    if not outputs:
        raise InvalidError(f"TrainJob {name} has no output: give train() an Output, which says where it goes")
    (output,) = outputs
    if output.state != SENT:
        why = output.message or "wait until the TrainJob is Complete"
        raise RefusedError(f"the output of TrainJob {name} is not there: it is {output.state}. {why}")
    return output


def verify(root: Path, digest: str, part: str = "") -> None:
    """See that a folder holds just what a manifest of this digest lists, below `part`; raises TrainplaneError.

    Names are the manifest's, which came from a store: none is followed out of the folder, nor through a link.
    """
    path = root / names.OUTPUT_MANIFEST
    try:
        if path.lstat().st_size > _MOST_MANIFEST:
            raise TrainplaneError(f"{path} is larger than {_MOST_MANIFEST} bytes: that is no manifest")
        text = path.read_bytes()
    except FileNotFoundError:
        raise TrainplaneError(f"{path} is not there: the output was removed or replaced since it was sent") from None
    found = f"sha256:{hashlib.sha256(text).hexdigest()}"
    if found != digest:
        raise TrainplaneError(
            f"{path} has the digest {found}, and the TrainJob sent {digest}: the output was replaced since"
        )
    try:
        manifest = msgspec.json.decode(text, type=_Manifest)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrainplaneError(f"{path} is no manifest: {error}") from error
    wanted = [file for file in manifest.files if not part or file.path == part or file.path.startswith(f"{part}/")]
    if part and not wanted:
        raise TrainplaneError(f"the output has no {part!r}: {path} lists what it has")
    for file in wanted:
        _compare(root, file)


def _compare(root: Path, file: _File) -> None:
    parts = file.path.split("/")
    if not all(parts) or ".." in parts or "." in parts or "\0" in file.path:
        raise TrainplaneError(f"the manifest lists {file.path!r}, which leads out of the folder")
    *parents, _ = places = [root.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
    here = places[-1]
    try:
        if not (all(stat.S_ISDIR(one.lstat().st_mode) for one in parents) and stat.S_ISREG(here.lstat().st_mode)):
            raise TrainplaneError(f"{file.path!r} is in the manifest, and {here} is no plain file in plain folders")
    except FileNotFoundError:
        raise TrainplaneError(f"{file.path!r} is in the manifest, and was not there to be fetched") from None
    size, digest = 0, hashlib.sha256()
    with here.open("rb") as opened:
        while piece := opened.read(_PIECE):
            size += len(piece)
            digest.update(piece)
    if size != file.size or digest.hexdigest() != file.sha256:
        raise TrainplaneError(f"{file.path!r} is not what the TrainJob sent: its size or SHA-256 differs")
