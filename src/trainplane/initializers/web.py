"""Ranges of files over HTTP, from servers that cut, slow, redirect and lie.

Redirects are followed here and not by the library: credentials stay with the origin that they were given for, and what
began encrypted stays encrypted. A body is read to the length that was asked for and not a byte further.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import aiohttp
from yarl import URL

from trainplane.initializers.errors import (
    ChangedError,
    DeniedError,
    ExpiredError,
    HostileError,
    InitializerError,
    InvalidError,
    NotFoundError,
)
from trainplane.initializers.source import PauseError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.initializers.source import File

_MAX_REDIRECTS: Final = 5
_MAX_HEADER: Final = 16_384
_MAX_WORDS: Final = 2_048
"""Bytes that are read of an error's body."""
_LONGEST_WAIT: Final = 120.0
_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_THROTTLED: Final = (429, 503)
_PASSING: Final = (408, 425, 500, 502, 504)


class Web:
    """An HTTP client for one source."""

    def __init__(self, token: str = "") -> None:
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def get(self, url: str, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a GET, follow redirects; yield an answer of 200 or 206, or raise what another one means."""
        first = here = URL(url, encoded=True)
        for _ in range(_MAX_REDIRECTS + 1):
            sent = {"Accept-Encoding": "identity", **headers}
            if self._token and here.origin() == first.origin():
                if here.scheme != "https" and here.host not in ("localhost", "127.0.0.1", "::1"):
                    raise InvalidError(f"a token is not sent to {here.host} without encryption", "use https://")
                sent["Authorization"] = f"Bearer {self._token}"
            async with self._sending(here, sent) as response:
                if response.status not in _REDIRECTS:
                    await self._judge(response, here.host or "")
                    yield response
                    return
                here = _redirected(here, response.headers.get("Location", ""))
        raise HostileError(f"{first.host} redirects more than {_MAX_REDIRECTS} times")

    async def redirect(self, url: str) -> str:
        """Return the origin that a GET is redirected to; empty if it is answered, however."""
        here = URL(url, encoded=True)
        async with self._sending(here, {"Range": "bytes=0-0"}) as response:
            if response.status not in _REDIRECTS:
                return ""
            there = _redirected(here, response.headers.get("Location", ""))
        return "" if there.origin() == here.origin() else str(there.origin())

    async def read(self, url: str, file: File, start: int, stop: int | None) -> AsyncIterator[bytes]:
        """Yield a range of a file; the answer must be that range and nothing else."""
        headers = {} if file.whole or stop is None else {"Range": f"bytes={start}-{stop - 1}"}
        if file.version:
            headers["If-Match"] = file.version
        async with self.get(url, headers) as response:
            _check_range(response, file, start, stop)
            length = response.content_length
            if stop is not None and length is not None and length > stop - start:
                raise HostileError(f"{file.path!r}: {stop - start} bytes were asked for, and {length} are announced")
            came = 0
            try:
                async for piece in response.content.iter_any():
                    came += len(piece)
                    if stop is not None and came > stop - start:
                        raise HostileError(f"{file.path!r}: the source sends more than the {stop - start} bytes it has")
                    yield piece
            except (TimeoutError, aiohttp.ClientError, ConnectionError) as error:
                raise PauseError(f"{file.path!r} broke off: {type(error).__name__}") from error
            if stop is None and length is not None and came != length:
                raise PauseError(f"{file.path!r} broke off at byte {came} of {length}")

    @asynccontextmanager
    async def _sending(self, url: URL, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
                trust_env=True,
                max_field_size=_MAX_HEADER,
                max_line_size=_MAX_HEADER,
                read_bufsize=1 << 18,
            )
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False) as response:
                yield response
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise InvalidError(f"{url.host} is no address that can be asked") from error
        except (TimeoutError, aiohttp.ClientError, ConnectionError) as error:
            raise PauseError(f"{url.host} did not answer: {type(error).__name__}: {str(error)[:200]}") from error

    async def _judge(self, response: aiohttp.ClientResponse, host: str) -> None:
        """Raise what an answer means that brings no bytes."""
        status = response.status
        if status in (200, 206):
            return
        if status in _THROTTLED:
            raise PauseError(f"{host} answers {status}", throttled=True, after=_asked(response))
        if status in _PASSING:
            raise PauseError(f"{host} answers {status}")
        words = (await response.content.read(_MAX_WORDS)).decode(errors="replace")
        raise meaning(status, host, words, with_token=bool(self._token))


def meaning(status: int, host: str, words: str, *, with_token: bool) -> InitializerError:
    """Return what an answer of 3xx or 4xx means."""
    if status in (401, 403) and "expired" in words.lower():
        return ExpiredError(f"{host} answers {status}: the credentials have expired")
    if status in (401, 403):
        given = "the token that was sent may not read it" if with_token else "it wants credentials, and none were given"
        return DeniedError(f"{host} answers {status}: {given}")
    if status in (404, 410):
        return NotFoundError(f"{host} answers {status}: there is no such file")
    if status in (412, 416):
        return ChangedError(f"{host} answers {status}: the file is another one than at the start")
    return InvalidError(f"{host} answers {status}, which brings no file", "check storageUri")


def _check_range(response: aiohttp.ClientResponse, file: File, start: int, stop: int | None) -> None:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise HostileError(f"{file.path!r} comes encoded, though that was not asked for")
    etag = response.headers.get("ETag", "")
    if file.version and etag and etag != file.version:
        raise ChangedError(f"{file.path!r} is another file than at the start")
    if response.status == 206:
        match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if stop is None or match is None or (int(match[1]), int(match[2])) != (start, stop - 1):
            raise HostileError(f"{file.path!r}: bytes {start} to {stop} were asked for, and others are sent")
        if match[3] != "*" and int(match[3]) != file.size:
            raise ChangedError(f"{file.path!r} has {match[3]} bytes now, and had {file.size}")
    elif start or stop != file.size:
        raise HostileError(f"{file.path!r}: the source sent ranges before, and now the whole file")


def _asked(response: aiohttp.ClientResponse) -> float:
    """Return the seconds of Retry-After, within reason."""
    text = response.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_WAIT) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0


def _redirected(here: URL, location: str) -> URL:
    try:
        there = here.join(URL(location, encoded=True)).with_user(None)
    except ValueError:
        raise HostileError(f"{here.host} redirects to what is no address") from None
    if not location or there.scheme not in ("https", here.scheme) or not there.host:
        raise HostileError(f"{here.host} redirects to {there.scheme}://{there.host}, which is not as safe as it is")
    return there
