"""One of the two clusters that the SDK is tried on: the reference's or ours, with everything else the same."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import yaml

from lab import node, profiles, reference, trainplane
from tests.sdk.official import documents
from tests.sdk.official.admin import Admin
from tests.sdk.official.sdk import Sdk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster

Name = Literal["reference", "ours"]
SIDES: tuple[Name, ...] = ("reference", "ours")
_CAPACITY = {"nvidia.com/gpu": "128", documents.SLOT: "1"}
"""What the node offers in name only: the scheduler counts it, no pod looks for it."""


@dataclass(frozen=True)
class Side:
    """A cluster, its administrator, and a practitioner with the official SDK."""

    name: Name
    admin: Admin
    """In the practitioner's namespace."""
    sdk: Sdk

    def another_sdk(self) -> Sdk:
        """Return an interpreter that does nothing else, so that its requests can be counted."""
        return Sdk(kubeconfig(self.admin.cluster), documents.USER)

    def elsewhere(self, *more: dict[str, Any]) -> Admin:
        """Return the administrator in a new namespace that holds these documents too; each is told the namespace."""
        namespace = f"{documents.USER}-{uuid.uuid4().hex[:6]}"
        for document in more:
            document["metadata"]["namespace"] = namespace
        self.admin.cluster.apply(*documents.home(namespace), *more)
        return Admin(self.admin.cluster, namespace)


@contextmanager
def sides() -> Iterator[dict[Name, Side]]:
    """Bring both up at the same time."""
    with ThreadPoolExecutor(len(SIDES)) as pool, ExitStack() as stack:
        # A cluster ends with the thread that started it, so the pool stays to the end.
        starting = {name: pool.submit(_start, name) for name in SIDES}
        for start in starting.values():
            if not start.exception():
                stack.callback(start.result().down)
        both = {}
        for name, start in starting.items():
            sdk = stack.enter_context(Sdk(kubeconfig(start.result()), documents.USER))
            both[name] = Side(name, Admin(start.result(), documents.USER), sdk)
        yield both


def _start(name: Name) -> Cluster:
    (cluster,) = profiles.up("node", f"sdk-{name}-{os.getpid()}", owned=True)
    try:
        for resource, amount in _CAPACITY.items():
            patch = yaml.safe_dump({"status": {"capacity": {resource: amount}}})
            cluster.kubectl("patch", "node", node.NAME, "--subresource=status", "--type=merge", f"--patch={patch}")
        (trainplane if name == "ours" else reference).install(cluster)
        cluster.apply(*documents.rights(), *documents.published())
        runtimes = documents.runtimes()
        if name == "reference":
            for runtime in runtimes:
                runtime["spec"].pop("runPolicy", None)  # its CRDs don't have the field, and kubectl refuses it
        cluster.apply(*runtimes)
    except BaseException:
        cluster.down()
        raise
    return cluster


def kubeconfig(cluster: Cluster) -> Path:
    """Write the practitioner's kubeconfig: a token with their rights and no more, and their namespace."""
    token = cluster.kubectl("create", "token", documents.USER, f"--namespace={documents.USER}", "--duration=2h").stdout
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": documents.USER, "user": {"token": token.strip()}}]
    (context,) = config["contexts"]
    context["context"] |= {"user": documents.USER, "namespace": documents.USER}
    path = cluster.folder / f"{documents.USER}-{uuid.uuid4().hex[:6]}.kubeconfig"  # others may be reading the former
    path.write_text(yaml.safe_dump(config))
    return path
