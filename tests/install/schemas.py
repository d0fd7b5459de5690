"""JSON schemas of a cluster's kinds, as offline checkers of charts read them: from the API server's own OpenAPI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"
"""Where kubeconform looks for a kind below a folder."""
_DEFINITIONS = "_definitions.json"
_NUMBERS_TOO = {"io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString"}
"""Strings that may be written as numbers."""


def write(cluster: Cluster, folder: Path) -> int:
    """Write a file for every kind that the API server has, and return how many."""
    definitions = json.loads(cluster.kubectl("get", "--raw", "/openapi/v2").stdout)["definitions"]
    shared = {name: _strict(tree) for name, tree in definitions.items()}
    for name in _NUMBERS_TOO:
        shared[name] = {"type": ["string", "number"]}
    (folder / _DEFINITIONS).write_text(json.dumps({"definitions": shared}))
    count = 0
    for name, tree in definitions.items():
        for kind in tree.get("x-kubernetes-group-version-kind", ()):
            group = kind["group"].split(".")[0]
            parts = filter(None, (kind["kind"].lower(), group, kind["version"]))
            reference = {"$ref": f"{_DEFINITIONS}#/definitions/{name}"}
            (folder / f"{'-'.join(parts)}.json").write_text(json.dumps(reference))
            count += 1
    return count


def _strict(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which a field that is not named is refused, but where the server takes any."""
    if tree.get("x-kubernetes-int-or-string") or tree.get("format") == "int-or-string":
        return {"type": ["string", "integer"]}
    made = dict(tree)
    if "$ref" in made:
        made["$ref"] = f"{_DEFINITIONS}{made['$ref']}"
    if "properties" in made:
        made["properties"] = {name: _strict(one) for name, one in made["properties"].items()}
        if not made.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = _strict(made[name])
    return made
