"""CustomResourceDefinitions and their files."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api.crds.schema import schema_of
from trainplane.api.legacy.names import CONVERT_PATH
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import msgspec

Manifest = dict[str, Any]

HEADER = "# Emitted from src/trainplane/api by `make manifests`: edit the types, not this file.\n"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a kind, as it is written and read."""

    name: str
    type: type[msgspec.Struct]
    columns: tuple[tuple[str, str, str], ...] = ()
    """What `kubectl get` shows: name, type, JSON path."""
    wide_columns: tuple[tuple[str, str, str], ...] = ()
    """What `kubectl get -o wide` shows beside these."""
    has_status: bool = False
    scaled: str = ""
    """The field of the spec with the workers that `kubectl scale` sets the number of; empty for none."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of the API and how the API server offers it."""

    name: str
    plural: str
    scope: str
    versions: tuple[Version, ...]
    """The first is stored. Objects of the others are converted by the operator's webhook."""
    group: str = names.GROUP
    singular: str = ""
    """The name of one object, where it is not the kind's in small letters."""

    @property
    def file_name(self) -> str:
        """The name of the CRD's file."""
        return f"{self.group}_{self.plural}.yaml"


def _runtimes(name: str, plural: str, scope: str, type_: type[msgspec.Struct]) -> Kind:
    return Kind(name, plural, scope, (Version(names.VERSION, type_),))


KINDS: Final = (
    Kind(
        names.TRAIN_JOB,
        "trainjobs",
        "Namespaced",
        (
            Version(
                names.VERSION,
                TrainJob,
                columns=(
                    ("State", "string", ".status.phase"),
                    ("Ready", "string", ".status.nodesReady"),
                    ("Runtime", "string", ".spec.runtimeRef.name"),
                    ("Age", "date", ".metadata.creationTimestamp"),
                ),
                wide_columns=(("Reason", "string", ".status.reason"),),
                has_status=True,
            ),
        ),
    ),
    _runtimes(names.TRAINING_RUNTIME, "trainingruntimes", "Namespaced", TrainingRuntime),
    _runtimes(names.CLUSTER_TRAINING_RUNTIME, "clustertrainingruntimes", "Cluster", ClusterTrainingRuntime),
)


def crd(kind: Kind) -> Manifest:
    """Return the CustomResourceDefinition of a kind."""
    spec: Manifest = {
        "group": kind.group,
        "names": {
            "kind": kind.name,
            "listKind": f"{kind.name}List",
            "plural": kind.plural,
            "singular": kind.singular or kind.name.lower(),
        },
        "scope": kind.scope,
        "versions": [_version(version, storage=version is kind.versions[0]) for version in kind.versions],
    }
    if len(kind.versions) > 1:
        spec["conversion"] = CONVERSION
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": spec,
    }


CONVERSION: Final[Manifest] = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {
            "service": {
                "name": "kubeflow-trainer-controller-manager",
                "namespace": "kubeflow-system",
                "path": CONVERT_PATH,
            }
        },
        "conversionReviewVersions": ["v1"],
    },
}
"""Who converts: the operator, under the name and in the namespace that `manifests/` installs it by. Its authority is
missing, as in the webhook configurations: the operator, or cert-manager, puts it in."""


def _version(version: Version, *, storage: bool) -> Manifest:
    manifest: Manifest = {
        "name": version.name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema_of(version.type)},
    }
    if version.columns:
        manifest["additionalPrinterColumns"] = [
            *({"name": name, "type": column_type, "jsonPath": path} for name, column_type, path in version.columns),
            *(
                {"name": name, "type": column_type, "jsonPath": path, "priority": 1}
                for name, column_type, path in version.wide_columns
            ),
        ]
    if version.has_status:
        manifest["subresources"] = {"status": {}, **_scale(version.scaled)}
    return manifest


def _scale(replica_specs: str) -> Manifest:
    if not replica_specs:
        return {}
    return {
        "scale": {
            "specReplicasPath": f".spec.{replica_specs}.Worker.replicas",
            "statusReplicasPath": ".status.replicaStatuses.Worker.active",
            "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
        }
    }


def files(kinds: Iterable[Kind] = KINDS) -> Mapping[str, str]:
    """Return the text of every CRD's file by its name. The same types give the same bytes."""
    return MappingProxyType({kind.file_name: _text(kind) for kind in kinds})


@functools.cache
def _text(kind: Kind) -> str:
    import yaml  # noqa: PLC0415 only the emitter writes YAML; importing the package must stay light

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return HEADER + yaml.dump(crd(kind), Dumper=dumper, sort_keys=True, width=110, allow_unicode=True)
