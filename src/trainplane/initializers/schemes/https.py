"""`https://host/path/file.tar#sha256=…`: one file from a web server, with its checksum if the URI says it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from trainplane.initializers.errors import ChangedError, InvalidError
from trainplane.initializers.source import File, Source
from trainplane.initializers.web import Web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.initializers.request import Request

_TOTAL: Final = re.compile(r"bytes 0-0/(\d{1,18})")
_DIGESTS: Final = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}


class WebFile(Source):
    """One file of a web server."""

    def __init__(self, url: str, token: str, algorithm: str, digest: str) -> None:
        self._url = url
        self._name = unquote(urlsplit(url).path).rpartition("/")[2]
        self._web = Web(token)
        self._checksum = algorithm, digest

    async def list(self) -> AsyncIterator[File]:
        """Ask for the first byte: the answer has length and ETag, also where a signed URL allows no HEAD."""
        try:
            yield await self._first({"Range": "bytes=0-0"})
        except ChangedError:
            # There is no first byte in an empty file.
            yield await self._first({})

    async def _first(self, headers: dict[str, str]) -> File:
        async with self._web.get(self._url, headers) as response:
            etag = response.headers.get("ETag", "")
            # A weak ETag says nothing of bytes, and If-Match refuses it.
            version = etag if etag.startswith('"') and len(etag) < 1024 else ""
            total = _TOTAL.fullmatch(response.headers.get("Content-Range", ""))
            ranged = response.status == 206 and total is not None
            size = int(total[1]) if total is not None and ranged else response.content_length
        return File(self._name, size, self._url, version, *self._checksum, whole=not ranged)

    def read(self, file: File, start: int, stop: int | None) -> AsyncIterator[bytes]:
        """Read a range."""
        return self._web.read(self._url, file, start, stop)

    async def close(self) -> None:
        """Close all connections."""
        await self._web.close()


def open_source(request: Request) -> Source:
    """Return the file that a URL names."""
    url, _, fragment = request.uri.partition("#")
    parts = urlsplit(url)
    if not parts.hostname or parts.path.endswith("/") or not parts.path:
        raise InvalidError("STORAGE_URI must name one file: https://host/path/file")
    if parts.username or parts.password:
        raise InvalidError(
            "STORAGE_URI has a user name in it, which everybody who may read the TrainJob would see",
            "put a token into a Secret as ACCESS_TOKEN and name it in spec.initializer.*.secretRef",
        )
    algorithm, _, digest = fragment.partition("=")
    digest = digest.lower()
    if fragment and (_DIGESTS.get(algorithm) != len(digest) or set(digest) - set("0123456789abcdef")):
        raise InvalidError(f"STORAGE_URI ends with #{fragment[:80]}, which is no checksum", "write #sha256=<64 digits>")
    # Signatures are of the very letters: what is encoded stays as it is.
    return WebFile(quote(url, safe="%/:?=&@+,;~!$'()*[]"), request.env.get("ACCESS_TOKEN", ""), algorithm, digest)
