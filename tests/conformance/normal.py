"""Normal form: what two operators may not differ in, without what any two runs differ in.

Gone or replaced are uids, resource versions, times of now, the order of env and of mounts, the layout of a snapshot's
YAML, and what was drawn of a pair of SSH keys, of which stay kind and length and that they fit. Kept are times that a
case gave (they lie in the past), the order of everything else, of env where a variable refers to another, and which
fields the operator owns by server-side apply: on a takeover they decide what the other operator removes.

Events of an object become one entry, `News TrainJob job`, with each reason and how often it was told. Of a Warning it
is kept that it was told: how often an operator tries again what cannot go well is a matter of clocks.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import yaml
from cryptography.hazmat.primitives import serialization

from tests.conformance.cases import NAMESPACE, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DROPPED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")
_EMPTY = ("metadata", "resources", "f:metadata", "f:resources")
"""Fields that Go writes even when nothing is in them, since their types are structs and not pointers."""
_UNORDERED = ("env",)
_REFERENCE = re.compile(r"(?<!\$)\$\(([^)]+)\)")
_MANAGER = "trainer"
_PASSING = re.compile(
    r"timed? ?out|deadline exceeded|connection refused|calling webhook|been modified|conflict", re.IGNORECASE
)
"""Trouble of a busy server, which passes by itself."""
_TOLD = ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def by_case(objects: dict[str, list[Tree]], namespaces: Iterable[str]) -> dict[str, dict[str, Tree]]:
    """Return the objects of each case's namespace in normal form, by `Kind name`."""
    found: dict[str, dict[str, Tree]] = {name: {} for name in namespaces}
    uids = {
        item["metadata"]["uid"]: f"<uid of {kind} {item['metadata']['name']}>"
        for kind, items in objects.items()
        for item in items
    }
    for kind, items in objects.items():
        for item in items:
            if kind == "Event":
                _note(item, found.get(item["metadata"]["namespace"], {}))
                continue
            metadata = item["metadata"]
            namespace = metadata.get("namespace") or metadata["name"].partition(".")[0]
            if namespace in found and metadata["name"] != "kube-root-ca.crt":
                name = metadata["name"].replace(namespace, NAMESPACE)
                found[namespace][f"{kind} {name}"] = normal(item, namespace, uids)
    return found


def _note(event: Tree, news: dict[str, Tree]) -> None:
    """Add an Event to what was told of its object."""
    about, reason = event["involvedObject"], event["reason"]
    if about["kind"] not in _TOLD or (event["type"] == "Warning" and _PASSING.search(event.get("message", ""))):
        return
    told = news.setdefault(f"News {about['kind']} {about['name']}", {}).setdefault(event["type"], {})
    count = event.get("count") or (event.get("series") or {}).get("count") or 1
    told[reason] = "told" if event["type"] == "Warning" else told.get(reason, 0) + count


def normal(item: Tree, namespace: str, uids: dict[str, str]) -> Tree:
    """Return one object in normal form; `uids` tells whose uid is whose."""
    if "runtime" in item.get("data", {}):
        item = {**item, "data": {**item["data"], "runtime": _snapshot(item["data"]["runtime"])}}
    if item.get("type") == "kubernetes.io/ssh-auth":
        keys = item["data"]
        item = {**item, "data": {**keys, **_pair(keys["ssh-privatekey"], keys.get("ssh-publickey", ""))}}
    text = json.dumps(item, default=str).replace(namespace, NAMESPACE)
    tree: Tree = json.loads(_UID.sub(lambda match: uids.get(match[0], "<uid>"), text))
    owned = _owned(tree["metadata"])
    if tree["kind"] == "TrainJob":
        _judge_deadline(tree)
    _clean(tree)
    if owned is not None:
        _clean(owned)
        tree["owned"] = owned
    return tree


def message(text: str, namespace: str) -> str:
    """Return what admission says in normal form."""
    return _UID.sub("<uid>", NOW.sub("<now>", text.replace(namespace, NAMESPACE)))


def _owned(metadata: Tree) -> Any:
    for entry in metadata.get("managedFields", ()):
        if entry["manager"] == _MANAGER and entry["operation"] == "Apply":
            return entry["fieldsV1"]
    return None


def _snapshot(text: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 the loader is a safe one
    except yaml.YAMLError:
        return text


@functools.cache
def _pair(private: str, public: str) -> Tree:
    """Return what a pair of SSH keys is like; nothing if it is no pair, which then stays as it is."""
    private_text, public_text = (base64.b64decode(text) for text in (private, public))
    try:
        key = serialization.load_pem_private_key(private_text, None)
    except ValueError:
        return {}
    form = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    if public_text != key.public_key().public_bytes(*form) + b"\n":
        return {}
    head, kind = private_text.splitlines()[0].decode(), public_text.split()[0].decode()
    return {
        "ssh-privatekey": f"<{head} {len(private_text)} bytes>",
        "ssh-publickey": f"<its {kind}, {len(public_text)} bytes>",
    }


def _clean(value: Any) -> None:
    """Take out, in place, what differs between any two runs."""
    if isinstance(value, list):
        value[:] = [_time(item) for item in value]
        for item in value:
            _clean(item)
    elif isinstance(value, dict):
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            for key in _DROPPED:
                metadata.pop(key, None)
        for key, item in list(value.items()):
            _clean(item)
            value[key] = _settled(key, _time(item))
            if key in _EMPTY and item == {}:
                del value[key]


def _settled(key: str, item: Any) -> Any:
    """Return a field's value, in order if its order means nothing: by name, so that a difference does not move it."""
    if key not in _UNORDERED or not isinstance(item, list):
        return item
    return sorted(_referring(item), key=_in_order)


def _referring(variables: list[Tree]) -> list[Tree]:
    """Return variables, with what each refers to as `$(NAME)` and stands before it: only that is resolved."""
    names = [one.get("name", "") for one in variables]
    found = []
    for place, one in enumerate(variables):
        meant = set(_REFERENCE.findall(str(one.get("value", "")))) & set(names)
        before = {"resolves": sorted(meant & set(names[:place]))} if meant else {}
        found.append({**one, **before})
    return found


def _in_order(entry: Tree) -> tuple[str, str]:
    return entry.get("name", ""), json.dumps(entry, sort_keys=True)


def _time(value: Any) -> Any:
    """Return a time of now as a word, any other value as it is."""
    return "<now>" if isinstance(value, str) and NOW.fullmatch(value) else value


def _judge_deadline(job: Tree) -> None:
    """Put in place of the time of a DeadlineExceeded whether the deadline had passed by then."""
    conditions = {entry["type"]: entry for entry in job.get("status", {}).get("conditions", ())}
    failed = conditions.get("Failed", {})
    if failed.get("reason") != "DeadlineExceeded":
        return
    end = _moment(failed["lastTransitionTime"])
    start = _moment(job["metadata"]["creationTimestamp"])
    if conditions.get("Suspended", {}).get("status") == "False":
        resumed = _moment(conditions["Suspended"]["lastTransitionTime"])
        start = resumed if resumed <= end else start
    early = (start + timedelta(seconds=job["spec"]["activeDeadlineSeconds"]) - end).total_seconds()
    failed["lastTransitionTime"] = "after the deadline" if early <= 0 else f"{early} s before the deadline"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
