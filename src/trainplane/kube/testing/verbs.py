"""What a fake API server does when it is asked: each verb as a function of a storage, without a network.

`server` asks over HTTP; a simulation asks in its own time.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trainplane.kube.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from trainplane.kube.errors import BadRequestError, GoneError, UnsupportedMediaError, error_class
from trainplane.kube.resource import Key
from trainplane.kube.testing.patches import json_patch, merge_patch
from trainplane.kube.testing.selectors import matches
from trainplane.kube.testing.storage import Collection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.kube.resource import Resource
    from trainplane.kube.testing.faults import Verb
    from trainplane.kube.testing.storage import Storage, Tree


class Target(NamedTuple):
    """What a path addresses."""

    collection: Collection
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        """The key of the object addressed."""
        return Key(self.namespace, self.name)


class Asking(NamedTuple):
    """A request, as far as verbs look at it."""

    verb: Verb
    path: str
    query: Mapping[str, str]
    content_type: str
    target: Target | None
    body: bytes
    accept: str = ""


def act(storage: Storage, asking: Asking, *, version: str = "v1.99.0-fake", stale: int | None = None) -> Tree:
    """Do what is asked and return the answer; raises ApiError. `stale`: list or get as of an older revision."""
    if asking.path == "/version":
        return {"major": "1", "minor": "99", "gitVersion": version}
    target = asking.target
    if target is None:
        raise error_class(404)("the server could not find the requested resource")
    if asking.verb == "list":
        answer = _list(storage, target, asking.query, stale)
        if is_metadata_alone(asking.accept):
            items = [metadata_of(one) for one in answer["items"]]
            answer |= {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items}
        return answer
    if asking.verb == "get":
        found = None if stale is None else storage.at(target.collection, stale).get(target.key)
        return storage.get(target.collection, target.key) if found is None else found
    return _write(storage, asking, target)


def _write(storage: Storage, asking: Asking, target: Target) -> Tree:
    verb, collection, key = asking.verb, target.collection, target.key
    try:
        obj = msgspec.json.decode(asking.body) if asking.body else {}
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    dry_run = asking.query.get("dryRun") == "All"
    if verb == "create":
        return storage.create(collection, target.namespace, obj, dry_run=dry_run)
    if verb == "update":
        return storage.update(collection, key, obj, subresource=target.subresource, dry_run=dry_run)
    if verb == "patch":
        return _patch(storage, asking, target, obj, dry_run=dry_run)
    if verb == "deletecollection":
        for found, tree in list(storage.objects.get(collection, {}).items()):
            if target.namespace in {"", found.namespace} and matches(tree, asking.query):
                storage.delete(collection, found)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
    wanted = obj.get("preconditions") or {}
    return storage.delete(collection, key, uid=wanted.get("uid"), version=wanted.get("resourceVersion"))


def _patch(storage: Storage, asking: Asking, target: Target, patch: Any, *, dry_run: bool) -> Tree:
    kind, collection, key = asking.content_type, target.collection, target.key
    if kind == APPLY_PATCH:
        return storage.apply(
            collection,
            key,
            patch,
            manager=asking.query.get("fieldManager", ""),
            force=asking.query.get("force") == "true",
            subresource=target.subresource,
            dry_run=dry_run,
        )
    before = storage.get(collection, key)
    if kind == MERGE_PATCH:
        merged = merge_patch(before, patch)
    elif kind == JSON_PATCH:
        merged = json_patch(before, patch)
    else:
        raise UnsupportedMediaError(f"this fake speaks {MERGE_PATCH}, {JSON_PATCH} and {APPLY_PATCH}, not {kind}")
    return storage.update(collection, key, merged, subresource=target.subresource, dry_run=dry_run)


def _list(storage: Storage, target: Target, query: Mapping[str, str], stale: int | None) -> Tree:
    revision, after = storage.revision, Key("", "")
    if "continue" in query:
        token = msgspec.json.decode(base64.urlsafe_b64decode(query["continue"]))
        revision, after = token["revision"], Key(*token["after"])
    if stale is not None:
        revision = stale
    if "continue" in query and revision < storage.compacted:
        raise GoneError("The provided continue parameter is too old")
    found = [
        (key, obj)
        for key, obj in storage.listed(target.collection, revision)
        if key > after and target.namespace in {"", key.namespace} and matches(obj, query)
    ]
    limit = int(query.get("limit") or 0) or len(found)
    page, rest = found[:limit], found[limit:]
    meta: Tree = {"resourceVersion": str(revision)}
    if rest:
        token = msgspec.json.encode({"revision": revision, "after": page[-1][0]})
        meta |= {"continue": base64.urlsafe_b64encode(token).decode(), "remainingItemCount": len(rest)}
    items = [obj for _, obj in page]
    kind = items[0].get("kind", "") if items else ""
    return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta, "items": items}


def is_metadata_alone(accept: str) -> bool:
    """Return whether a list or a watch asks for metadata alone."""
    return "as=PartialObjectMetadata" in accept


def metadata_of(obj: Tree) -> Tree:
    """Return an object as the API server cuts it down for who asks for metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def collection_of(resource: Resource) -> Collection:
    """Return the collection of a resource."""
    return Collection(resource.group, resource.version, resource.plural)


def target_of(path: str) -> Target | None:
    """Return what a path addresses; None if no resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    name, subresource = [*rest[1:], "", ""][:2]
    return Target(Collection(group, version, rest[0]), namespace, name, subresource)


_VERBS: dict[str, Verb] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def verb_of(method: str, query: Mapping[str, str], target: Target | None) -> Verb:
    """Return what RBAC would call a request."""
    if target is None:
        return "other"
    if method == "GET":
        if query.get("watch") in {"true", "1"}:
            return "watch"
        return "get" if target.name else "list"
    if method == "DELETE" and not target.name:
        return "deletecollection"
    return _VERBS.get(method, "other")
