"""What buckets of every cloud have in common: a prefix is a folder, never the beginning of a name."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import obstore
from obstore import exceptions

from trainplane.initializers.errors import (
    ChangedError,
    DeniedError,
    ExpiredError,
    HostileError,
    InitializerError,
    InvalidError,
    NotFoundError,
)
from trainplane.initializers.request import flag
from trainplane.initializers.source import File, PauseError, ThreadedSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from obstore.store import ObjectStore

    from trainplane.initializers.request import Request

    _Kinds: TypeAlias = type[Exception] | tuple[type[Exception], ...]
    _Meaning: TypeAlias = tuple[_Kinds, re.Pattern[str], Callable[[str], InitializerError | PauseError]]

_PIECE: Final = 1 << 16
_SIGNED_SECONDS: Final = 180
_URL: Final = re.compile(r"(https?://[^/\s]+)\S*")
"""An address in an error; its path is somebody's choice of a name and says nothing of the error."""
_NO_SUCH: Final = re.compile(r"NoSuchBucket|NoSuchKey|ContainerNotFound|BlobNotFound")
_NO_SUCH_KEY: Final = re.compile(r"<Code>[^<]{0,20}(InvalidAccessKeyId|UserNotFound)")
"""What some stores say with a 404."""
_EXPIRED: Final = re.compile(r"ExpiredToken|TokenRefreshRequired|<Message>[^<]{0,200}expired", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"AccessDenied|InvalidAccessKeyId|UserNotFound|SignatureDoesNotMatch|AuthenticationFailed|InvalidToken"
    r"|status code: 40[13]"
)
_THROTTLED: Final = re.compile(r"SlowDown|TooManyRequests|ServerBusy|RequestLimitExceeded|status code: (429|503)")
_NO_CREDENTIALS: Final = re.compile(r"://169\.254\.|://metadata\.google|://fd00:ec2|MissingCredentials", re.IGNORECASE)
_REFUSED: Final = re.compile(r"status code: 4(?!08|29)\d\d")


class Bucket(ThreadedSource):
    """The objects below a prefix, or the one object that has this name."""

    def __init__(self, store: ObjectStore, name: str, prefix: str) -> None:
        self.store = store
        self._name = name
        self.prefix = prefix

    async def list(self) -> AsyncIterator[File]:
        """List the prefix; where nothing is below it, look for the object itself."""
        await self.open()
        found = False
        below = f"{self.prefix}/" if self.prefix else ""
        try:
            async for page in obstore.list(self.store, prefix=self.prefix or None, chunk_size=500):
                for meta in page:
                    key = meta["path"]
                    if key.startswith(below) and key != below:
                        found = True
                        yield self._file(key, key[len(below) :], meta)
            if not found and self.prefix:
                meta = await obstore.head_async(self.store, self.prefix)
                yield self._file(self.prefix, self.prefix.rpartition("/")[2], meta)
        except (exceptions.BaseError, OSError) as error:
            raise self.translate(error) from None

    def _file(self, key: str, path: str, meta: Any) -> File:
        etag = meta.get("e_tag") or ""
        return File(path, meta["size"], key, etag, *self.checksum(etag))

    async def open(self) -> None:
        """Do what must be done before the first request."""

    def failure(self) -> InitializerError | PauseError | None:
        """Return what a store's error was caused by, if it is known better than by its words."""
        return None

    def checksum(self, etag: str) -> tuple[str, str]:
        """Return algorithm and digest that an ETag stands for; for most stores it stands for none."""
        del etag
        return "", ""

    async def ask(self, file: File, start: int, stop: int | None) -> Iterator[memoryview]:
        """Ask for a range of the object that was listed, and of no later one."""
        assert stop is not None  # noqa: S101 a bucket always says sizes
        options: Any = {"range": (start, stop)}
        if file.version:
            options["if_match"] = file.version
        try:
            answer = await obstore.get_async(self.store, file.key, options=options)
        except (exceptions.BaseError, OSError) as error:
            raise self.translate(error) from None
        if answer.meta["size"] != file.size:
            raise ChangedError(f"{file.path!r} has {answer.meta['size']} bytes now, and had {file.size}")
        if tuple(answer.range) != (start, stop):
            raise HostileError(f"{file.path!r}: bytes {start} to {stop} were asked for, and others are sent")
        return self._pieces(file, answer.stream(min_chunk_size=_PIECE), stop - start)

    def _pieces(self, file: File, stream: obstore.BytesStream, size: int) -> Iterator[memoryview]:
        came = 0
        try:
            for piece in stream:
                came += len(piece)
                if came > size:
                    raise HostileError(f"{file.path!r}: the source sends more than the {size} bytes it has")
                yield memoryview(piece)
        except (exceptions.BaseError, OSError) as error:
            raise self.translate(error) from None

    def translate(self, error: Exception) -> InitializerError | PauseError:
        """Return what a store's error means to somebody who wants the data."""
        known = self.failure()
        if known is not None:
            return known
        words = _URL.sub(r"\1", " ".join(str(error)[:4000].split()))[:500]
        where = f"{self._name}/{self.prefix}".rstrip("/")
        for kinds, pattern, make in _MEANINGS:
            if isinstance(error, kinds) or pattern.search(words):
                return make(f"{where}: {words}")
        return PauseError(f"{where}: {words}")


def _throttled(words: str) -> PauseError:
    return PauseError(f"asked to slow down, {words}", throttled=True)


def _without_credentials(words: str) -> DeniedError:
    return DeniedError(
        f"no credentials, {words}",
        "name a Secret with them, use workload identity, or set ANONYMOUS=true",
    )


_NEVER: Final = re.compile(r"(?!)")
_MEANINGS: Final[tuple[_Meaning, ...]] = (
    (exceptions.PreconditionError, _NEVER, lambda words: ChangedError(f"an object was replaced, {words}")),
    ((), _NO_SUCH_KEY, lambda words: DeniedError(f"the store refuses these credentials, {words}")),
    (
        (exceptions.NotFoundError, FileNotFoundError),
        _NO_SUCH,
        lambda words: NotFoundError(f"there is no such object or bucket, {words}"),
    ),
    ((), _EXPIRED, lambda words: ExpiredError(f"the credentials have expired, {words}")),
    (
        (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError),
        _DENIED,
        lambda words: DeniedError(f"the store refuses these credentials, {words}"),
    ),
    (exceptions.InvalidPathError, _NEVER, lambda words: HostileError(f"an object's name is no path, {words}")),
    ((), _THROTTLED, _throttled),
    ((), _NO_CREDENTIALS, _without_credentials),
    (
        (),
        _REFUSED,
        lambda words: InvalidError(f"the store refuses to answer, {words}", "check the URI and ENDPOINT"),
    ),
)
"""Kinds of error and words in it → what it means; the first that fits."""


def place(request: Request) -> tuple[str, str]:
    """Return the bucket and the prefix that a URI names."""
    parts = urlsplit(request.uri)
    prefix = unquote(parts.path).strip("/")
    if not parts.netloc or "@" in parts.netloc or parts.query:
        raise InvalidError(f"{request.variable} must read {parts.scheme}://BUCKET/path")
    if any(part in (".", "..", "") for part in prefix.split("/")) and prefix:
        raise InvalidError(f"{request.variable} has an empty part, . or .. in its path")
    return parts.netloc, prefix


def given(env: Mapping[str, str], **names: str) -> dict[str, Any]:
    """Return the settings of a store that variables give: setting → variable."""
    return {setting: env[variable] for setting, variable in names.items() if variable in env}


def settings(request: Request, config: dict[str, Any]) -> Any:
    """Return what every store is made with: its own configuration, and ours of connections and tries."""
    if flag(request.env, "ANONYMOUS"):
        config["skip_signature"] = True
    http = request.env.get("ENDPOINT", "").startswith("http://")
    if request.what == "output":
        return {
            "config": config,
            "client_options": {"timeout": "5m", "connect_timeout": "30s", "allow_http": http},
            # A part that breaks is sent again by the library, which alone has it, as long as a signature lasts.
            "retry_config": {
                "max_retries": 8,
                "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 2},
                "retry_timeout": timedelta(seconds=min(request.limits.retry_seconds, _SIGNED_SECONDS)),
            },
        }
    return {
        "config": config,
        # A slow network is no fault, a silent one is a break.
        "client_options": {
            "timeout": "1h",
            "connect_timeout": "30s",
            "read_timeout": f"{request.limits.stall_seconds}s",
            "allow_http": http,
        },
        # Tries are counted in one place, `transfer`.
        "retry_config": {"max_retries": 0},
    }
