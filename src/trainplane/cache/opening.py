"""A line to the head, for clients and workers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import wire
from trainplane.cache.errors import InvalidError, UnreachableError
from trainplane.cache.manifest import LARGEST, Manifest, read_manifest
from trainplane.cache.written import Commit, Committed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.cache.tickets import Signer

PORT: Final = 50051
_SECONDS: Final = 30.0
_COMMIT_SECONDS: Final = 120.0
_RECONNECT: Final = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
"""gRPC waits for up to two minutes before it tries a server again that was away; a worker is back in seconds."""


@dataclass(frozen=True)
class Access:
    """How servers of a cache are reached: what a client must trust and bring."""

    roots: bytes = field(default=b"", repr=False)
    """PEM of the authority whose certificates are believed; empty: the machine's own."""
    token: bytes = field(default=b"", repr=False)

    def connect(self, location: str) -> Any:
        """Return a Flight client; a connection is made when it is first needed."""
        if "://" not in location:
            location = f"grpc{'+tls' if self.roots else ''}://{location}"
        if ":" not in location.partition("://")[2]:
            location = f"{location}:{PORT}"
        trusted = {"tls_root_certs": self.roots} if self.roots else {}
        return fl.FlightClient(location, generic_options=_RECONNECT, **trusted)

    def options(self, seconds: float) -> Any:
        """Return how long a call may take, with the token."""
        headers = [(b"authorization", b"Bearer " + self.token)] if self.token else []
        return fl.FlightCallOptions(timeout=seconds, headers=headers)


def endpoint(env: Mapping[str, str] = os.environ) -> str:
    """Return where the head is, as a training pod is told."""
    if said := env.get("DATA_CACHE_ENDPOINT"):
        return said
    if name := env.get("TRAIN_JOB_NAME"):
        return f"{name}-cache-service:{PORT}"
    raise InvalidError("neither DATA_CACHE_ENDPOINT nor TRAIN_JOB_NAME is set", "name the cache's head: HOST:PORT")


class HeadLine:
    """A line to the head; each call is an answer or an error of ours."""

    def __init__(self, location: str, access: Access | None = None) -> None:
        self._location, self.access = location, access or Access()
        self._client = self.access.connect(location)

    def hello(self, signer: Signer, hello: wire.Hello) -> wire.Welcome:
        """Say what a worker holds; return what it should, if it is the cache's own head that says so."""
        answer = self._ask(wire.HELLO, signer.sign("hello", msgspec.json.encode(hello)))
        return wire.decoded(signer.check("welcome", answer), wire.Welcome)

    def open(self) -> wire.Opened:
        """Return what a client needs to read."""
        return wire.decoded(self._ask(wire.OPEN), wire.Opened)

    def status(self) -> wire.Status:
        """Return how far loading is."""
        return wire.decoded(self._ask(wire.STATUS), wire.Status)

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of a name: that one, or an error."""
        return read_manifest(self._ask(wire.MANIFEST, limit=LARGEST), name)

    def places(self, descriptor: Any) -> list[str]:
        """Return where a part is to be written, as the head shares parts out."""
        try:
            info = self._client.get_flight_info(descriptor, self.access.options(_SECONDS))
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise wire.from_flight(error, f"the head at {self._location}") from None
        return [location.uri.decode() for endpoint in info.endpoints for location in endpoint.locations]

    def commit(self, commit: Commit) -> Committed:
        """Seal a dataset; return what is served from now on."""
        return wire.decoded(self._ask(wire.COMMIT, msgspec.json.encode(commit), seconds=_COMMIT_SECONDS), Committed)

    def adopt(self, signer: Signer, manifest: Manifest) -> None:
        """Tell a head that restarted what was committed."""
        self._ask(wire.ADOPT, signer.sign("adopt", manifest.encoded))

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _ask(self, action: str, content: bytes = b"", limit: int = wire.LARGEST, seconds: float = _SECONDS) -> bytes:
        try:
            answers = self._client.do_action(fl.Action(action, content), self.access.options(seconds))
            body = next(iter(answers)).body
            if body.size > limit:
                raise InvalidError(f"the head at {self._location} answered with {body.size} bytes")
            return bytes(body.to_pybytes())
        except StopIteration:
            raise UnreachableError(f"the head at {self._location} answered with nothing") from None
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            told = wire.from_flight(error, f"the head at {self._location}")
            if isinstance(told, UnreachableError):
                # A new connection looks for a name at once that was not there yet; an old one waits for minutes.
                self._client = self.access.connect(self._location)
            raise told from None
