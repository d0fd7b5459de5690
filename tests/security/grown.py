"""Objects as large as the API server lets them be, grown where the schema lets them grow.

A schema says where an object can grow: at lists, at maps, at texts. A `Growth` is one such place and its share of the
size; a grown object has some of them, each filled with the smallest entries that the schema takes, or with long texts.
Whether entries meet those of the other object (a patch its runtime's volumes, a variable the runtime's) is drawn, since
that is where they are compared.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from trainplane.api import names
from trainplane.api.crds.emit import KINDS, crd

Tree: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]
"""Names of fields from `spec`; `[]` is an entry of a list, `{}` a value of a map. The last step is what grows."""

STORED = 1_500_000
"""Bytes that etcd stores of one object."""
SENT = 3_000_000
"""Bytes of a request."""

_KEYED = {"replicatedJobs": "node", "containers": "node", "initContainers": "init", "runtimePatches": "manager"}
_MOMENT = "2026-01-01T00:00:00Z"
AMOUNTS = ("{}", "{}m", "{}Ki", "0.{}", "{}e900", "{}.5Gi", "-{}", "{}000")
"""Ways to write an amount: some are read and written anew at some cost."""


@functools.cache
def schema_of(plural: str) -> Tree:
    """Return the schema of the spec of one of our kinds."""
    kind = next(kind for kind in KINDS if kind.plural == plural)
    spec: Tree = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


@functools.cache
def places(plural: str) -> tuple[Path, ...]:
    """Return every place at which an object of a kind can grow, those that are read by us first."""
    found = list(_places(schema_of(plural), ()))
    return tuple(sorted(found, key=lambda path: (len(path), path)))


def _places(schema: Tree, path: Path) -> Any:
    for name, below in sorted(schema.get("properties", {}).items()):
        yield from _places(below, (*path, name))
    if "items" in schema:
        yield (*path, "[]")
        yield from _places(schema["items"], (*path, "[]"))
    if isinstance(schema.get("additionalProperties"), dict):
        yield (*path, "{}")
        yield from _places(schema["additionalProperties"], (*path, "{}"))


@dataclass(frozen=True)
class Growth:
    """One place, how often, and with how long texts."""

    path: Path
    count: int
    letters: int = 4
    prefix: str = "a"
    """Begins the names of the entries: two objects whose entries begin alike have the same."""
    amount: str = "{}"


def grown(plural: str, tree: Tree, *growths: Growth) -> Tree:
    """Return an object grown at some places of its spec; other parts are shared with the original."""
    for growth in growths:
        tree = {**tree, "spec": _grow(tree.get("spec"), schema_of(plural), growth.path, growth)}
    return tree


def _grow(value: Any, schema: Tree, path: Path, growth: Growth) -> Any:
    step, rest = path[0], path[1:]
    if step == "[]":
        entries = list(value or [])
        if not rest:
            most = schema.get("maxItems", growth.count)
            return entries + [_least(schema["items"], index, growth) for index in range(min(growth.count, most))]
        first = entries[0] if entries else _least(schema["items"], 0, growth)
        return [_grow(first, schema["items"], rest, growth), *entries[1:]]
    if step == "{}":
        values = dict(value or {})
        inner = schema["additionalProperties"]
        if not rest:
            return values | {_name(index, growth): _least(inner, index, growth) for index in range(growth.count)}
        return {**values, "node": _grow(values.get("node"), inner, rest, growth)}
    below = dict(value or {})
    if not rest:
        raise AssertionError("a place ends with the step that grows")
    inner = schema["properties"][step]
    grown_value = _grow(below.get(step), inner, rest, growth)
    if step in _KEYED and rest[0] == "[]" and len(rest) > 1 and grown_value and isinstance(grown_value[0], dict):
        key = "manager" if step == "runtimePatches" else "name"
        known = (below.get(step) or [{}])[0].get(key)
        good = "example.com/a" if step == "runtimePatches" else _KEYED[step]
        grown_value = [{**grown_value[0], key: known or good}, *grown_value[1:]]
    below[step] = grown_value
    return below


def _name(index: int, growth: Growth) -> str:
    return f"{growth.prefix}{index}".ljust(growth.letters, "x")


def _least(schema: Tree, index: int, growth: Growth) -> Any:  # noqa: PLR0911 one for each type
    """Return the smallest value of a schema; what tells entries of a list apart differs by the index."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return growth.amount.format(index + 1)
    kind = schema.get("type", "object")
    if kind == "object":
        wanted = schema.get("required", ())
        if not wanted and "name" in schema.get("properties", {}):
            wanted = ("name",)
        return {name: _least(schema["properties"][name], index, growth) for name in wanted}
    if kind == "array":
        return [_least(schema["items"], 0, growth)] if schema.get("minItems") else []
    if kind == "string":
        text = _MOMENT if schema.get("format") == "date-time" else _name(index, growth)
        return text[: schema.get("maxLength", len(text))]
    if kind == "boolean":
        return True
    least = schema.get("minimum", 1)
    return min(max(least, index), schema.get("maximum", 2**31 - 1))


def size(tree: Tree) -> int:
    """Return the bytes of an object as JSON."""
    return len(msgspec.json.encode(tree))


def train_job(runtime: str = "torch", **spec: Any) -> Tree:
    """Return a small TrainJob."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TRAIN_JOB,
        "metadata": {"name": "job", "namespace": "team", "uid": "uid-job", "creationTimestamp": _MOMENT},
        "spec": {
            "runtimeRef": {"apiGroup": names.GROUP, "kind": names.CLUSTER_TRAINING_RUNTIME, "name": runtime},
            "managedBy": names.MANAGED_BY_TRAINER,
            "suspend": True,
            **spec,
        },
    }


def job(name: str, ancestor: str | None = None, **fields: Any) -> Tree:
    """Return a replicated job of a runtime."""
    container = names.CONTAINER_OF_ANCESTOR.get(ancestor or "", "node")
    metadata = {"labels": {names.LABEL_ANCESTOR: ancestor}} if ancestor else {}
    pod = {"containers": [{"name": container, "image": "image"}]}
    return {
        "name": name,
        "replicas": 1,
        "template": {"metadata": metadata, "spec": {"template": {"spec": pod}}},
        **fields,
    }


def runtime(*jobs: Tree, policy: Tree | None = None, label: str = "", name: str = "torch", **spec: Any) -> Tree:
    """Return a small runtime."""
    labels = {names.LABEL_FRAMEWORK: label} if label else {}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.CLUSTER_TRAINING_RUNTIME,
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {
            "mlPolicy": {"torch": {}} if policy is None else policy,
            "template": {"spec": {"replicatedJobs": list(jobs) or [job("node", names.ANCESTOR_TRAINER)]}},
            **spec,
        },
    }
