"""PodGroups of both gang schedulers on a cluster: their CRDs alone, since nothing is scheduled here.

The reference looks for them when it starts. They let every field through, so that what an operator writes is what is
compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lab.cluster import Cluster

VERSIONS: Final = {"scheduling.x-k8s.io": "v1alpha1", "scheduling.volcano.sh": "v1beta1"}
"""The version of each group's PodGroup."""
KINDS: Final = tuple(f"PodGroup.{group}" for group in VERSIONS)
"""What the two kinds are called here, which both call themselves PodGroup."""


def install(cluster: Cluster) -> None:
    """Install the CRDs. To be called before an operator is installed."""
    cluster.apply(*(_crd(group, version) for group, version in VERSIONS.items()))
    cluster.wait_established(*(f"podgroups.{group}" for group in VERSIONS))


def _crd(group: str, version: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"podgroups.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}},
            ],
        },
    }
