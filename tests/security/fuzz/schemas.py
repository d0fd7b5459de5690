"""The schemas of CRDs as the API server uses them: values made from one, objects pruned, filled and judged by one.

`Schema.grow` adds to an object what its schema allows, so that most inputs get past the schema and into the code behind
it. Words come from a small pool, so that names meet: a patch must name a job that is there to be merged.
"""

from __future__ import annotations

import functools
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from lab.engines import manifests
from lab.paths import REPOSITORY
from tests.security.fuzz.mutations import ODD_TEXTS
from trainplane.admission.schema_validation import judge
from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.security.fuzz.mutations import Mutator

Tree = dict[str, Any]

_WORDS: Final = ("a", "b", "data", "x-1", "node", "Always", "example.com/gpu", "", "0", "1", "true", "$(A)")
_NAMES: Final = (
    *("node", "node", "node", "launcher", "dataset-initializer", "model-initializer", "side", "a", "b", "data"),
    *("A", "PET_NNODES", "PET_NPROC_PER_NODE", "TF_CONFIG", "OMPI_MCA_orte_default_hostfile", "JAX_NUM_PROCESSES"),
    *("cpu", "memory", "nvidia.com/gpu", "torch-distributed", "deepspeed-distributed", "STORAGE_URI"),
)
_AMOUNTS: Final = ("1", "2", "500m", "1500m", "4Gi", "128Mi", 3, 0, "0", "1000m", "0.5", "1e3", "-1", "1Ei", "9" * 18)
_KEYS: Final = (
    *("a", "b", "example.com/c", "cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu"),
    *(names.LABEL_FRAMEWORK, names.LABEL_ANCESTOR, names.LABEL_QUEUE, names.LABEL_SUPPORT, "kubernetes.io/hostname"),
)
_MANAGERS: Final = (
    "example.com/me",
    "a.example.com/x",
    "kueue.x-k8s.io/manager",
    names.PATCH_MANAGER_OLDER_FIELDS,
    "x",
)
_TIMES: Final = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456Z", "2025-06-30T12:00:00+02:00")
_BY_FIELD: Final[dict[str, tuple[Any, ...]]] = {
    "name": _NAMES,
    "jobName": ("node", "launcher", "a"),
    "manager": _MANAGERS,
    "apiGroup": (names.GROUP, names.GROUP, names.LEGACY_GROUP),
    "kind": (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME),
    "managedBy": (names.MANAGED_BY_TRAINER, names.MANAGED_BY_TRAINER, names.MANAGED_BY_MULTIKUEUE),
    "storageUri": ("hf://a/b", "s3://bucket/path", "", "pvc://claim/path", "cache://x/y?a=b", "hf://", "x"),
    "mountPath": ("/a", "/b", "/workspace", "a", "/"),
    "image": ("image", "example.com/i:1", ""),
    "numNodes": (1, 2, 3, 4, 0, 16, 1000),
    "minNodes": (1, 2, 4),
    "maxNodes": (1, 2, 4, 8),
    "replicas": (1, 1, 1, 0, 2),
    "parallelism": (1, 2, 3),
    "completions": (1, 2, 3),
    "numProcPerNode": (1, 2, 8, "auto", "gpu", "cpu", "4"),
    "mpiImplementation": ("OpenMPI", "Intel", "IntelMPI", "MPICH"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "operator": ("Exists", "Equal", "In", "NotIn", "Any", "All", "DoesNotExist"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule"),
}


class Schema:
    """One schema."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def below(self, *path: str) -> Schema:
        """Return the schema of a field; a list is stepped into without a word."""
        tree = self.tree
        for name in path:
            tree = tree.get("items", tree)["properties"][name]
        return Schema(tree)

    def problems(self, value: Any, old: Any = None) -> list[str]:
        """Return what the API server would refuse: by the schema's keywords, then by its rules (CEL)."""
        found = judge(value, self.tree, old=old)
        told = [f"{'.'.join(map(str, problem.path))}: {problem.text}" for problem in found]
        return told or list(_wrong_times(value, self.tree))

    def admit(self, value: Any) -> Any:
        """Return an object as the API server has it after decoding: unknown fields dropped, defaults filled in."""
        return _admitted(value, self.tree)

    def value(self, mutator: Mutator, field: str = "") -> Any:
        """Return a value of this schema."""
        return _value(self.tree, mutator, field, 0)

    def grow(self, value: Any, mutator: Mutator) -> None:
        """Add to an object, in place, a field or entry somewhere that the schema allows."""
        _grow(value, self.tree, mutator)


@functools.cache
def _crd(path: Path) -> Schema:
    document = yaml.load(path.read_text(), yaml.CSafeLoader)
    stored = next(version for version in document["spec"]["versions"] if version["storage"])
    return Schema(stored["schema"]["openAPIV3Schema"])


def ours(plural: str) -> Schema:
    """Return the schema of one of our kinds."""
    return _crd(REPOSITORY / f"manifests/crds/{names.GROUP}_{plural}.yaml")


def jobset() -> Schema:
    """Return the schema of JobSets, whose own we do not write."""
    (path,) = (manifests("jobset") / "config/components/crd/bases").glob("*_jobsets.yaml")
    return _crd(path)


# -- as the API server does -----------------------------------------------------------------------------------------


def _admitted(value: Any, schema: Tree) -> Any:
    if isinstance(value, dict) and schema.get("type") == "object":
        known, others = schema.get("properties"), schema.get("additionalProperties")
        if known is None and not isinstance(others, dict):
            return value  # metadata: the API server has its own rules for it
        kept = {}
        for name, below in value.items():
            part = known[name] if known is not None and name in known else others
            if isinstance(part, dict) and not (below is None and "default" in part):
                kept[name] = _admitted(below, part)
        for name, part in (known or {}).items():
            if "default" in part and name not in kept:
                kept[name] = part["default"]
        return kept
    if isinstance(value, list) and schema.get("type") == "array":
        return [_admitted(below, schema["items"]) for below in value]
    return value


def _wrong_times(value: Any, schema: Tree) -> Iterator[str]:
    """Yield what must be a time and is none; `judge` leaves that format to the API server."""
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name in value:
                yield from _wrong_times(value[name], part)
    elif isinstance(value, list):
        for entry in value:
            yield from _wrong_times(entry, schema["items"])
    elif schema.get("format") == "date-time":
        try:
            msgspec.convert(value, datetime)
        except msgspec.ValidationError as error:
            yield str(error)


# -- values ---------------------------------------------------------------------------------------------------------


def _value(schema: Tree, mutator: Mutator, field: str, depth: int) -> Any:
    if "enum" in schema:
        return mutator.pick(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return mutator.pick(_BY_FIELD.get(field, _AMOUNTS))
    match schema.get("type"):
        case "object":
            value: Any = _object(schema, mutator, depth)
        case "array":
            count = max(schema.get("minItems", 0), mutator.few(3))
            value = [_value(schema["items"], mutator, field, depth + 1) for _ in range(count)]
        case "string":
            value = _text(schema, mutator, field)
        case "integer":
            value = _number(schema, mutator, field)
        case "boolean":
            value = mutator.chance(0.5)
        case _:
            value = mutator.pick((0.5, 1, 1e9))
    return value


def _object(schema: Tree, mutator: Mutator, depth: int) -> Tree:
    known = schema.get("properties")
    if known is None:
        extra = schema.get("additionalProperties")
        if not isinstance(extra, dict):
            return {}
        return {mutator.pick(_KEYS): _value(extra, mutator, "", depth + 1) for _ in range(mutator.few(3))}
    chosen = list(schema.get("required", ()))
    optional = _optional(schema)
    if optional and depth < 6:
        chosen += [mutator.pick(optional) for _ in range(mutator.few(3))]
    return {name: _value(known[name], mutator, name, depth + 1) for name in chosen}


_OPTIONAL: dict[int, list[str]] = {}
"""By the identity of a schema; schemas live as long as the process."""


def _optional(schema: Tree) -> list[str]:
    found = _OPTIONAL.get(id(schema))
    if found is None:
        found = _OPTIONAL[id(schema)] = sorted(set(schema["properties"]) - {"metadata", "status", "apiVersion"})
    return found


def _text(schema: Tree, mutator: Mutator, field: str) -> str:
    if schema.get("format") == "date-time":
        return mutator.pick(_TIMES)
    text = str(mutator.pick(_BY_FIELD.get(field, _WORDS)))
    if mutator.chance(0.06):
        text = mutator.pick(ODD_TEXTS)
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, text):
        text = "1"
    return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), "a")


def _number(schema: Tree, mutator: Mutator, field: str) -> int:
    least = schema.get("minimum", 0)
    if mutator.chance(0.05):
        top = schema.get("maximum", 2**31 - 1 if schema.get("format") == "int32" else 2**63 - 1)
        return int(mutator.pick((least, top, least - 1 if "minimum" not in schema else least, top // 2)))
    chosen = mutator.pick(_BY_FIELD.get(field, (0, 1, 2, 5, 30)))
    return max(least, chosen) if isinstance(chosen, int) else int(least)


def _grow(value: Any, schema: Tree, mutator: Mutator) -> None:
    """Walk down some way that the value and its schema share, and add something there."""
    while True:
        if isinstance(value, list) and schema.get("type") == "array":
            if not value or mutator.chance(0.3):
                value.append(_value(schema["items"], mutator, "", 3))
                return
            value, schema = mutator.pick(value), schema["items"]
        elif isinstance(value, dict) and "properties" in schema:
            known = schema["properties"]
            deeper = [name for name in value if isinstance(value[name], dict | list) and name in known and value[name]]
            if not deeper or mutator.chance(0.25):
                optional = _optional(schema)
                if optional:
                    name = mutator.pick(optional)
                    value[name] = _value(known[name], mutator, name, 2)
                return
            name = mutator.pick(deeper)
            value, schema = value[name], known[name]
        else:
            if isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict):
                value[mutator.pick(_KEYS)] = _value(schema["additionalProperties"], mutator, "", 2)
            return
