"""What each operator does in one look, in the form in which both are compared.

Objects stand by their names and conditions by their types, so that a difference has a place with a name. What was
written now is `now`; words are our own, so only whether there are any is compared.
"""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab.engines import binary
from tests.legacy.conformance.cases import draw
from tests.recorded import RECORD, Question, Recorded
from trainplane.api import tree as trees
from trainplane.api.moments import read_moment
from trainplane.legacy.decide import decide
from trainplane.legacy.decision import Observed, Settings
from trainplane.legacy.status import written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.legacy.conformance.cases import Case, Tree

_TIMES = ("startTime", "completionTime", "lastReconcileTime")
_STAMPS = ("lastUpdateTime", "lastTransitionTime")
_SECONDS = 300
_NOW = timedelta(minutes=30)
"""What is younger was written by a look: no time of a case is."""
_ORACLE: Final = "training-operator-oracle"
_RECORDED: Final = Path(__file__).with_name("recorded.jsonl")
_ASKED_AT: Final = datetime(2001, 1, 1, tzinfo=UTC)
"""A case has times that count from now. This is the now of recorded questions."""
_RUNS: Final = 3
"""How often the oracle is asked when its answers are recorded: it may miss one that is rare."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FROM_NOW: Final = re.compile(r"now([+-]\d+)s")


def recorded_answers(numbers: Sequence[int], now: datetime) -> dict[int, list[Tree]]:
    """Return every answer that training-operator v1.9.3 may give to each case, from what is recorded.

    Its reconcilers walk Go maps, so it answers some cases in several ways, and one run of it may miss one.
    """
    now = now.replace(microsecond=0)

    def ask(questions: Sequence[Question]) -> list[list[Tree]]:
        cases = [draw(int(question.name), now) for question in questions]
        rounds = [ask_oracle(cases) for _ in range(_RUNS if RECORD else 1)]
        return [
            _different([_from_now(one, now) for given in each for one in given]) for each in zip(*rounds, strict=True)
        ]

    recorded = Recorded(_RECORDED, (_ORACLE,), "RECORD=1 make legacy")
    questions = [Question(str(number), draw(number, _ASKED_AT).document) for number in numbers]
    answers = recorded.ask(questions, ask, _is_among)
    return {number: [_at(one, now) for one in given] for number, given in zip(numbers, answers, strict=True)}


def _different(answers: list[Tree]) -> list[Tree]:
    """Return different answers, in an order that is always the same."""
    return [json.loads(text) for text in sorted({json.dumps(one, sort_keys=True) for one in answers})]


def _is_among(recorded: list[Tree], live: list[Tree]) -> bool:
    """Return whether the oracle gave no answer that isn't recorded."""
    return bool(live) and all(one in recorded for one in live)


def _from_now(tree: Any, now: datetime) -> Any:
    """Return a tree with its times as seconds from now."""

    def counted(text: str) -> str:
        moment = read_moment(text) if _TIME.fullmatch(text) else None
        return text if moment is None else f"now{(moment - now).total_seconds():+.0f}s"

    return _texts(tree, counted)


def _at(tree: Any, now: datetime) -> Any:
    """Return a tree with the times that it has at a moment."""

    def timed(text: str) -> str:
        found = _FROM_NOW.fullmatch(text)
        return written(now + timedelta(seconds=int(found[1]))) if found else text

    return _texts(tree, timed)


def _texts(tree: Any, change: Callable[[str], str]) -> Any:
    if isinstance(tree, dict):
        return {name: _texts(value, change) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_texts(value, change) for value in tree]
    return change(tree) if isinstance(tree, str) else tree


def ask_oracle(cases: Sequence[Case]) -> list[list[Tree]]:
    """Return every answer that training-operator v1.9.3 may give to each case."""
    lines = "\n".join(json.dumps(case.document) for case in cases)
    asked = subprocess.run([binary(_ORACLE)], input=lines, capture_output=True, text=True, timeout=_SECONDS, check=True)
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
