"""The administrator whom a page addresses: a shell with kubectl, and a context for each cluster of the fleet."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lab.engines import binary
from lab.paths import REPOSITORY
from tests.fleet.guide.page import says

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from lab.processes import Result
    from tests.fleet.guide.page import Command


@dataclass(frozen=True)
class Admin:
    """Stands where the hub is: addresses that this shell reaches, the hub reaches too."""

    hub: Cluster
    kubeconfig: Path
    tools: str = ""
    """A folder whose programs come before the machine's."""

    @classmethod
    def of(cls, clusters: dict[str, Cluster], folder: Path, tools: str = "") -> Admin:
        """Write a kubeconfig with these contexts; the first is the hub's."""
        kubeconfig: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
        for name, cluster in clusters.items():
            own = yaml.safe_load(cluster.remote_kubeconfig())
            kubeconfig["clusters"].append(own["clusters"][0] | {"name": name})
            kubeconfig["users"].append(own["users"][0] | {"name": name})
            kubeconfig["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        path = folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(kubeconfig))
        return cls(next(iter(clusters.values())), path, tools)

    def run(self, script: str, *, check: bool = True) -> Result:
        """Run a script as bash does that stops at the first failure, in the root of the repository."""
        path = ":".join(filter(None, (self.tools, str(Path(binary("kubectl")).parent), os.environ["PATH"])))
        environment = ["env", f"--chdir={REPOSITORY}", f"KUBECONFIG={self.kubeconfig}", f"PATH={path}"]
        return self.hub.sandbox.run([*environment, "bash", "-euo", "pipefail", "-c", script], check=check)

    def follow(self, command: Command, page: str) -> None:
        """Run a command of a page: it must succeed, and print what the page shows."""
        done = self.run(command.script, check=False)
        where = f"{page}, line {command.line}"
        assert done.code == 0, f"{where} fails:\n{done.output}"
        assert command.prints is None or says(command.prints, done.output), f"{where} prints:\n{done.output}"
