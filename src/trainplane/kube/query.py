"""What stands after the path of a request, and the options of a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode

Propagation = Literal["Background", "Foreground", "Orphan"]
"""What happens to the objects that a deleted one owns."""

Selector = str | Mapping[str, str]
"""A selector as the API server writes it, or names with the values they must have."""


def with_query(path: str, query: Mapping[str, str]) -> str:
    """Return a path with its query, encoded."""
    return f"{path}?{urlencode(query)}" if query else path


def selectors(labels: Selector | None, fields: Selector | None) -> dict[str, str]:
    """Return the query of selectors; empty ones choose everything and are left out."""
    query = {}
    for parameter, selector in (("labelSelector", labels), ("fieldSelector", fields)):
        if selector:
            terms = selector if isinstance(selector, str) else ",".join(f"{k}={v}" for k, v in selector.items())
            query[parameter] = terms
    return query


def write_query(field_manager: str, *, dry_run: bool) -> dict[str, str]:
    """Return the query of a write."""
    query = {"fieldManager": field_manager}
    if dry_run:
        query["dryRun"] = "All"
    return query


def delete_options(
    propagation: Propagation, *, grace_seconds: int | None = None, uid: str | None = None, version: str | None = None
) -> dict[str, Any]:
    """Return the body of a deletion."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    said = {"uid": uid, "resourceVersion": version}
    if preconditions := {name: value for name, value in said.items() if value is not None}:
        options["preconditions"] = preconditions
    return options
