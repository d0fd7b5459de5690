"""A bundle: facts as a text that may be handed to somebody else, and explained there again.

What is in it is a list of what may be, not of what may not: of each object the fields that an explanation reads. No
environment, no command, no arguments, no annotation of a user's, no Secret; of what pods, nodes and controllers wrote,
each text is cleaned and searched for credentials like everything that is shown (`cleaning`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import read_moment
from trainplane.explain.cleaning import clean
from trainplane.explain.facts import Facts, Line

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

FORMAT: Final = "trainplane.dev/bundle/v1"
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of a bundle that is read."""
_MOST_TEXT: Final = 2048
_DEEPEST: Final = 24

Shape: TypeAlias = "bool | dict[str, Shape]"
"""What is kept of an object: all of it, or of its fields these; of a list, of each entry."""

_LABELS: Final = dict.fromkeys(
    (
        names.LABEL_JOBSET_NAME,
        names.LABEL_REPLICATED_JOB,
        names.LABEL_JOB_INDEX,
        names.LABEL_RESTART_ATTEMPT,
        names.LABEL_QUEUE,
        names.ANNOTATION_COMPLETION_INDEX,
    ),
    True,
)
_METADATA: Final[Shape] = {
    **dict.fromkeys(("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"), True),
    "labels": {**_LABELS},
    "annotations": {names.ANNOTATION_COMPLETION_INDEX: True, names.ANNOTATION_CLUSTER: True},
}
_CONTAINER: Final[Shape] = {"name": True, "image": True, "resources": True}
_SHAPES: Final[dict[str, Shape]] = {
    "job": {
        "metadata": _METADATA,
        "spec": {
            **dict.fromkeys(("runtimeRef", "suspend", "managedBy", "activeDeadlineSeconds"), True),
            "trainer": dict.fromkeys(("numNodes", "numProcPerNode", "resourcesPerNode", "image"), True),
        },
        "status": True,
    },
    "pods": {
        "metadata": _METADATA,
        "spec": {
            "nodeName": True,
            "restartPolicy": True,
            "containers": _CONTAINER,
            "initContainers": _CONTAINER,
            "volumes": {"name": True},
        },
        "status": True,
    },
    "events": {
        "metadata": {"name": True, "annotations": {names.ANNOTATION_CLUSTER: True}, "creationTimestamp": True},
        **dict.fromkeys(("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "eventTime"), True),
        "series": True,
        "involvedObject": {"kind": True, "name": True, "uid": True},
    },
    "jobset": {"metadata": _METADATA, "status": True},
    "jobs": {"metadata": _METADATA, "status": True},
    "workload": {"metadata": {"name": True}, "status": {"conditions": True, "admissionChecks": True}},
    "nodes": {"metadata": {"name": True}, "status": {"conditions": True, "allocatable": True}},
    "view": {"metadata": {"name": True}, "status": True},
    "queue": True,
}


def write_bundle(facts: Facts) -> str:
    """Return facts as a text without secrets."""
    tree: Tree = {"format": FORMAT, "unread": _kept(list(facts.unread), shape=True)}
    for part, shape in _SHAPES.items():
        value = getattr(facts, part)
        tree[part] = _kept(list(value) if isinstance(value, list | tuple) else value, shape)
    tree["logs"] = {
        clean(step, 253): [[clean(line.text, 256), line.time] for line in lines] for step, lines in facts.logs.items()
    }
    return msgspec.json.format(msgspec.json.encode(tree), indent=1).decode()


def read_bundle(text: str) -> Facts:
    """Return the facts of a bundle.

    Raises:
        ValueError: it is none, or too large; the message says what is wrong.
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"a bundle has at most {MOST_BYTES >> 20} MiB, and this one more")
    try:
        tree = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(tree, dict) or tree.get("format") != FORMAT or not isinstance(tree.get("job"), dict):
        raise ValueError(f"it is no bundle: format must be {FORMAT}, and job an object")
    logs, unread = tree.get("logs"), tree.get("unread")
    return Facts(
        tree["job"],
        trees.entries(tree, "pods"),
        trees.entries(tree, "events"),
        jobset=trees.fields(tree, "jobset") or None,
        jobs=trees.entries(tree, "jobs"),
        workload=trees.fields(tree, "workload") or None,
        nodes=trees.entries(tree, "nodes"),
        view=trees.fields(tree, "view") or None,
        queue=trees.fields(tree, "queue") or None,
        logs={str(step): _lines(lines) for step, lines in logs.items()} if isinstance(logs, dict) else {},
        unread=[one for one in unread if isinstance(one, str)] if isinstance(unread, list) else [],
    )


def _lines(lines: Any) -> list[Line]:
    if not isinstance(lines, list):
        return []
    pairs = [line for line in lines if isinstance(line, list) and len(line) == 2 and isinstance(line[0], str)]
    return [Line(text, read_moment(time)) for text, time in pairs]


def _kept(tree: Any, shape: Shape, depth: int = 0) -> Any:
    """Return what a shape keeps of a tree, each text of it cleaned."""
    if isinstance(tree, str):
        return clean(tree, _MOST_TEXT) if shape is True else None
    if depth > _DEEPEST:
        return None
    if isinstance(tree, list):
        return [_kept(entry, shape, depth + 1) for entry in tree]
    if isinstance(tree, dict):
        if isinstance(shape, dict):
            return {key: _kept(value, shape[key], depth + 1) for key, value in tree.items() if key in shape}
        return {clean(key, 253): _kept(value, shape=True, depth=depth + 1) for key, value in tree.items()}
    return tree if shape is True and (tree is None or isinstance(tree, bool | int | float)) else None
