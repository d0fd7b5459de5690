"""Hypothesis strategies made from the schema of a CRD: any value that the API server's own rules let through.

Strings are words out of a small pool, so that keys of lists and maps meet each other, which is where merging shows. No
list or map is empty: Go drops empty ones, which tells nothing of an operator.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import yaml
from hypothesis import strategies as st

from lab.engines import manifests

if TYPE_CHECKING:
    from tests.conformance.cases import Tree

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
WORDS = ("a", "b", "data", "x-1")
QUANTITIES = ("1", "2", "500m", "1500m", "4Gi", "128Mi", 3, "1000m", "0.5", "1024Mi")
_SMALL = 4
_OPTIONAL = 2
"""How many optional fields of an object are given at most: objects stay small, and all fields have their turn."""


_MADE: dict[int, st.SearchStrategy[Any]] = {}
"""Strategies by the identity of their schema; schemas live as long as the process, in the cache of `crd`."""


@functools.cache
def crd(plural: str) -> Tree:
    """Return the schema of `spec` of one of the reference's kinds."""
    path = manifests("trainer") / f"manifests/base/crds/trainer.kubeflow.org_{plural}.yaml"
    document = yaml.load(path.read_text(), _Loader)  # noqa: S506 the loader is a safe one
    spec: Tree = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def below(schema: Tree, *path: str) -> Tree:
    """Return the schema of a field; a list is stepped into without a word."""
    for name in path:
        schema = schema.get("items", schema)["properties"][name]
    return schema


def values(schema: Tree) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a schema; made once, since a pod's schema is large and drawn from often."""
    if id(schema) not in _MADE:
        _MADE[id(schema)] = _values(schema)
    return _MADE[id(schema)]


def _values(schema: Tree) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from([value for value in schema["enum"] if value != ""])
    if schema.get("x-kubernetes-int-or-string"):
        return st.sampled_from(QUANTITIES)
    kinds = {"object": _objects, "array": _arrays, "string": _strings, "integer": _integers}
    kind = schema.get("type", "object")
    return st.booleans() if kind == "boolean" else kinds[kind](schema)


def some(schema: Tree, *, most: int = _OPTIONAL, without: tuple[str, ...] = ()) -> st.SearchStrategy[Tree]:
    """Return a strategy for objects with the required fields and at most so many of the others."""
    properties = schema.get("items", schema)["properties"]
    required = [name for name in schema.get("required", ()) if name not in without]
    optional = sorted(set(properties) - {*required, *without})
    least = 0 if required else 1
    chosen = (
        st.lists(st.sampled_from(optional), unique=True, min_size=least, max_size=most) if optional else st.just([])
    )
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({name: values(properties[name]) for name in (*required, *names)})
    )


def _objects(schema: Tree) -> st.SearchStrategy[Any]:
    if "properties" in schema:
        return some(schema)
    extra = schema.get("additionalProperties")
    return st.dictionaries(st.sampled_from(WORDS), values(extra), min_size=1, max_size=2) if extra else st.just({})


def _arrays(schema: Tree) -> st.SearchStrategy[Any]:
    items = schema["items"]
    keys = schema.get("x-kubernetes-list-map-keys")
    least = schema.get("minItems", 1)
    if keys:
        return st.lists(
            values(items), min_size=least, max_size=2, unique_by=lambda item: tuple(str(item.get(key)) for key in keys)
        )
    return st.lists(values(items), min_size=least, max_size=2, unique_by=str)


def _strings(schema: Tree) -> st.SearchStrategy[Any]:
    return st.just("2001-01-01T00:00:00Z") if schema.get("format") == "date-time" else st.sampled_from(WORDS)


def _integers(schema: Tree) -> st.SearchStrategy[Any]:
    least = schema.get("minimum", 0)
    return st.integers(least, min(schema.get("maximum", least + _SMALL), least + _SMALL))
