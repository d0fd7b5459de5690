"""What a client of the API server asks before it asks for anything: discovery and OpenAPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.hub.apiserver.delegated_auth import GROUP, VERSION

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

API_VERSION: Final = f"{GROUP}/{VERSION}"
ROOT: Final = f"/apis/{API_VERSION}"
KIND: Final = "TrainJob"

_GROUP_VERSION: Final = {"groupVersion": API_VERSION, "version": VERSION}
_API_GROUP: Final[Tree] = {
    "kind": "APIGroup",
    "apiVersion": "v1",
    "name": GROUP,
    "versions": [_GROUP_VERSION],
    "preferredVersion": _GROUP_VERSION,
}
SUBRESOURCES: Final = {"pods": "PodList", "events": "EventList", "log": "TrainJobLog", "queue": "TrainJobQueue"}
"""What there is of a TrainJob, and of which kind."""


def _resource(name: str, kind: str, *verbs: str, **others: str) -> Tree:
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": list(verbs), **others}


_RESOURCES: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": API_VERSION,
    "resources": [
        _resource("trainjobs", KIND, "get", "list") | {"singularName": "trainjob"},
        *(_resource(f"trainjobs/{name}", kind, "get") for name, kind in SUBRESOURCES.items()),
    ],
}


def _string(text: str) -> Tree:
    return {"type": "string", "description": text}


_STATUS: Final = {
    "type": "object",
    "properties": {
        "cluster": _string("The worker that has the TrainJob; empty while none has, and for one that runs on the hub."),
        "state": _string("Waiting, Starting, Running, Complete or Failed."),
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
_SCHEMA: Final = {
    "type": "object",
    "description": "A TrainJob of this hub as it is on its cluster: read only, beside the one in trainer.kubeflow.org.",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "status": _STATUS,
    },
    "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": KIND}],
}
_INFO: Final = {"title": "Trainplane hub", "version": VERSION}
_SCHEMA_NAME: Final = "dev.trainplane.hub.v1alpha1.TrainJob"
_PARAMETERS: Final = [
    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("namespace", "name")
]
_OPERATION: Final = {
    "x-kubernetes-action": "get",
    "x-kubernetes-group-version-kind": {"group": GROUP, "version": VERSION, "kind": KIND},
    "responses": {
        "200": {
            "description": "OK",
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{_SCHEMA_NAME}"}}},
        }
    },
}
_V3_PATH: Final = f"/openapi/v3{ROOT}"

DOCUMENTS: Final[dict[str, Tree]] = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_API_GROUP]},
    f"/apis/{GROUP}": _API_GROUP,
    ROOT: _RESOURCES,
    "/openapi/v2": {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {_SCHEMA_NAME: _SCHEMA}},
    "/openapi/v3": {"paths": {ROOT.removeprefix("/"): {"serverRelativeURL": _V3_PATH}}},
    _V3_PATH: {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {
            f"{ROOT}/namespaces/{{namespace}}/trainjobs/{{name}}": {"parameters": _PARAMETERS, "get": _OPERATION}
        },
        "components": {"schemas": {_SCHEMA_NAME: _SCHEMA}},
    },
    "/version": {"major": "0", "minor": "1", "gitVersion": "v0.1.0"},
}
"""By path: what is the same for everybody."""
