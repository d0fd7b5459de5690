"""Finding secrets in bytes, also where they are packed, encoded or put together from parts.

bytes ─┬─ as they are
       ├─ UTF-16                             as some editors of Windows save
       ├─ zip, gzip, bzip2, xz, zlib         what is in them, such as a wheel or a .npz
       ├─ base64                             as kubeconfigs, Secrets and notebooks have it
       └─ Python                             its constants: "hf_" "abc…" is one text to the compiler, and so to us
"""

from __future__ import annotations

import base64
import bz2
import io
import lzma
import re
import warnings
import zipfile
import zlib
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Final

from trainplane.client.submission.forms import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPTH: Final = 3
"""Coats that are taken off: a base64 of a gzip of a tar has three."""
UNPACKED: Final = 64 * 1024 * 1024
"""Bytes that may come out of coats, of one text: a payload is that large before it is packed, at most."""
_XZ_MEMORY: Final = 128 * 1024 * 1024
"""Bytes: `xz -9` needs 65 MiB to be undone, and no preset more."""
_SOURCE: Final = 2 * 1024 * 1024
"""Bytes of a module above which it is data, and costs more to compile than it can hide."""
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]{24,})*")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
_NAME: Final = re.compile(r"""([A-Za-z_][\w.-]{0,60})\\?["']?\s{0,20}(?::|=)[^=]{0,60}$""")


@dataclass(frozen=True)
class Found:
    """A secret. Its value is for comparison and never shown."""

    what: str
    """`a token of GitHub`."""
    value: bytes = field(repr=False)
    text: bytes = field(repr=False)
    """Where it stands."""
    start: int
    """The place in `text`."""
    packed: bool = False
    """Whether `text` was taken out of a coat: its lines are no lines that anybody knows."""

    @property
    def line(self) -> int:
        """The line of the text, from 1 on."""
        return self.text.count(b"\n", 0, self.start) + 1

    @property
    def name(self) -> str:
        """What the line calls it, if it does."""
        begin = max(self.text.rfind(b"\n", 0, self.start) + 1, self.start - 200)
        named = _NAME.search(self.text[begin : self.start].decode(errors="replace"))
        return named[1] if named else ""


class TooMuchError(Exception):
    """What is packed in a text is too much to be searched."""


def search(data: bytes, *, python: bool = False) -> Iterator[Found]:
    """Yield the secrets in some bytes, those first whose place can be told. `python`: they are a module's source.

    Raises:
        TooMuchError: what is packed in them is larger than UNPACKED.
    """
    yield from _plain(data)
    left = UNPACKED
    inside = [(data, 0)]
    if python and len(data) <= _SOURCE:
        constants = b"\0".join(_constants(data))
        yield from _plain(constants, packed=True)
        inside.append((constants, 0))
    while inside:
        outer, depth = inside.pop()
        if depth == DEPTH:
            continue
        for content in _uncoated(outer, left):
            left -= len(content)
            if left < 0:
                raise TooMuchError
            yield from _plain(content, packed=True)
            inside.append((content, depth + 1))


def _plain(data: bytes, *, packed: bool = False) -> Iterator[Found]:
    """Yield the secrets that stand in bytes as they are."""
    lowered = data.lower()
    for form in FORMS:
        for word in form.words:
            start = lowered.find(word)
            while start >= 0:
                end = start + 1
                match = form.pattern.match(data, start)
                if match and form.means(match):
                    yield Found(form.what, form.value(match), data, match.start(form.group), packed)
                    end = match.end()
                start = lowered.find(word, end)


def _constants(source: bytes) -> Iterator[bytes]:
    """Yield the texts of a Python source as the compiler has them: joined, unescaped, folded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            waiting: list[object] = [compile(source, "<searched>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, CodeType):
            waiting += entry.co_consts
        elif isinstance(entry, tuple | frozenset):
            waiting += entry
        elif isinstance(entry, str):
            yield entry.encode(errors="replace")
        elif isinstance(entry, bytes):
            yield entry


def _uncoated(data: bytes, most: int) -> Iterator[bytes]:
    """Yield what is in some bytes under one coat; of what is larger than `most`, so much that it shows."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield data.decode("utf-16", errors="replace").encode(errors="replace")
    if decoded := b"".join(map(_decoded, _BASE64.findall(data))):
        yield decoded
    if data.startswith(b"PK\x03\x04"):
        yield from _unzipped(data, most)
    for magic, unpack in _PACKED.items():
        if data.startswith(magic):
            try:
                yield unpack(data, most + 1)
            except (OSError, zlib.error, lzma.LZMAError, EOFError):
                continue


def _decoded(run: bytes) -> bytes:
    letters = run.replace(b"\r", b"").replace(b"\n", b"").translate(_URL_SAFE)
    return base64.b64decode(letters[: len(letters) // 4 * 4] + b"\n")


def _unzipped(data: bytes, most: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as file:
                    yield file.read(most + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, zlib.error, lzma.LZMAError, EOFError):
        return  # damaged, encrypted, or of a kind that Python cannot read: nor can a job that is written in it


def _inflate(window: int) -> Callable[[bytes, int], bytes]:
    return lambda data, most: zlib.decompressobj(window).decompress(data, most)


_PACKED: Final[dict[bytes, Callable[[bytes, int], bytes]]] = {
    b"\x1f\x8b": _inflate(31),
    b"x\x01": _inflate(15),
    b"x\x5e": _inflate(15),
    b"x\x9c": _inflate(15),
    b"x\xda": _inflate(15),
    b"BZh": lambda data, most: bz2.BZ2Decompressor().decompress(data, most),
    b"\xfd7zXZ\x00": lambda data, most: lzma.LZMADecompressor(memlimit=_XZ_MEMORY).decompress(data, most),
}
