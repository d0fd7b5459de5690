"""Backups of a cluster's etcd: taken while it runs, and restored as an admin restores one, with etcdutl.

Of objects a restore leaves what the backup has: contents, uids and resourceVersions. What differs is where the server
goes on: from the backup's revision, so that it gives versions a second time, or with `--bump-revision` from one that
is so much higher. `tests/integration/kube/test_restored.py` holds both to that.
"""

from __future__ import annotations

import base64
import json
import shutil
from typing import TYPE_CHECKING

from lab import etcd
from lab.engines import binary
from lab.processes import run

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster


def save(cluster: Cluster, path: Path) -> None:
    """Write what etcd holds now to a file, as `etcdctl snapshot save` does; nobody is disturbed."""
    parts = [
        json.loads(line)["result"] for line in etcd.ask(cluster.sandbox, "/v3/maintenance/snapshot", {}).splitlines()
    ]
    path.write_bytes(b"".join(base64.b64decode(part.get("blob", "")) for part in parts))


def restore(cluster: Cluster, path: Path, *, bump: int = 0) -> None:
    """Set etcd back to a backup and wait until the API server is ready; whoever else runs is left alone.

    Args:
        cluster: whose etcd and API server are killed and started again.
        path: what `save` wrote.
        bump: how much higher than the backup's revision the server goes on, with all before marked as compacted; 0
            for a restore without these flags.
    """
    for engine in ("kube-apiserver", "etcd"):
        cluster.kill(engine)
    data = etcd.data(cluster.folder)
    shutil.rmtree(data)
    higher = (f"--bump-revision={bump}", "--mark-compacted") if bump else ()
    run([binary("etcdutl"), "snapshot", "restore", str(path), f"--data-dir={data}", *etcd.membership(), *higher])
    for engine in ("etcd", "kube-apiserver"):
        cluster.revive(engine)
    cluster.wait_ready()
