"""What a client of the API server asks before it asks for anything: discovery and OpenAPI, of the kinds that are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.hub.apiserver.delegated_auth import GROUP, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKind

API_VERSION: Final = f"{GROUP}/{VERSION}"
ROOT: Final = f"/apis/{API_VERSION}"

_GROUP_VERSION: Final = {"groupVersion": API_VERSION, "version": VERSION}
_API_GROUP: Final[Tree] = {
    "kind": "APIGroup",
    "apiVersion": "v1",
    "name": GROUP,
    "versions": [_GROUP_VERSION],
    "preferredVersion": _GROUP_VERSION,
}
SUBRESOURCES: Final = {"pods": "PodList", "events": "EventList", "log": "{}Log", "queue": "{}Queue"}
"""What there is of a job, and of which kind, after its own."""
_INFO: Final = {"title": "Trainplane hub", "version": VERSION}
_V3_PATH: Final = f"/openapi/v3{ROOT}"


def documents(kinds: Iterable[JobKind]) -> Mapping[str, Tree]:
    """Return by path what is the same for everybody."""
    kinds = tuple(kinds)
    schemas = {_schema_name(kind): _schema(kind) for kind in kinds}
    paths = {
        f"{ROOT}/namespaces/{{namespace}}/{kind.plural}/{{name}}": {"parameters": _PARAMETERS, "get": _operation(kind)}
        for kind in kinds
    }
    return {
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_API_GROUP]},
        f"/apis/{GROUP}": _API_GROUP,
        ROOT: {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": API_VERSION,
            "resources": [resource for kind in kinds for resource in _resources(kind)],
        },
        "/openapi/v2": {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": schemas},
        "/openapi/v3": {"paths": {ROOT.removeprefix("/"): {"serverRelativeURL": _V3_PATH}}},
        _V3_PATH: {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}},
        "/version": {"major": "0", "minor": "1", "gitVersion": "v0.1.0"},
    }


def _resources(kind: JobKind) -> list[Tree]:
    return [
        _resource(kind.plural, kind.name, "get", "list") | {"singularName": kind.name.lower()},
        *(_resource(f"{kind.plural}/{name}", part.format(kind.name), "get") for name, part in SUBRESOURCES.items()),
    ]


def _resource(name: str, kind: str, *verbs: str) -> Tree:
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": list(verbs)}


def _string(text: str) -> Tree:
    return {"type": "string", "description": text}


def _schema_name(kind: JobKind) -> str:
    return f"dev.trainplane.hub.v1alpha1.{kind.name}"


def _schema(kind: JobKind) -> Tree:
    group = kind.resource.group
    return {
        "type": "object",
        "description": f"A {kind.name} of this hub as it is on its cluster: read only, beside the one in {group}.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "status": _status(kind),
        },
        "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": kind.name}],
    }


def _status(kind: JobKind) -> Tree:
    where = f"The worker that has the {kind.name}; empty while none has, and for one that runs on the hub."
    return {
        "type": "object",
        "properties": {
            "cluster": _string(where),
            "state": _string(f"Waiting, Starting, Running, {' or '.join(kind.ends)}."),
            "placement": _string("Local, Waiting, Dispatched or Finished."),
            "reason": _string("Why it is there, in a sentence."),
            "workload": _string("The name of its Workload, the same on the hub and on the worker."),
            "nominatedClusters": {"type": "array", "items": {"type": "string"}},
            "readyPods": {"type": "integer", "description": "Pods that are ready."},
            "pods": {"type": "integer", "description": "Pods that there are."},
            "keptLogBytes": {"type": "integer", "format": "int64", "description": "Bytes of its logs that are kept."},
            "problem": _string("Why the worker cannot be reached, where it cannot."),
        },
    }


_PARAMETERS: Final = [
    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("namespace", "name")
]


def _operation(kind: JobKind) -> Tree:
    schema = {"$ref": f"#/components/schemas/{_schema_name(kind)}"}
    return {
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": {"group": GROUP, "version": VERSION, "kind": kind.name},
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
    }
