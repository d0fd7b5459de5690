"""What both operators made of a case, in one form, and where the two differ."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab.engines import binary
from tests.legacy.mpi.cases import NOW, Case
from tests.recorded import Question, Recorded
from trainplane.api import tree as trees
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.decide import decide
from trainplane.legacy.mpi.job import MPIJob
from trainplane.legacy.mpi.judgement import default, judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.tree import Tree

ABSENT = "<absent>"
_ORACLE: Final = "mpi-operator-oracle"
_RECORDED: Final = Path(__file__).with_name("recorded.jsonl")
_SECONDS: Final = 60
_KINDS = {
    "services": "Service",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "podgroups": "PodGroup",
    "pods": "Pod",
    "jobs": "Job",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a case: requests by verb, kind and name, the status, news by reason, refused fields, defaults."""

    requests: dict[str, Any] = field(default_factory=dict)
    status: Tree = field(default_factory=dict)
    events: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    defaulted: Tree = field(default_factory=dict)

    def tree(self) -> Tree:
        """Return all of it as one tree."""
        return {
            "requests": self.requests,
            "status": self.status,
            "events": list(self.events),
            "refused": list(self.refused),
            "defaulted": self.defaulted,
        }

    @classmethod
    def of(cls, tree: Tree) -> Outcome:
        """Return the outcome that a tree was made of."""
        return cls(**{**tree, "events": tuple(tree["events"]), "refused": tuple(tree["refused"])})


@dataclass(frozen=True)
class Difference:
    """One place where the two differ."""

    case: Case
    path: tuple[str, ...]
    reference: Any
    ours: Any

    @property
    def request(self) -> str:
        """Which request it is about: verb, kind and name; empty for none."""
        return self.path[1] if self.path[0] == "requests" else ""

    def __str__(self) -> str:
        left, right = (json.dumps(value)[:200] for value in (self.reference, self.ours))
        return f"{self.case.name}: {' '.join(self.path)}\n    reference {left}\n    ours      {right}"


def references(cases: Sequence[Case]) -> list[Outcome]:
    """Return what mpi-operator makes of each case, from what is recorded."""

    def ask(questions: Sequence[Question]) -> list[Tree]:
        lines = "\n".join(json.dumps(question.content) for question in questions)
        done = subprocess.run(
            [binary(_ORACLE)], input=lines, capture_output=True, text=True, check=True, timeout=_SECONDS
        )
        answers = map(json.loads, done.stdout.splitlines())
        return [_reference(case, answer).tree() for case, answer in zip(cases, answers, strict=True)]

    recorded = Recorded(_RECORDED, (_ORACLE,), "RECORD=1 make legacy")
    return [Outcome.of(tree) for tree in recorded.ask([_question(case) for case in cases], ask)]


def _question(case: Case) -> Question:
    content = {
        "name": case.name,
        "job": case.job,
        "objects": case.there,
        "gang": case.settings.gang,
        "clusterDomain": case.settings.cluster_domain,
        "now": NOW.isoformat(),
    }
    return Question(case.name, content)


def ours(case: Case) -> Outcome:
    """Return what we make of a case."""
    job = default(case.job)
    decision = decide(MPI, case.observed, case.settings)
    there = {(one["kind"], one["metadata"]["name"]) for one in case.there}
    requests: dict[str, Any] = {}
    for one in decision.create:
        requests[_key("create", one["kind"], one["metadata"]["name"])] = _normal(one)
    for one in decision.apply:
        kind, name = one["kind"], one["metadata"]["name"]
        if (kind, name) in there:
            requests[_key("update", kind, name)] = _content(one)
        else:
            requests[_key("create", kind, name)] = _normal(one)
    for kept in decision.once:
        content = kept.make()
        metadata = {**content.pop("metadata"), "name": kept.name, "namespace": case.job["metadata"]["namespace"]}
        secret = {"apiVersion": kept.api_version, "kind": kept.kind, "metadata": metadata, **content}
        requests[_key("create", kept.kind, kept.name)] = _normal(_owned(secret, case))
    for ref in decision.delete:
        requests[_key("delete", ref.kind, ref.name)] = True
    status = case.job.get("status", {}) if decision.status is None else decision.status
    return Outcome(
        requests,
        _status(status, case),
        tuple(sorted(f"{event.type} {event.reason}" for event in decision.events)),
        tuple(sorted({finding.path for finding in judge(MPIJob(job), case.settings)})),
        _pruned(job["spec"]),
    )


def compare(case: Case, reference: Outcome, other: Outcome) -> Iterator[Difference]:
    """Yield where two outcomes of a case differ, each at the smallest path."""
    yield from _differ(case, (), reference.tree(), other.tree())


def _differ(case: Case, path: tuple[str, ...], left: Any, right: Any) -> Iterator[Difference]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from _differ(case, (*path, key), left.get(key, ABSENT), right.get(key, ABSENT))
    elif left != right:
        yield Difference(case, path, left, right)


def _reference(case: Case, answer: Tree) -> Outcome:
    requests: dict[str, Any] = {}
    status = case.job.get("status", {})
    for action in answer["actions"] or ():
        verb, resource, one = action["verb"], action["resource"], action.get("object")
        if resource == MPI.plural:
            status = one.get("status", {})
        elif resource in _KINDS:
            kind, sub = _KINDS[resource], action.get("subresource", "")
            name = action.get("name") or one["metadata"]["name"]
            if verb == "delete":
                requests[_key(verb, kind, name)] = True
            elif verb == "update":
                requests[_key(verb + sub, kind, name)] = _content(one)
            else:
                version = {"Job": "batch/v1"}.get(kind, "v1")
                requests[_key(verb, kind, name)] = _normal({"apiVersion": version, "kind": kind, **one})
    return Outcome(
        requests,
        _status(status, case),
        tuple(sorted(answer["events"] or ())),
        tuple(sorted({*(answer.get("refused") or ())})),
        _pruned(answer["defaulted"]["spec"]),
    )


def _key(verb: str, kind: str, name: str) -> str:
    return f"{verb} {kind} {name}"


def _owned(one: Tree, case: Case) -> Tree:
    owned: Tree = trees.put(one, "metadata", "ownerReferences", value=[MPIJob(case.job).owner])
    return owned


def _content(one: Tree) -> Tree:
    pruned: Tree = _pruned({part: one.get(part) for part in ("spec", "data")})
    return pruned


def _normal(one: Tree) -> Tree:
    """Return an object as it is sent, without what is drawn and what says nothing."""
    kept = {
        key: value for key, value in one.items() if key != "status" and not (key == "data" and one["kind"] == "Secret")
    }
    pruned: Tree = _pruned(kept)
    return pruned


def _status(status: Tree, case: Case) -> Tree:
    """Return a status in which a time is one that the case has, or now; of words, reasons are compared."""
    known = json.dumps([case.job, *case.there])

    def timed(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {
                key: (value if json.dumps(value) in known else "<now>") if key.endswith("Time") else timed(value)
                for key, value in tree.items()
                if key != "message"
            }
        return list(map(timed, tree)) if isinstance(tree, list) else tree

    pruned: Tree = _pruned(timed(status))
    return pruned


def _pruned(tree: Any) -> Any:
    """Return a tree without what Go leaves out: nulls, empty objects and lists, the zero times of metadata."""
    if isinstance(tree, dict):
        kept = {key: _pruned(value) for key, value in tree.items() if key != "creationTimestamp"}
        return {key: value for key, value in kept.items() if value not in (None, {}, [], "") and value is not False}
    return [_pruned(value) for value in tree] if isinstance(tree, list) else tree
