"""Where files of a source lie: a local folder, or a bucket of S3.

Both are read by ranges of one version of a file: a store is asked for that ETag, a local file is looked at again when
it has been read. What changed in between is an error, never a mixture.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import obstore
from obstore import exceptions
from obstore.store import S3Store

from trainplane.cache.errors import (
    ChangedError,
    DeniedError,
    InexactError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_FILES: Final = 1_000_000
_PATIENCE: Final = 120.0
"""Seconds that a store may answer nothing useful; RETRY_SECONDS says otherwise."""


@dataclass(frozen=True)
class Found:
    """A file as it is now."""

    name: str
    size: int
    version: str


class Place(Protocol):
    """Somewhere that files are listed and read."""

    def files(self) -> list[Found]:
        """Return all files, by name."""
        ...

    def open(self, file: Found) -> OpenFile:
        """Return a file of that version for reading."""
        ...


class OpenFile(RawIOBase):
    """One version of a file, read by ranges."""

    def __init__(self, file: Found) -> None:
        self.file = file
        self._at = 0

    def fetch(self, start: int, stop: int) -> bytes:
        """Return bytes of this version, all of those asked for."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the file is no longer of this version."""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer than asked for at the end alone."""
        stop = self.file.size if size < 0 else min(self._at + size, self.file.size)
        if stop <= self._at:
            return b""
        content = self.fetch(self._at, stop)
        if len(content) != stop - self._at:
            raise ChangedError(f"{self.file.name} is shorter than its {self.file.size} bytes")
        self._at = stop
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go elsewhere."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.file.size}[whence]
        return self._at

    def tell(self) -> int:
        """Return where the next byte is read from."""
        return self._at

    def size(self) -> int:
        """Return how many bytes there are."""
        return self.file.size

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True


class _LocalFile(OpenFile):
    def __init__(self, root: Path, file: Found) -> None:
        super().__init__(file)
        self._path = root / file.name
        self._lock = threading.Lock()
        self._handle = -1
        try:
            self._handle = os.open(self._path, os.O_RDONLY)
        except OSError as error:
            raise ChangedError(f"{file.name} cannot be read any more: {error.strerror}") from None
        self.check()

    def fetch(self, start: int, stop: int) -> bytes:
        pieces = []
        with self._lock:
            while start < stop and (piece := os.pread(self._handle, stop - start, start)):
                pieces.append(piece)
                start += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def check(self) -> None:
        try:
            state = self._path.stat()
        except OSError as error:
            raise ChangedError(f"{self.file.name} is gone: {error.strerror}") from None
        if (state.st_size, str(state.st_mtime_ns)) != (self.file.size, self.file.version):
            raise ChangedError(f"{self.file.name} has changed since the manifest was made")

    def close(self) -> None:
        # Arrow's threads close it too, and read ahead while others do: a number that is free again may be another file.
        with self._lock:
            handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)
        super().close()


class Folder:
    """A folder, or one file, of this machine."""

    def __init__(self, location: str) -> None:
        self._path = Path(location)
        self._root = self._path if self._path.is_dir() else self._path.parent

    def files(self) -> list[Found]:
        """Return all files below the folder; those that begin with a dot or an underscore are nobody's data."""
        if not self._path.exists():
            raise NotFoundError(f"there is no {self._path}")
        paths = sorted(self._path.rglob("*")) if self._path.is_dir() else [self._path]
        found = []
        for path in paths:
            name = path.relative_to(self._root)
            if any(part.startswith((".", "_")) for part in name.parts) or not path.is_file():
                continue
            if not path.resolve().is_relative_to(self._root.resolve()):
                raise InvalidError(f"{name} leads out of the folder", "put the file itself there")
            state = path.stat()
            found.append(Found(str(name), state.st_size, str(state.st_mtime_ns)))
        return _bounded(found)

    def open(self, file: Found) -> OpenFile:
        """Return a file of that version for reading; nothing outside of the folder, whatever a manifest says."""
        if not (self._root / file.name).resolve().is_relative_to(self._root.resolve()):
            raise InvalidError(f"{file.name!r} leads out of the folder")
        return _LocalFile(self._root, file)


class _Object(OpenFile):
    def __init__(self, store: S3Store, key: str, file: Found, patience: float) -> None:
        super().__init__(file)
        self._store, self._key, self._patience = store, key, patience

    def fetch(self, start: int, stop: int) -> bytes:
        """Return bytes of this ETag; a store that is busy or breaks off is asked again, for a while."""
        end = time.monotonic() + self._patience
        pause = 0.1
        while True:
            try:
                answer = obstore.get(
                    self._store, self._key, options={"range": (start, stop), "if_match": self.file.version}
                )
                content = bytes(answer.bytes())
                if len(content) == stop - start:
                    return content
                trouble = "it broke off"
            except (exceptions.BaseError, OSError) as error:
                _raise_final(self.file.name, error)
                trouble = type(error).__name__
            if time.monotonic() + pause > end:
                raise UnreachableError(
                    f"{self.file.name}: the store did not give it within {self._patience:.0f} s ({trouble})"
                )
            time.sleep(pause)
            pause = min(pause * 2, 5.0)


class Bucket:
    """Objects below a prefix of an S3 bucket."""

    def __init__(self, location: str, env: Mapping[str, str]) -> None:
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        if not bucket:
            raise InvalidError(f"{location!r} names no bucket", "write s3://BUCKET/PREFIX")
        self._prefix = prefix.strip("/")
        self._patience = float(env.get("RETRY_SECONDS") or _PATIENCE)
        config = {"region": env.get("REGION") or env.get("AWS_REGION") or "us-east-1"}
        for option, name in (
            ("access_key_id", "ACCESS_KEY_ID"),
            ("secret_access_key", "SECRET_ACCESS_KEY"),
            ("session_token", "SESSION_TOKEN"),
            ("endpoint", "ENDPOINT"),
        ):
            if value := env.get(name):
                config[option] = value
        options: Any = {
            "allow_http": config.get("endpoint", "").startswith("http://"),
            "timeout": timedelta(seconds=60),
        }
        retry: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=min(self._patience, 30))}
        self._store = S3Store(bucket, config=config, client_options=options, retry_config=retry)  # type: ignore[arg-type] # its keys are literals

    def files(self) -> list[Found]:
        """Return all objects below the prefix; `data` is not a prefix of `data2/`."""
        found: list[Found] = []
        try:
            for page in obstore.list(self._store, self._prefix or None):
                for meta in page:
                    name = meta["path"][len(self._prefix) :].lstrip("/") or meta["path"].rpartition("/")[2]
                    if any(part.startswith((".", "_")) for part in name.split("/")):
                        continue
                    if not meta["e_tag"]:
                        raise InexactError(f"the store gives {name} no ETag", "use a store that tells versions apart")
                    found.append(Found(name, meta["size"], meta["e_tag"]))
            if not found and self._prefix:
                meta = obstore.head(self._store, self._prefix)
                found.append(Found(self._prefix.rpartition("/")[2], meta["size"], meta["e_tag"] or ""))
        except (exceptions.BaseError, OSError) as error:
            _raise_final(f"s3://…/{self._prefix}", error)
            raise UnreachableError(f"the store does not list {self._prefix!r}: {type(error).__name__}") from None
        return _bounded(sorted(found, key=lambda file: file.name))

    def open(self, file: Found) -> OpenFile:
        """Return an object of that ETag for reading."""
        last = self._prefix.rpartition("/")[2]
        key = self._prefix if file.name == last and last else f"{self._prefix}/{file.name}".lstrip("/")
        return _Object(self._store, key, file, self._patience)


def place(location: str, env: Mapping[str, str]) -> Place:
    """Return where a location is."""
    scheme, separator, _ = location.partition("://")
    if scheme == "s3" and separator:
        return Bucket(location, env)
    if separator and scheme != "file":
        raise InvalidError(f"a location of the scheme {scheme!r}", "a folder or s3://BUCKET/PREFIX is read")
    return Folder(location.removeprefix("file://"))


def _raise_final(name: str, error: Exception) -> None:
    """Raise what trying again does not mend; the store's own words may hold keys and are not repeated."""
    if isinstance(error, exceptions.PreconditionError):
        raise ChangedError(f"{name} has changed since the manifest was made") from None
    if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
        raise NotFoundError(f"there is no {name}") from None
    if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError | PermissionError):
        raise DeniedError(f"the store refuses these credentials {name}", "give ones that may read it") from None


def _bounded(found: list[Found]) -> list[Found]:
    if len(found) > _MOST_FILES:
        raise InexactError(f"{len(found)} files are too many", f"write {_MOST_FILES} larger ones or fewer")
    return found
