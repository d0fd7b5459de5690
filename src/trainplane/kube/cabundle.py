"""Where a CA has to be written so that the API server trusts our servers: the caBundle fields.

Pure: an object as it is, and the bundle, give the JSON Patch that makes it right, or none.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from trainplane.kube.resource import Resource

MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)

Operation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BundleTarget:
    """An object that has to carry our caBundle; `resource` is one of the four of this module."""

    resource: Resource
    name: str

    def __post_init__(self) -> None:
        if self.resource not in _PLACES:
            raise ValueError(f"{self.resource.kind} {self.name!r} has no caBundle field that we know")

    def __str__(self) -> str:
        return f"{self.resource.kind}/{self.name}"


def bundle_patch(resource: Resource, obj: dict[str, Any], bundle: bytes) -> list[Operation]:
    """Return the JSON Patch that writes the bundle wherever it is missing or another; empty if all is well.

    The patch holds only for the resourceVersion it was made from, since it addresses webhooks by their place.
    """
    wanted = base64.b64encode(bundle).decode()
    operations = [
        operation
        for path, holder in _PLACES[resource](obj)
        if holder.get("caBundle") != wanted
        for operation in _write(path, holder, wanted)
    ]
    if not operations:
        return []
    version = obj["metadata"]["resourceVersion"]
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, *operations]


def _write(path: str, holder: dict[str, Any], wanted: str) -> list[Operation]:
    written: Operation = {"op": "add", "path": f"{path}/caBundle", "value": wanted}
    if holder.get("insecureSkipTLSVerify"):  # the API server refuses both together
        return [{"op": "remove", "path": f"{path}/insecureSkipTLSVerify"}, written]
    return [written]


def _of_webhooks(obj: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    webhooks = obj.get("webhooks") or []
    return [(f"/webhooks/{place}/clientConfig", webhook["clientConfig"]) for place, webhook in enumerate(webhooks)]


def _of_conversion(obj: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    conversion = obj["spec"].get("conversion") or {}
    client = (conversion.get("webhook") or {}).get("clientConfig")
    if conversion.get("strategy") != "Webhook" or client is None:
        return []
    return [("/spec/conversion/webhook/clientConfig", client)]


def _of_api_service(obj: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [("/spec", obj["spec"])] if obj["spec"].get("service") else []


_PLACES = {
    MUTATING_WEBHOOKS: _of_webhooks,
    VALIDATING_WEBHOOKS: _of_webhooks,
    CUSTOM_RESOURCE_DEFINITIONS: _of_conversion,
    API_SERVICES: _of_api_service,
}
