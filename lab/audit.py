"""The API server's audit log of what service accounts asked for, to be compared with the roles that they have.

With `TRAINPLANE_LAB_AUDIT=FOLDER` every cluster has one, in a file of that folder that outlives the cluster.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import yaml

VARIABLE: Final = "TRAINPLANE_LAB_AUDIT"
_MEGABYTES: Final = 20_000
"""The size at which a log would be continued in a second file: the shipped 100 MB are a few thousand jobs."""


def is_wanted() -> bool:
    """Return whether every cluster shall have a log."""
    return bool(os.environ.get(VARIABLE))


def path_of(cluster: Path) -> Path:
    """Return where the log of a cluster is, by the cluster's own folder."""
    wanted = os.environ.get(VARIABLE)
    return Path(wanted).resolve() / f"{cluster.name}.log" if wanted else cluster / "audit.log"


def flags(cluster: Path, *, everyone: bool = False) -> list[str]:
    """Return the API server's flags: which service account asked for what is written, and nothing of the objects.

    `everyone`: so is what engines ask for that run as administrators, of a cluster whose requests are all counted.
    """
    accounts: list[dict[str, Any]] = [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ]
    rules = [{"level": "Metadata"}] if everyone else accounts
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    file, log = cluster / "audit.yaml", path_of(cluster)
    file.write_text(yaml.safe_dump(policy))
    log.parent.mkdir(parents=True, exist_ok=True)
    return [f"--audit-policy-file={file}", f"--audit-log-path={log}", f"--audit-log-maxsize={_MEGABYTES}"]


def read(log: Path) -> list[dict[str, Any]]:
    """Return the events of a log; a line may be half written, for API servers are killed."""
    return [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line.endswith("}")]
