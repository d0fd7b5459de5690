"""What each operator does in one look, in the form in which both are compared.

Objects stand by their names and conditions by their types, so that a difference has a place with a name. What was
written now is `now`; words are our own, so only whether there are any is compared.
"""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lab.engines import binary
from trainplane.api import tree as trees
from trainplane.api.moments import read_moment
from trainplane.legacy.decide import decide
from trainplane.legacy.decision import Observed, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.legacy.conformance.cases import Case, Tree

_TIMES = ("startTime", "completionTime", "lastReconcileTime")
_STAMPS = ("lastUpdateTime", "lastTransitionTime")
_SECONDS = 300
_NOW = timedelta(minutes=30)
"""What is younger was written by a look: no time of a case is."""


def ask_oracle(cases: Sequence[Case]) -> list[list[Tree]]:
    """Return every answer that training-operator v1.9.3 may give to each case."""
    lines = "\n".join(json.dumps(case.document) for case in cases)
    asked = subprocess.run(
        [binary("training-operator-oracle")], input=lines, capture_output=True, text=True, timeout=_SECONDS, check=True
    )
    answers = [json.loads(line) for line in asked.stdout.splitlines()]
    return [[_look(case, given) for given in each] for case, each in zip(cases, answers, strict=True)]


def ask_ours(case: Case, now: datetime) -> Tree:
    """Return what we do."""
    seen = Observed(trees.copy(case.job), tuple(case.pods), tuple(case.services), tuple(case.others), now)
    decided = decide(case.kind, seen, Settings(gang=case.gang))
    made = [*decided.create, *decided.apply]
    gone = [f"{ref.kind}/{ref.name}" for ref in decided.delete]
    return _look(
        case,
        {
            "pods": [one for one in made if one["kind"] == "Pod"],
            "services": [one for one in made if one["kind"] == "Service"],
            "written": list(decided.apply),
            "deleted": [*gone, *([f"{case.kind.name}/job"] if decided.expired else [])],
            "status": decided.status,
        },
    )


def _look(case: Case, given: Tree) -> Tree:
    found: Tree = {"error": given["error"]} if given.get("error") else {}
    for kind in ("pods", "services"):
        found[kind] = {one["metadata"]["name"]: _object(one) for one in given[kind] or ()}
    found["written"] = {_kind(one): _object(one) for one in given["written"] or ()}
    found["deleted"] = dict.fromkeys(given["deleted"] or (), True)
    found["status"] = _status(given["status"] or case.job.get("status") or {})
    counts = found["status"].get("replicaStatuses", {})
    found["status"]["replicaStatuses"] = {name: counts.get(name, {}) for name in case.kind.types}
    return found


def _kind(obj: Tree) -> str:
    """Return the kind of an object, which Go leaves out where its type says it."""
    return "HorizontalPodAutoscaler" if "scaleTargetRef" in obj["spec"] else "PodGroup"


def _object(obj: Tree) -> Tree:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "creationTimestamp")}
    found: Tree = _pruned({"metadata": metadata, "spec": obj["spec"]})
    if "ports" in found.get("spec", ()):
        found["spec"]["ports"].sort(key=lambda one: str(one.get("name")))
    return found


def _status(status: Tree) -> Tree:
    found = {key: value for key, value in status.items() if key not in (*_TIMES, "conditions")}
    conditions = status.get("conditions") or []
    found["conditions"] = {one["type"]: _condition(one) for one in conditions}
    found["state"] = conditions[-1]["type"] if conditions else ""
    found |= {name: _moment(status[name]) for name in _TIMES if status.get(name)}
    return dict(_pruned(found))


def _condition(condition: Tree) -> Tree:
    found = {**condition, **{name: _moment(condition[name]) for name in _STAMPS}}
    return {**found, "message": bool(condition.get("message"))}


def _moment(text: str) -> str:
    moment = read_moment(text)
    return "now" if moment is not None and datetime.now(UTC) - moment < _NOW else text


def _pruned(tree: Any) -> Any:
    """Return a tree without what Go leaves out: nulls, zeros, and what is empty."""
    if isinstance(tree, dict):
        found = {key: _pruned(value) for key, value in tree.items()}
        return {key: value for key, value in found.items() if value or isinstance(value, bool)}
    return [_pruned(value) for value in tree] if isinstance(tree, list) else tree
