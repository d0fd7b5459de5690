"""`hf://owner/name@revision/path`: a dataset or a model of the Hugging Face hub, or of a hub that speaks like it.

The hub's own library says which commit a revision is and lists its files with their checksums; the bytes are read in
ranges like those of any other source, so that a kill costs no more here than elsewhere.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import httpx2
import huggingface_hub
from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from trainplane.initializers.errors import (
    DeniedError,
    HostileError,
    InitializerError,
    InvalidError,
    NotFoundError,
)
from trainplane.initializers.source import File, PauseError, Source
from trainplane.initializers.web import Web, meaning

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from trainplane.initializers.request import Request

_MAX_PAGE: Final = 32 << 20
"""Bytes of one answer of the hub's API."""
_SHA: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class Place(NamedTuple):
    """What a URI of the hub names."""

    name: str
    """`owner/name`, or `name` alone."""
    revision: str | None
    """A branch, a tag or a commit."""
    below: str
    """A file or folder in it; empty for all."""


class Hub:
    """A repository of a hub, to be asked by the hub's own library."""

    def __init__(self, api: HfApi, token: str, what: str, place: Place) -> None:
        self.api = api
        self.token = token
        self.what = what
        self.place = place

    async def ask(self, question: Any) -> Any:
        """Ask the hub's library, in a thread; its errors become ours."""
        try:
            return await asyncio.to_thread(question)
        except InitializerError:
            raise
        except (HFValidationError, ValueError) as error:
            raise InvalidError(f"{self.place.name!r} cannot be asked for: {str(error)[:300]}") from None
        except HfHubHTTPError as error:
            raise self._meaning(error) from None
        except RuntimeError as error:
            # What the library calls an upload that failed, whatever it was.
            if isinstance(error.__cause__, HfHubHTTPError):
                raise self._meaning(error.__cause__) from None
            raise PauseError(f"{error}: {type(error.__cause__).__name__}: {str(error.__cause__)[:200]}") from None
        except httpx2.HTTPError as error:
            host = urlsplit(self.api.endpoint).hostname
            raise PauseError(f"{host} does not answer: {type(error).__name__}: {str(error)[:200]}") from None

    def _meaning(self, error: HfHubHTTPError) -> InitializerError | PauseError:
        status = error.response.status_code
        words = str(error)[:2000]
        if isinstance(error, GatedRepoError):
            return DeniedError(
                f"{self.place.name} is gated: its owner asks for consent to terms",
                "accept them on the repository's page with the account whose token is ACCESS_TOKEN",
            )
        if isinstance(error, RevisionNotFoundError):
            return NotFoundError(f"{self.place.name} has no revision {self.place.revision!r}", "check the part after @")
        refused = meaning(status, "the hub", words, with_token=bool(self.token))
        if isinstance(error, RepositoryNotFoundError) and type(refused) in (DeniedError, NotFoundError):
            # The hub answers 401 for what is not there, so as not to say what is private.
            seen = "to this token" if self.token else "without a token"
            return NotFoundError(
                f"the hub has no {self.what} {self.place.name}, or does not show it {seen}",
                "check the name; for what is private name a Secret with ACCESS_TOKEN in spec.initializer.*.secretRef",
            )
        return PauseError(f"the hub answers {status}", throttled=status in (429, 503)) if _passes(status) else refused


class Repository(Source):
    """One commit of a repository of the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._web = Web(hub.token)

    async def list(self) -> AsyncIterator[File]:
        """List the files of the commit that the revision is now."""
        api, what, (name, revision, below) = self._hub.api, self._hub.what, self._hub.place
        found = await self._hub.ask(lambda: api.repo_info(name, revision=revision, repo_type=what, timeout=60))
        self.revision = found.sha or ""
        if not _SHA.fullmatch(self.revision):
            raise HostileError(f"the hub says that {name} is at a commit that is none: {self.revision[:60]!r}")
        tree = iter(api.list_repo_tree(name, recursive=True, revision=self.revision, repo_type=what))
        while page := await self._hub.ask(lambda: list(itertools.islice(tree, 500))):
            for entry in page:
                inside = not below or entry.path == below or entry.path.startswith(f"{below}/")
                if isinstance(entry, RepoFile) and inside:
                    yield self._file(entry)

    def _file(self, entry: RepoFile) -> File:
        if entry.lfs is not None:
            algorithm, digest = "sha256", str(entry.lfs.sha256)
            size = entry.lfs.size
        else:
            algorithm, digest, size = "git", str(entry.blob_id), entry.size
        if not (_SHA256 if algorithm == "sha256" else _SHA).fullmatch(digest) or not isinstance(size, int):
            raise HostileError(f"the hub lists {entry.path[:200]!r} without a checksum or size that is one")
        return File(entry.path, size, entry.path, "", algorithm, digest)

    def read(self, file: File, start: int, stop: int | None) -> AsyncIterator[bytes]:
        """Read a range of a file of the commit."""
        hub = self._hub
        url = hf_hub_url(
            hub.place.name, file.key, repo_type=hub.what, revision=self.revision, endpoint=hub.api.endpoint
        )
        return self._web.read(url, file, start, stop)

    async def close(self) -> None:
        """Close all connections."""
        await self._web.close()
        huggingface_hub.close_session()


def _passes(status: int) -> bool:
    return status >= 500 or status in (408, 429)


class _Bounded(httpx2.HTTPTransport):
    """A transport that does not read without end."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        came = 0
        for piece in self._stream:
            came += len(piece)
            if came > _MAX_PAGE:
                raise HostileError(f"the hub answers with more than {_MAX_PAGE >> 20} MiB")
            yield piece

    def close(self) -> None:
        self._stream.close()


def _client(endpoint: str) -> httpx2.Client:
    """Return a client that gives the token to the hub alone, also where the next page of a list is elsewhere."""
    home = httpx2.URL(endpoint)

    def keep_token(request: httpx2.Request) -> None:
        if (request.url.scheme, request.url.netloc) != (home.scheme, home.netloc):
            request.headers.pop("Authorization", None)

    # Compressed answers grow after they were counted.
    return httpx2.Client(
        transport=_Bounded(),
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [keep_token]},
        follow_redirects=True,
        timeout=60,
    )


def parse(what: str, uri: str) -> Place:
    """Return the repository, revision and path of `hf://[owner/]name[@revision][/path]`."""
    rest = uri.removeprefix("hf://").strip("/")
    segments = rest.split("/")
    if len(segments) > 1 and segments[0] == f"{what}s":
        segments = segments[1:]
    count = 1 if "@" in segments[0] else min(2, len(segments))
    last, _, revision = segments[count - 1].partition("@")
    name = "/".join([*segments[: count - 1], last])
    below = unquote("/".join(segments[count:]))
    if not last or ".." in below.split("/"):
        raise InvalidError("the URI must read hf://OWNER/NAME, hf://NAME or hf://OWNER/NAME@REVISION/path")
    return Place(name, unquote(revision) or None, below)


def open_hub(request: Request, what: str) -> Hub:
    """Return the repository that a URI names."""
    env = request.env
    place = parse(what, request.uri)
    place = place._replace(revision=place.revision or env.get("REVISION"))
    token = env.get("ACCESS_TOKEN") or env.get("HF_TOKEN") or ""
    endpoint = env.get("ENDPOINT") or env.get("HF_ENDPOINT") or "https://huggingface.co"
    huggingface_hub.set_client_factory(lambda: _client(endpoint))
    return Hub(HfApi(endpoint=endpoint, token=token or False), token, what, place)


def open_source(request: Request) -> Source:
    """Return what is read."""
    return Repository(open_hub(request, request.what))
