"""A hub of models inside a cluster, which its pods reach by the node's address.

`python -m tests.initializers.chain.hub HOST FILES`: what it serves lies in a file of JSON, by `owner/name/path`. Its
own port serves the hub's API; large files lie behind a redirect to another one. It wants no token, for none is sent to
a server without encryption.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.paths import REPOSITORY
from lab.processes import wait_for
from tests.unit.initializers.servers import Site, hub

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lab.cluster import Cluster

_PORT: Final = 7071


def start(cluster: Cluster, files: Mapping[str, str]) -> str:
    """Start it, wait until it answers, and return its URL."""
    listed = cluster.folder / "hub.json"
    listed.write_text(json.dumps(dict(files)))
    command = [sys.executable, "-m", "tests.initializers.chain.hub", cluster.address, str(listed)]
    paths = f"{REPOSITORY}:{REPOSITORY / 'src'}"
    cluster.start("hub-of-models", command, {"PYTHONPATH": paths})
    probe = ["python3", "-c", f"import socket; socket.create_connection(({cluster.address!r}, {_PORT}), 1)"]
    log = cluster.log("hub-of-models")
    wait_for("the hub", lambda: cluster.sandbox.run(probe, check=False).code == 0, seconds=30, log=log)
    return f"http://{cluster.address}:{_PORT}"


if __name__ == "__main__":
    content = {name: text.encode() for name, text in json.loads(Path(sys.argv[2]).read_text()).items()}
    with hub(Site(content), Site(content), sys.argv[1], _PORT):
        signal.pause()
