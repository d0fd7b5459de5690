"""What head and workers are told by their environment; the reference's names where it has one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.cache.errors import InvalidError
from trainplane.cache.manifest import BLOCK_BYTES, Source
from trainplane.cache.opening import PORT, Access
from trainplane.cache.placement import REPLICAS
from trainplane.cache.roster import MOST_MEMBERS
from trainplane.cache.serving import Door
from trainplane.cache.tickets import Signer
from trainplane.cache.written import SCHEME, Dataset

if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST_FILE: Final = 1 << 20
HEALTH_PORT: Final = 8080
DATA_PORT: Final = 50052


@dataclass(frozen=True)
class Settings:
    """Of one process of a cache."""

    door: Door
    access: Access = field(repr=False)
    signer: Signer = field(repr=False)
    health_port: int
    replicas: int
    head: str
    """HEAD_ADDRESS: where a worker finds the head."""
    name: str
    location: str
    """Of a worker: what clients reach it by."""
    disk: Path
    """CACHE_DIR: where a worker keeps its segments."""
    part_bytes: int
    """WRITE_BYTES: how much a worker keeps that is not committed; 0 is nine tenths of what its disk has free."""


@dataclass(frozen=True)
class Place:
    """Where a pod stands among those of its cache."""

    index: int
    """JOB_COMPLETION_INDEX: 0 is the head's."""
    size: int
    """CLUSTER_SIZE."""
    host: str
    """What the pod is called."""
    domain: str
    """CACHE_SUBDOMAIN: where its name is found."""
    port: int
    """Where it is probed and asked."""
    data_port: int
    """Where its rows are had."""
    idle: int
    """IDLE_SECONDS without a client after which a cache ends; 0 is never."""

    @property
    def address(self) -> str:
        """What other pods reach its rows by."""
        return f"{self.host}{self.domain and '.' + self.domain}:{self.data_port}"

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of those that hold rows: the pods of one indexed Job are numbered at the end of their names."""
        stem, _, number = self.host.rpartition("-")
        if self.size == 1 or not stem or number != str(self.index):
            return (self.host,) if self.size == 1 else ()
        return tuple(f"{stem}-{other}" for other in range(1, self.size))


def read_settings(host: str, port: str, env: Mapping[str, str]) -> Settings:
    """Return what an environment says, with each mistake named by its variable."""
    certificate, key = _file(env, "TLS_CERT_FILE"), _file(env, "TLS_KEY_FILE")
    if bool(certificate) != bool(key):
        raise InvalidError("of TLS_CERT_FILE and TLS_KEY_FILE one is set and the other is not", "set both or neither")
    token = _file(env, "CACHE_TOKEN_FILE").strip()
    door = Door(host, _number(port, "PORT", 0, 65535), certificate, key, token)
    name = env.get("WORKER_NAME") or os.uname().nodename
    scheme = door.location.partition("://")[0]
    return Settings(
        door=door,
        access=Access(_file(env, "TLS_CA_FILE"), token),
        signer=Signer(_file(env, "CACHE_KEY_FILE", needed=True).strip()),
        health_port=_number(env.get("HEALTH_PORT") or str(HEALTH_PORT), "HEALTH_PORT", 0, 65535),
        replicas=_number(env.get("REPLICAS") or str(REPLICAS), "REPLICAS", 1, 16),
        head=env.get("HEAD_ADDRESS", ""),
        name=name,
        location=f"{scheme}://{address}" if (address := env.get("WORKER_ADDRESS", "")) else "",
        disk=Path(env.get("CACHE_DIR") or "/cache"),
        part_bytes=_number(env.get("WRITE_BYTES") or "0", "WRITE_BYTES", 0, 1 << 53),
    )


def read_place(env: Mapping[str, str]) -> Place:
    """Return where a pod of an indexed Job stands."""
    size = _number(env.get("CLUSTER_SIZE") or "1", "CLUSTER_SIZE", 1, MOST_MEMBERS)
    return Place(
        index=_number(env.get("JOB_COMPLETION_INDEX") or "0", "JOB_COMPLETION_INDEX", 0, size - 1),
        size=size,
        host=env.get("HOSTNAME") or os.uname().nodename,
        domain=env.get("CACHE_SUBDOMAIN", ""),
        port=_number(env.get("CACHE_PORT") or str(PORT), "CACHE_PORT", 0, 65535),
        data_port=_number(env.get("DATA_PORT") or str(DATA_PORT), "DATA_PORT", 0, 65535),
        idle=_number(env.get("IDLE_SECONDS") or "0", "IDLE_SECONDS", 0, 10**8),
    )


def read_source(env: Mapping[str, str]) -> Source:
    """Return what is served: METADATA_LOC's table, the folder of STORAGE_URI as FORMAT says, or what is written."""
    metadata, folder = env.get("METADATA_LOC", ""), env.get("STORAGE_URI", "")
    if folder.startswith(SCHEME):
        return _written(env, folder.removeprefix(SCHEME))
    if not metadata and (not folder or folder.startswith("cache://")):
        raise InvalidError("nothing says what to serve", "set METADATA_LOC to a table's metadata file, or STORAGE_URI")
    told: dict[str, Any] = {
        "kind": "iceberg" if metadata else env.get("FORMAT") or "parquet",
        "location": metadata or folder,
        "columns": tuple(column for column in env.get("COLUMNS", "").split(",") if column),
        "where": _json(env, "WHERE"),
        "sql": env.get("SQL", ""),
        "block_bytes": _number(env.get("BLOCK_BYTES") or str(BLOCK_BYTES), "BLOCK_BYTES", 1 << 10, 1 << 28),
    }
    try:
        return msgspec.convert(told, Source)
    except msgspec.ValidationError as error:
        raise InvalidError(f"FORMAT, COLUMNS, WHERE or SQL: {error}", 'WHERE is like [["label", ">=", 3]]') from None


def _written(env: Mapping[str, str], name: str) -> Source:
    if not env.get("CACHE_TOKEN_FILE"):
        raise InvalidError(
            f"STORAGE_URI is {SCHEME}{name[:60]} and CACHE_TOKEN_FILE is not set",
            "give it a token: anybody could write",
        )
    try:
        dataset = msgspec.convert(name, Dataset)
    except msgspec.ValidationError:
        raise InvalidError(
            f"STORAGE_URI: {name[:60]!r} is no name of a dataset", "give a label of lower-case letters, digits and -"
        ) from None
    size = _number(env.get("BLOCK_BYTES") or str(BLOCK_BYTES), "BLOCK_BYTES", 1 << 10, 1 << 28)
    return Source(kind="written", location=dataset, block_bytes=size)


def _json(env: Mapping[str, str], name: str) -> Any:
    try:
        return msgspec.json.decode(env.get(name) or "[]")
    except msgspec.DecodeError as error:
        raise InvalidError(f"{name} is no JSON: {error}") from None


def _file(env: Mapping[str, str], name: str, *, needed: bool = False) -> bytes:
    path = env.get(name)
    if not path:
        if needed:
            raise InvalidError(f"{name} is not set", "name a file that head and workers share")
        return b""
    try:
        with Path(path).open("rb") as file:
            return file.read(_LARGEST_FILE)
    except OSError as error:
        raise InvalidError(f"{name}: {path} cannot be read: {error.strerror}") from None


def _number(text: str, name: str, low: int, high: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18 or not low <= int(text) <= high:
        raise InvalidError(f"{name} is {text[:40]!r}", f"give a number from {low} to {high}")
    return int(text)
