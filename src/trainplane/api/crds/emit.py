"""CustomResourceDefinitions and their files."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trainplane.api import names
from trainplane.api.crds.schema import schema_of
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

Manifest = dict[str, Any]

HEADER = "# Emitted from src/trainplane/api by `make manifests`: edit the types, not this file.\n"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of the API and how the API server offers it."""

    name: str
    plural: str
    scope: str
    type: type[msgspec.Struct]
    has_status: bool = False
    columns: tuple[tuple[str, str, str], ...] = ()
    """What `kubectl get` shows: name, type, JSON path."""
    wide_columns: tuple[tuple[str, str, str], ...] = ()
    """What `kubectl get -o wide` shows beside these."""

    @property
    def file_name(self) -> str:
        """The name of the CRD's file."""
        return f"{names.GROUP}_{self.plural}.yaml"


KINDS = (
    Kind(
        names.TRAIN_JOB,
        "trainjobs",
        "Namespaced",
        TrainJob,
        has_status=True,
        columns=(
            ("State", "string", ".status.phase"),
            ("Ready", "string", ".status.nodesReady"),
            ("Runtime", "string", ".spec.runtimeRef.name"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
        wide_columns=(("Reason", "string", ".status.reason"),),
    ),
    Kind(names.TRAINING_RUNTIME, "trainingruntimes", "Namespaced", TrainingRuntime),
    Kind(names.CLUSTER_TRAINING_RUNTIME, "clustertrainingruntimes", "Cluster", ClusterTrainingRuntime),
)


def crd(kind: Kind) -> Manifest:
    """Return the CustomResourceDefinition of a kind."""
    version: Manifest = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of(kind.type)},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [
            *({"name": name, "type": column_type, "jsonPath": path} for name, column_type, path in kind.columns),
            *(
                {"name": name, "type": column_type, "jsonPath": path, "priority": 1}
                for name, column_type, path in kind.wide_columns
            ),
        ]
    if kind.has_status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
            },
            "scope": kind.scope,
            "versions": [version],
        },
    }


@functools.cache
def files() -> Mapping[str, str]:
    """Return the text of every CRD's file by its name. The same types give the same bytes."""
    import yaml  # noqa: PLC0415 only the emitter writes YAML; importing the package must stay light

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    texts = {
        kind.file_name: HEADER + yaml.dump(crd(kind), Dumper=dumper, sort_keys=True, width=110, allow_unicode=True)
        for kind in KINDS
    }
    return MappingProxyType(texts)
