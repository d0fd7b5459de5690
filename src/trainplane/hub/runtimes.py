"""Runtimes of hub and worker, compared: by what they say, not by how the API server stores it.

Kueue computes a job's pods on the hub and again on the worker, each from its own runtime, and compares the two
container by container. Where they differ the worker gives the job back, and the hub sends it again, for ever. So what
Kueue compares must be equal, and the rest had better be: the job runs, but not as its author tested it.
"""

from __future__ import annotations

import contextlib
import difflib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.tree import Tree

_DOMAIN: Final = f"{names.GROUP}/"
_NOT_SHARED: Final = frozenset({names.LABEL_MANAGED_BY})
"""Labels of ours that speak of one cluster: who installed the runtime there."""
MARKS: Final = ("labels", "annotations")
"""Where a runtime has settings beside its spec: its framework, its port, its MPI."""
_FIRST: Final = ("apiVersion", "kind", "metadata", "name", "namespace")
_AMOUNTS: Final = frozenset({"limits", "requests", "overhead"})
_COUNTED: Final = ("parallelism", "completions")
_COMPARED_OF_PODS: Final = ("containers", "initContainers", "tolerations")


def shared(runtime: Tree) -> Tree:
    """Return what hub and workers must have in common of a runtime: identity, labels and annotations of ours, spec."""
    metadata = runtime["metadata"]
    identity = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    marks = {
        kind: {name: value for name, value in (metadata.get(kind) or {}).items() if _is_shared(name)} for kind in MARKS
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": runtime.get("kind") or names.CLUSTER_TRAINING_RUNTIME,
        "metadata": identity | {kind: kept for kind, kept in marks.items() if kept},
        "spec": trees.copy(runtime.get("spec") or {}),
    }


def own_marks(runtime: Tree) -> Tree:
    """Return the labels and annotations of a runtime that are its cluster's own affair."""
    metadata = runtime["metadata"]
    return {
        kind: {name: value for name, value in (metadata.get(kind) or {}).items() if not _is_shared(name)}
        for kind in MARKS
    }


def normal(runtime: Tree) -> Tree:
    """Return the shared part in one form: no nulls, amounts in their one spelling, keys in order."""
    form: Tree = _normal(trees.without_nulls(shared(runtime)))
    return form


def equal(one: Tree, other: Tree) -> bool:
    """Return whether two runtimes say the same."""
    return normal(one) == normal(other)


def would_run_alike(one: Tree, other: Tree) -> bool:
    """Return whether Kueue computes the same pods from both, as far as it compares them."""
    return _pods(normal(one)) == _pods(normal(other))


def diff(before: Tree | None, after: Tree | None, before_name: str, after_name: str) -> str:
    """Return what leads from one runtime to another, as a unified diff of their YAML.

    The head of each hunk says which part of the object changes, and what all its lines are indented by is left out;
    None stands for a runtime that is not there.
    """
    old, new = ([] if one is None else list(_written(normal(one), ())) for one in (before, after))
    matcher = difflib.SequenceMatcher(None, [line.text for line in old], [line.text for line in new], autojunk=False)
    out = []
    for group in matcher.get_grouped_opcodes(3):
        changed: list[_Line] = []
        hunk: list[tuple[str, str]] = []
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                hunk += [(" ", line.text) for line in old[start:end]]
                continue
            changed += [*old[start:end], *new[new_start:new_end]]
            hunk += [("-", line.text) for line in old[start:end]]
            hunk += [("+", line.text) for line in new[new_start:new_end]]
        depth = min(len(text) - len(text.lstrip()) for _, text in hunk)
        out += [f"@@ {_where(changed)} @@", *(sign + text[depth:] for sign, text in hunk)]
    return "\n".join([f"--- {before_name}", f"+++ {after_name}", *out]) if out else ""


class _Line(NamedTuple):
    """A line of YAML, and the path of what it says."""

    text: str
    path: tuple[str, ...]


def _written(tree: Tree, path: tuple[str, ...]) -> Iterator[_Line]:
    """Write an object as YAML, line by line, for people to read."""
    for key, value in tree.items():
        here = (*path, f".{key}")
        if isinstance(value, dict) and value:
            yield _Line(f"{key}:", here)
            yield from (_Line(f"  {text}", at) for text, at in _written(value, here))
        elif isinstance(value, list) and value:
            yield _Line(f"{key}:", here)
            for place, entry in enumerate(value):
                yield from _entry(entry, (*here, _step(place, entry)))
        elif isinstance(value, str) and "\n" in value:
            yield _Line(f"{key}: |", here)
            yield from (_Line(f"  {text}", here) for text in value.splitlines())
        else:
            yield _Line(f"{key}: {_scalar(value)}", here)


def _entry(entry: Any, path: tuple[str, ...]) -> Iterator[_Line]:
    if not isinstance(entry, dict) or not entry:
        yield _Line(f"- {_scalar(entry)}", path)
        return
    for number, (text, at) in enumerate(_written(entry, path)):
        yield _Line(f"  {text}" if number else f"- {text}", at)


def _step(place: int, entry: Any) -> str:
    return f"[{entry['name']}]" if isinstance(entry, dict) and entry.get("name") else f"[{place}]"


def _scalar(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=1 << 16)
    return text.removesuffix("...\n").rstrip("\n")


def _where(lines: Sequence[_Line]) -> str:
    """Return the path that all lines have in common."""
    shortest = min((line.path for line in lines), key=len)
    common = next((i for i, step in enumerate(shortest) if any(line.path[i] != step for line in lines)), len(shortest))
    return "".join(shortest[:common]).removeprefix(".") or "the whole object"


def _is_shared(name: str) -> bool:
    return (name.startswith(_DOMAIN) and name not in _NOT_SHARED) or name == names.ANNOTATION_REPLACED_BY


def _normal(tree: Any) -> Any:
    if isinstance(tree, dict):
        keys = sorted(tree, key=lambda key: (_FIRST.index(key) if key in _FIRST else len(_FIRST), key))
        return {key: _amounts(tree[key]) if key in _AMOUNTS else _normal(tree[key]) for key in keys}
    if isinstance(tree, list):
        return [_normal(entry) for entry in tree]
    return tree


def _amounts(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    amounts = {}
    for name, amount in sorted(tree.items()):
        amounts[name] = amount
        with contextlib.suppress(QuantityError, TypeError):
            amounts[name] = str(Quantity(Quantity.of(amount).nanos, Quantity.of(amount).family))
    return amounts


def _pods(runtime: Tree) -> tuple[Any, list[Any]]:
    """Return what Kueue compares: names, counts and containers of each pod set, and the policy that decides counts."""
    jobs = []
    for job in trees.get(runtime, "spec", "template", "spec", "replicatedJobs") or ():
        spec = trees.get(job, "template", "spec") or {}
        pod = trees.get(spec, "template", "spec") or {}
        ancestor = trees.get(job, "template", "metadata", "labels", names.LABEL_ANCESTOR)
        counts = [job.get("replicas", 1), *(spec.get(key) for key in _COUNTED)]
        jobs.append((job.get("name"), ancestor, counts, [pod.get(key) or [] for key in _COMPARED_OF_PODS]))
    return trees.get(runtime, "spec", "mlPolicy"), jobs
