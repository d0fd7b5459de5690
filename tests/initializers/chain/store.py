"""versitygw inside a cluster: an S3 server that its pods reach by the node's address."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lab.engines import binary
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lab.cluster import Cluster

KEY, SECRET = "tenant-key", "tenant-secret-1234"
BUCKET: Final = "bucket"
_PORT: Final = 7070
_PUT: Final = """
import json, pathlib, sys
import obstore
from obstore.store import S3Store
endpoint, bucket, key, secret, *folders = sys.argv[1:]
store = S3Store(bucket, config={"access_key_id": key, "secret_access_key": secret, "endpoint": endpoint,
                                "region": "us-east-1"}, client_options={"allow_http": True})
for name, text in json.load(sys.stdin).items():
    obstore.put(store, name, text.encode())
for folder, prefix in [folders] if folders else []:
    for path in pathlib.Path(folder).iterdir():
        obstore.put(store, f"{prefix}/{path.name}", path)
"""


@dataclass(frozen=True)
class Store:
    """The server of one cluster, with a bucket."""

    cluster: Cluster

    @classmethod
    def start(cls, cluster: Cluster) -> Store:
        """Start it, and wait until it answers."""
        root = cluster.folder / "store"
        (root / BUCKET).mkdir(parents=True)
        command = [binary("versitygw"), "--port", f"0.0.0.0:{_PORT}", "--quiet", "--keep-alive", "posix", str(root)]
        cluster.start("versitygw", command, {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET})
        probe = ["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {_PORT}), 1)"]
        wait_for(
            "versitygw",
            lambda: cluster.sandbox.run(probe, check=False).code == 0,
            seconds=30,
            log=cluster.log("versitygw"),
        )
        return cls(cluster)

    @property
    def endpoint(self) -> str:
        """Where pods find it."""
        return f"http://{self.cluster.address}:{_PORT}"

    def put(self, objects: Mapping[str, str]) -> None:
        """Put objects into the bucket."""
        self._put(stdin=json.dumps(dict(objects)))

    def send(self, folder: Path, prefix: str) -> None:
        """Put the files of a folder into the bucket."""
        self._put(str(folder), prefix, stdin="{}")

    def _put(self, *folder: str, stdin: str) -> None:
        words = [sys.executable, "-c", _PUT, self.endpoint, BUCKET, KEY, SECRET, *folder]
        self.cluster.sandbox.run(words, stdin=stdin)
