"""A cluster's etcd: how it is started, and requests to it past the API server."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

from lab.engines import binary
from lab.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path

    from lab.sandbox import Sandbox

_ADDRESS, _PORT = "127.0.0.1", 2379
CLIENT = f"http://{_ADDRESS}:{_PORT}"
_MEMBER, _PEER = "default", f"http://{_ADDRESS}:2380"
"""The one member, and where its peers would find it."""
_QUOTA_BYTES = 8 << 30
"""etcd's own default of 2 GiB ends below 100,000 TrainJobs with their JobSets."""


def data(folder: Path) -> Path:
    """Return where the etcd of a cluster with this folder keeps its data."""
    return folder / "etcd"


def command(folder: Path) -> list[str]:
    """Return what starts the etcd of a cluster with this folder."""
    return [
        binary("etcd"),
        f"--data-dir={data(folder)}",
        f"--listen-client-urls={CLIENT}",
        f"--advertise-client-urls={CLIENT}",
        f"--listen-peer-urls={_PEER}",
        *membership(),
        "--unsafe-no-fsync",
        f"--quota-backend-bytes={_QUOTA_BYTES}",
        "--log-level=warn",
    ]


def membership() -> list[str]:
    """Return the flags that say who is a member, to etcd and to who restores its data."""
    return [f"--name={_MEMBER}", f"--initial-cluster={_MEMBER}={_PEER}", f"--initial-advertise-peer-urls={_PEER}"]


def ask(sandbox: Sandbox, path: str, body: dict[str, Any]) -> bytes:
    """Send a request to the etcd of a sandbox, as JSON; return its answer, of a stream one line for each message."""
    with sandbox.entered():
        connection = http.client.HTTPConnection(_ADDRESS, _PORT, timeout=30)
        connection.connect()
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        message = f"etcd answered {path} with {response.status}: {answer.decode(errors='replace')}"
        raise LabError(message)
    return answer
