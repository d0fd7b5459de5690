"""Objects as a server sends them."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import settings

from tests.size import FULL
from trainplane.kube.resource import Resource

THINGS = Resource("example.com", "v1", "things", "Thing")


def tree(
    name: str, version: int, *, namespace: str = "default", uid: str | None = None, **fields: Any
) -> dict[str, Any]:
    """Return an object as a tree; `fields` go to its top level, `metadata` into its metadata."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-of-{name}",
        "resourceVersion": str(version),
        **fields.pop("metadata", {}),
    }
    return {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": metadata, **fields}


def raw(value: Any) -> msgspec.Raw:
    """Return a tree as text."""
    return msgspec.Raw(msgspec.json.encode(value))


def thing(name: str, version: int, **fields: Any) -> msgspec.Raw:
    """Return an object as text."""
    return raw(tree(name, version, **fields))


def seeded(seed: int) -> Random:
    """Return randomness that repeats."""
    return Random(seed)  # noqa: S311 a test's dice, no secret


def effort(examples: int, steps: int) -> settings:
    """Return how hard a state machine is tried: so many examples, twenty times as many with FULL=1."""
    more = 20 if FULL else 1
    return settings(max_examples=examples * more, stateful_step_count=steps, deadline=None)
