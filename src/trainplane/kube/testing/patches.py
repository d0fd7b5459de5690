"""Merge patches (RFC 7396) and JSON patches (RFC 6902), for the fake API server."""

from __future__ import annotations

from typing import Any

import msgspec

from trainplane.kube.errors import InvalidError


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` changed as a merge patch says."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def json_patch(target: Any, operations: list[dict[str, Any]]) -> Any:
    """Return `target` changed by the operations add, remove, replace and test; raises InvalidError if one fails."""
    document = {"": msgspec.json.decode(msgspec.json.encode(target))}
    for operation in operations:
        try:
            _operate(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise InvalidError(f"JSON patch {operation}: {error!r}") from error
    return document[""]


def _operate(document: Any, operation: dict[str, Any]) -> None:
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")]
    for part in way:
        document = document[int(part)] if isinstance(document, list) else document[part]
    verb = operation["op"]
    if isinstance(document, list):
        place = len(document) if last == "-" else int(last)
        if verb == "add":
            document.insert(place, operation["value"])
            return
    else:
        place = last
        if verb == "add":
            document[place] = operation["value"]
            return
    found = document[place]
    if verb == "remove":
        del document[place]
    elif verb == "replace":
        document[place] = operation["value"]
    elif verb != "test":
        raise ValueError(f"operation {verb!r} is not known to this fake")
    elif found != operation["value"]:
        raise ValueError(f"test failed, there is {found!r}")
