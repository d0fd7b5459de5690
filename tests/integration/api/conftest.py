"""The API server with our CRDs, and beside them, under groups of their own, those of each release of the reference."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import yaml

from lab.processes import wait_for
from tests.integration.api import releases

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = Path(__file__).parents[3] / "manifests" / "crds"


class Answer(Protocol):
    """What kubectl said."""

    @property
    def code(self) -> int: ...
    @property
    def output(self) -> str: ...


class Cluster(Protocol):
    """The little that these tests need of a cluster."""

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> Answer: ...


@dataclass(frozen=True)
class Server:
    """An API server that serves our CRDs; objects live in a namespace of the run's own."""

    cluster: Cluster
    namespace: str

    def create(self, *manifests: dict[str, Any], dry_run: bool = True) -> Answer:
        """Create objects, strictly validated; the answer names those that were accepted, one a line."""
        arguments = ["create", "--validate=strict", f"--namespace={self.namespace}", "--output=name", "--filename=-"]
        if dry_run:
            arguments.append("--dry-run=server")
        return self.cluster.kubectl(*arguments, stdin=json.dumps(_listed(manifests)), check=False)

    def stored(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return an object as the API server would store it: pruned and defaulted."""
        answer = self.cluster.kubectl(
            "create",
            "--dry-run=server",
            "--validate=strict",
            f"--namespace={self.namespace}",
            "--output=json",
            "--filename=-",
            stdin=json.dumps(manifest),
        )
        found: dict[str, Any] = json.JSONDecoder().raw_decode(answer.output)[0]
        return found

    def patch(self, resource: str, patch: dict[str, Any], *, dry_run: bool = True) -> Answer:
        """Merge-patch a stored object."""
        arguments = ["patch", resource, f"--namespace={self.namespace}", "--type=merge", f"--patch={json.dumps(patch)}"]
        return self.cluster.kubectl(*arguments, *(["--dry-run=server"] if dry_run else []), check=False)


def wait_established(cluster: Cluster, *crds: str) -> None:
    """Wait until CRDs (`crd/PLURAL.GROUP`) are served, and kubectl can find them.

    The accepted name comes first: `kubectl wait --for=condition` fails on a CRD so new that it has no conditions yet.
    What discovery tells kubectl follows a moment after what the CRD says of itself.
    """
    for crd in crds:
        plural = crd.removeprefix("crd/").partition(".")[0]
        cluster.kubectl("wait", f"--for=jsonpath={{.status.acceptedNames.plural}}={plural}", "--timeout=60s", crd)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *crds)
    kinds = ",".join(crd.removeprefix("crd/") for crd in crds)
    wait_for(f"discovery of {kinds}", lambda: not cluster.kubectl("get", kinds, "-A", check=False).code, seconds=60)


def _listed(manifests: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return manifests[0] if len(manifests) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(manifests)}


@pytest.fixture(scope="session")
def server(cluster: Cluster) -> Iterator[Server]:
    """Return the API server with our CRDs, installed as a user would: by plain `kubectl apply`."""
    cluster.kubectl("apply", f"--filename={OURS}")
    wait_established(cluster, *(f"crd/{plural}.trainer.kubeflow.org" for plural in releases.PLURALS))
    namespace = "api-types"
    cluster.kubectl("create", "namespace", namespace, check=False)
    yield Server(cluster, namespace)
    cluster.kubectl("delete", "trainjobs", "--all", f"--namespace={namespace}", "--wait=false", check=False)


@pytest.fixture(scope="session")
def generations(server: Server) -> Server:
    """Return the API server with the CRDs of all releases, each under its own group."""
    for release in releases.ENGINES:
        crds = [releases.moved(crd, releases.group(release)) for crd in releases.crds(release).values()]
        text = "---\n".join(yaml.safe_dump(crd) for crd in crds)
        server.cluster.kubectl("apply", "--server-side", "--filename=-", stdin=text)
        wait_established(server.cluster, *(f"crd/{crd['metadata']['name']}" for crd in crds))
    return server
