"""What stores of every cloud have in common when they are written to: objects in parts, and a manifest once.

Tries of one part are the store library's own, so that a break costs a part and not the object; whoever sends begins the
object anew when that did not help.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore import exceptions

from trainplane.initializers.destination import Destination
from trainplane.initializers.errors import DeniedError, InitializerError, InvalidError, NotFoundError, OccupiedError
from trainplane.initializers.source import PauseError

if TYPE_CHECKING:
    from trainplane.initializers.destination import Content, Outgoing
    from trainplane.initializers.schemes.objects import Bucket

_PART: Final = 5 << 20
"""Bytes of a part, the least that S3 takes."""
_MAX_PARTS: Final = 9_999
_BUDGET: Final = 25 << 20
"""Bytes of parts that are sent at once; in memory they are nearly twice as many."""
_MAX_KEY: Final = 1_024
"""Bytes of an object's name, in every cloud."""
_BEGIN_ANEW: Final = re.compile(
    r"NoSuchUpload|InvalidPart|BadDigest|XAmzContent|Sha256Mismatch|RequestTimeout|IncompleteBody|InvalidBlockList"
    r"|Md5Mismatch|BlobNotFound.*comp=blocklist|MalformedXML|MalformedTrailer|InvalidDigest"
)
"""Words of errors that are of one upload and not of the next: it was taken away, or its bytes changed on the way."""


class Upload(Destination):
    """The objects below a prefix of a bucket."""

    large = _PART

    def __init__(self, bucket: Bucket, parallel: int) -> None:
        self._bucket = bucket
        self._parallel = parallel

    def refuses(self, path: str) -> str:
        """Refuse names that no store takes."""
        key = self._key(path)
        if len(key.encode()) > _MAX_KEY:
            return f"{path[:200]!r} would be an object whose name has over {_MAX_KEY} bytes"
        return ""

    def _key(self, path: str) -> str:
        return f"{self._bucket.prefix}/{path}" if self._bucket.prefix else path

    async def send(self, content: Content) -> str:
        """Store one object, in parts if it is large; S3 checks the SHA-256 that each is signed with."""
        size = content.file.size
        await self._bucket.open()
        part = max(_PART, -(-size // _MAX_PARTS // 1024) * 1024)
        key = self._key(content.file.path)
        try:
            if size <= _PART:
                whole = b"".join([block async for block in content.blocks(_PART)])
                result = await obstore.put_async(self._bucket.store, key, whole, use_multipart=False)
            else:
                result = await obstore.put_async(
                    self._bucket.store,
                    key,
                    content.blocks(part),
                    use_multipart=True,
                    chunk_size=part,
                    max_concurrency=max(1, min(self._parallel, _BUDGET // part)),
                )
        except (exceptions.BaseError, OSError) as error:
            raise self._meaning(error) from None
        return result.get("e_tag") or ""

    async def holds(self, file: Outgoing, mark: str) -> bool:
        """Ask for the object's size and ETag."""
        await self._bucket.open()
        try:
            meta = await obstore.head_async(self._bucket.store, self._key(file.path))
        except (exceptions.BaseError, OSError) as error:
            return self._unseen(error)
        return bool(meta["size"] == file.size and (not mark or meta.get("e_tag") == mark))

    def _unseen(self, error: Exception) -> bool:
        """Return what it means that an object was not seen: it is not there, or we may only write."""
        meaning = self._meaning(error)
        if isinstance(meaning, NotFoundError):
            return False
        if isinstance(meaning, (DeniedError, InvalidError)):
            # An answer to HEAD has no words: why, what is stored next will say.
            return True
        raise meaning from None

    async def withdraw(self, name: str) -> None:
        """Delete a manifest that is there."""
        await self._bucket.open()
        key = self._key(name)
        try:
            await obstore.head_async(self._bucket.store, key)
        except (exceptions.BaseError, OSError) as error:
            self._unseen(error)
            return
        try:
            await obstore.delete_async(self._bucket.store, key)
        except (exceptions.BaseError, OSError) as error:
            meaning = self._meaning(error)
            if not isinstance(meaning, NotFoundError):
                raise meaning from None

    async def publish(self, name: str, manifest: bytes) -> None:
        """Store a manifest where there is none; where a store knows no such condition, store it all the same."""
        await self._bucket.open()
        key = self._key(name)
        try:
            await obstore.put_async(self._bucket.store, key, manifest, mode="create")
        except exceptions.AlreadyExistsError:
            # It may be our own, whose answer was lost.
            if await self._read(key, len(manifest)) != manifest:
                raise OccupiedError(f"somebody else has put a {name} there meanwhile") from None
        except exceptions.NotSupportedError:
            await self._put(key, manifest)
        except (exceptions.BaseError, OSError) as error:
            if "NotImplemented" not in str(error):
                raise self._meaning(error) from None
            await self._put(key, manifest)

    async def _put(self, key: str, manifest: bytes) -> None:
        try:
            await obstore.put_async(self._bucket.store, key, manifest, use_multipart=False)
        except (exceptions.BaseError, OSError) as error:
            raise self._meaning(error) from None

    async def _read(self, key: str, size: int) -> bytes:
        try:
            meta = await obstore.head_async(self._bucket.store, key)
            if meta["size"] != size:
                return b""
            read: Any = await obstore.get_range_async(self._bucket.store, key, start=0, end=size)
        except (exceptions.BaseError, OSError) as error:
            raise self._meaning(error) from None
        return bytes(read)

    def _meaning(self, error: Exception) -> InitializerError | PauseError:
        if _BEGIN_ANEW.search(str(error)[:4000]):
            return PauseError(f"an upload broke off: {' '.join(str(error)[:200].split())}")
        return self._bucket.translate(error)

    async def close(self) -> None:
        """Let go of connections."""
        await self._bucket.close()
