"""An API server in a dict: enough of the client for what this folder tests, with faults on demand."""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

from trainplane.kube.errors import AlreadyExistsError, ConflictError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.kube.resource import Resource

Tree = dict[str, Any]


class FakeClient:
    """Objects by (plural, namespace, name), with resourceVersions.

    `before` is called with (verb, plural, name) ahead of each call and may raise; `after` the same once the call has
    taken effect, so raising there is an answer that got lost.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Tree] = {}
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str, str, str], object] | None = None
        self.after: Callable[[str, str, str], object] | None = None
        self._version = 0

    def put(self, resource: Resource, obj: Tree) -> Tree:
        """Store an object as it is, as if somebody else had written it."""
        self._version += 1
        stored = copy.deepcopy(obj)
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.objects[_key(resource, stored)] = stored
        return copy.deepcopy(stored)

    def peek(self, resource: Resource, name: str, namespace: str | None = None) -> Tree:
        return copy.deepcopy(self.objects[resource.plural, namespace or "", name])

    def every(self, resource: Resource) -> list[Tree]:
        return [copy.deepcopy(obj) for (plural, _, _), obj in self.objects.items() if plural == resource.plural]

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        self._begin("get", resource, name)
        found = self._find(resource, name, namespace)
        self._end("get", resource, name)
        return copy.deepcopy(found)

    async def create(self, resource: Resource, obj: Tree, namespace: str | None = None) -> Any:
        name = obj["metadata"]["name"]
        self._begin("create", resource, name)
        if (resource.plural, namespace or "", name) in self.objects:
            raise AlreadyExistsError(f"{resource.plural} {name!r} already exists")
        if "resourceVersion" in obj["metadata"]:
            raise InvalidError("resourceVersion should not be set on objects to be created")
        stored = self.put(resource, obj)
        self._end("create", resource, name)
        return stored

    async def replace(self, resource: Resource, obj: Tree, namespace: str | None = None) -> Any:
        name = obj["metadata"]["name"]
        self._begin("replace", resource, name)
        current = self._find(resource, name, namespace)
        if obj["metadata"].get("resourceVersion") != current["metadata"]["resourceVersion"]:
            raise ConflictError(f"{resource.plural} {name!r} has been modified")
        stored = self.put(resource, obj)
        self._end("replace", resource, name)
        return stored

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        content_type: str = "application/merge-patch+json",
    ) -> Any:
        self._begin("patch", resource, name)
        current = copy.deepcopy(self._find(resource, name, namespace))
        if content_type == "application/json-patch+json":
            for operation in patch:
                _json_patch(current, operation)
        else:
            _merge(current, patch)
        stored = self.put(resource, current)
        self._end("patch", resource, name)
        return stored

    def _begin(self, verb: str, resource: Resource, name: str) -> None:
        self.calls[verb] += 1
        if self.before is not None:
            self.before(verb, resource.plural, name)

    def _end(self, verb: str, resource: Resource, name: str) -> None:
        if self.after is not None:
            self.after(verb, resource.plural, name)

    def _find(self, resource: Resource, name: str, namespace: str | None) -> Tree:
        try:
            return self.objects[resource.plural, namespace or "", name]
        except KeyError:
            raise NotFoundError(f"{resource.plural} {name!r} not found") from None


def _key(resource: Resource, obj: Tree) -> tuple[str, str, str]:
    return resource.plural, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _merge(target: Tree, patch: Tree) -> None:
    for field, value in patch.items():
        if value is None:
            target.pop(field, None)
        elif isinstance(value, dict) and isinstance(target.get(field), dict):
            _merge(target[field], value)
        else:
            target[field] = value


def _json_patch(target: Any, operation: Tree) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    for part in parents:
        target = target[int(part)] if isinstance(target, list) else target[part]
    match operation["op"]:
        case "test":
            if target.get(last) != operation["value"]:
                raise InvalidError(f"test of {operation['path']} failed")
        case "add" | "replace":
            target[last] = operation["value"]
        case "remove":
            del target[last]
        case other:
            raise InvalidError(f"op {other!r}")
