"""A user's namespace on a cluster of two machines, and the examples of the pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from lab import node
from lab.images import reference as image
from lab.paths import REPOSITORY
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Iterator

Tree = dict[str, Any]

MACHINES: Final = (node.NAME, node.SECOND)
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_BLOCK: Final = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Site(User):
    """A user whose claims many pods can mount."""

    def share(self, claim: Tree) -> Tree:
        """Return the volume for a claim: a folder that both machines see, and that goes with the cluster."""
        folder = self.cluster.folder / "shared" / self.namespace
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        wanted, name = claim["spec"], claim["metadata"]["name"]
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{self.namespace}-{name}"},
            "spec": {
                "accessModes": wanted["accessModes"],
                "capacity": wanted["resources"]["requests"],
                "claimRef": {"namespace": self.namespace, "name": name},
                "hostPath": {"path": str(folder)},
            },
        }

    def apply_example(self, *documents: Tree) -> None:
        """Apply what a page shows, with the volumes that an admin of the cluster would have."""
        volumes = [self.share(one) for one in documents if one["kind"] == "PersistentVolumeClaim"]
        self.apply(*volumes, *documents)

    def places(self, job: str) -> dict[int, str]:
        """Return the machine of each pod of a training, by its index; "" is where none was found yet."""
        pods = self.pods(job, "node")
        return {int(pod["metadata"]["labels"][INDEX]): pod["spec"].get("nodeName", "") for pod in pods}


def examples(page: str) -> dict[str, list[Tree]]:
    """Return the documents that a page shows, by the heading they stand under; of them only images change."""
    found: dict[str, list[Tree]] = {}
    for section in re.split(r"^## ", (REPOSITORY / "docs" / page).read_text(), flags=re.MULTILINE)[1:]:
        documents = [one for block in _BLOCK.findall(section) for one in yaml.safe_load_all(block)]
        for pod in (pod for document in documents for pod in _pods(document)):
            pod["terminationGracePeriodSeconds"] = 0
            for container in (*pod["containers"], *pod.get("initContainers", ())):
                container |= {"image": image("python"), "imagePullPolicy": "Never"}
        found[section.partition("\n")[0]] = documents
    return found


def _pods(document: Tree) -> Iterator[Tree]:
    for job in document.get("spec", {}).get("template", {}).get("spec", {}).get("replicatedJobs", []):
        yield job["template"]["spec"]["template"]["spec"]
