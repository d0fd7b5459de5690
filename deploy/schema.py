"""The schema of the chart's values: a value that is misspelt is refused, and named, before anything is installed.

The part below `manager.config` comes from the Configuration's own types, so a new field is reachable the day it exists.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from deploy.chart import OWN_IMAGES, RUNTIMES
from trainplane.api.configuration import LEGACY_KINDS, Configuration

PATH: Final = Path("charts/trainplane/values.schema.json")
_STRING: Final = {"type": "string"}
_TRUTH: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_ANY: Final = {"type": "object"}
_LIST: Final = {"type": "array"}
_PORTS: Final = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 65535}}
_IMAGE: Final = {"registry": _STRING, "repository": _STRING, "tag": _STRING}
_CONCURRENCY: Final = ("trainJob", "trainingRuntime", "clusterTrainingRuntime")


def files() -> dict[Path, str]:
    """Return the schema's file."""
    return {PATH: json.dumps(values(), indent=1) + "\n"}


def values() -> dict[str, Any]:
    """Return the schema of all values."""
    tree = _closed(
        nameOverride=_STRING,
        fullnameOverride=_STRING,
        commonLabels=_TEXTS,
        crds=_closed(enabled=_TRUTH),
        jobset=_open(install=_TRUTH, fullnameOverride=_STRING, image=_ANY),
        initializers=_closed(image=_closed(**_IMAGE)),
        image=_closed(**_IMAGE, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]}, pullSecrets=_LIST),
        manager=_manager(),
        rbac=_closed(secretNamespaces={"type": "array", "items": _STRING}),
        webhook=_closed(failurePolicy={"enum": ["Fail", "Ignore"]}, caBundle=_STRING),
        kueuePolicy=_closed(enabled=_TRUTH),
        certManager=_closed(enabled=_TRUTH, issuerRef=_ANY),
        networkPolicy=_closed(enabled=_TRUTH, apiServerPorts=_PORTS),
        serviceMonitor=_closed(enabled=_TRUTH, labels=_TEXTS, interval=_STRING),
        prometheusRule=_closed(enabled=_TRUTH, labels=_TEXTS),
        grafanaDashboard=_closed(enabled=_TRUTH, namespace=_STRING, labels=_TEXTS, annotations=_TEXTS),
        hub=_closed(
            enabled=_TRUTH,
            kueueNamespace=_STRING,
            keepJobBytes=_STRING,
            keepTotalBytes=_STRING,
            keepFinished=_STRING,
            storage=_closed(size=_STRING),
            workerPorts=_PORTS,
        ),
        dataCache=_ANY,
        runtimes=_runtimes(),
    )
    tree["properties"]["global"] = _ANY
    return {"$schema": "http://json-schema.org/draft-07/schema#", **tree}


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _open(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _manager() -> dict[str, Any]:
    return _closed(
        replicas={"type": "integer", "minimum": 0},
        selectorLabels=_TEXTS,
        podAnnotations=_TEXTS,
        labels=_TEXTS,
        volumes=_LIST,
        nodeSelector=_TEXTS,
        affinity=_ANY,
        tolerations=_LIST,
        env=_LIST,
        envFrom=_LIST,
        volumeMounts=_LIST,
        resources=_ANY,
        securityContext=_ANY,
        topologySpreadConstraints=_LIST,
        priorityClassName=_STRING,
        watchNamespace=_STRING,
        logLevel={"type": ["string", "integer"]},
        podDisruptionBudget=_closed(enabled=_TRUTH, minAvailable={"type": ["integer", "string"]}),
        config=_configuration(),
    )


def _runtimes() -> dict[str, Any]:
    tree = _closed(defaultEnabled=_TRUTH, commonLabels=_TEXTS, installer=_ANY)
    for switch in RUNTIMES.values():
        first, _, rest = switch.partition(".")
        image = {"image": _closed(**_IMAGE)} if first in OWN_IMAGES.values() else {}
        part = tree["properties"].setdefault(first, _closed(**image))
        if rest:
            part["properties"][rest] = _closed(enabled=_TRUTH)
        else:
            part["properties"]["enabled"] = _TRUTH
    return tree


def _configuration() -> dict[str, Any]:
    """Return the schema of the Configuration, without its version and kind, with the chart's words for concurrency."""
    _, parts = msgspec.json.schema_components([Configuration], ref_template="{name}")
    tree: dict[str, Any] = _resolved(parts["Configuration"], parts)
    for name in ("apiVersion", "kind"):
        del tree["properties"][name]
    counts = {name: {"type": "integer", "minimum": 1} for name in _CONCURRENCY}
    tree["properties"]["controller"]["properties"]["groupKindConcurrency"] = _closed(**counts)
    tree["properties"]["legacy"]["properties"]["kinds"]["items"] = {"enum": list(LEGACY_KINDS)}
    return tree


def _resolved(node: Any, parts: dict[str, Any]) -> Any:
    """Return a schema with its references replaced, and without what only people read."""
    if isinstance(node, list):
        return [_resolved(one, parts) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _resolved(parts[node["$ref"]], parts)
    sections = [one for one in node.get("anyOf", ()) if "$ref" in one]
    if sections:  # a section or none: an admin turns it off by a field of it
        return _resolved(sections[0], parts)
    return {
        key: _resolved(value, parts)
        for key, value in node.items()
        if key not in {"title", "description", "default", "required"}
    }
