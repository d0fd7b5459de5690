"""Jobs of v1 before our admission and before training-operator v1.9.3's own: what it refuses, we refuse.

Jobs are drawn with a few faults each, completed as admission does, and shown to both. Where we refuse more, a cause
says why; where we refused less, there would be none.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from lab.engines import binary
from tests.recorded import Question, Recorded
from trainplane.api import tree as trees
from trainplane.api.legacy import kinds, names
from trainplane.legacy.decision import Settings
from trainplane.legacy.judgement import default, problems

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.suite import SuiteReport
    from trainplane.api.legacy.kinds import Kind
    from trainplane.render.findings import Finding

Tree = dict[str, Any]

V1: Final = tuple(kind for kind in kinds.KINDS.values() if kind is not kinds.MPI)
CASES: Final = 2000
SETTINGS: Final = Settings()
ORACLE: Final = "training-operator-oracle"
RECORDED: Final = Path(__file__).with_name("recorded")


def plain(draw: random.Random, kind: Kind) -> Tree:
    """Return a job that anybody takes."""
    wanted = {names.MASTER} if kind in {kinds.XGBOOST, kinds.PYTORCH} else set()
    types = wanted | {names.WORKER} | set(draw.sample(kind.types, draw.randint(0, len(kind.types))))
    if {names.CHIEF, names.MASTER} <= types:
        types.discard(names.MASTER)
    template = {"spec": {"containers": [{"name": kind.container, "image": "train:1"}]}}
    counts = {name: 1 if name == names.MASTER else draw.randint(1, 3) for name in sorted(types)}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {kind.specs: {name: {"replicas": count, "template": template} for name, count in counts.items()}},
    }


def _put(job: Tree, *path: str, value: Any) -> Tree:
    changed: Tree = trees.put(job, *path, value=value)
    return changed


def _named(draw: random.Random, _: Kind, job: Tree) -> Tree:
    name = draw.choice(["Train", "1st", "a.b", "a" * 63, "a" * 64, "a" * 54, "ends-", "x"])
    return _put(job, "metadata", "name", value=name)


def _managed(draw: random.Random, _: Kind, job: Tree) -> Tree:
    manager = draw.choice(["", "other", names.MANAGED_BY_TRAINING_OPERATOR, names.MANAGED_BY_MULTIKUEUE])
    return _put(job, "spec", "runPolicy", "managedBy", value=manager)


def _counted(draw: random.Random, kind: Kind, job: Tree) -> Tree:
    name = draw.choice(sorted(job["spec"][kind.specs]))
    return _put(job, "spec", kind.specs, name, "replicas", value=draw.choice([-1, 0, 1, 2, 5000]))


def _typed(draw: random.Random, kind: Kind, job: Tree) -> Tree:
    replicas = dict(job["spec"][kind.specs])
    name = draw.choice(sorted(replicas))
    replicas[draw.choice(["Boss", names.MASTER, names.CHIEF, name.upper()])] = replicas.pop(name)
    return _put(job, "spec", kind.specs, value=replicas)


def _bare(draw: random.Random, kind: Kind, job: Tree) -> Tree:
    containers = draw.choice(
        [[], [{"name": "other", "image": "x"}], [{"name": kind.container}], [{"name": "a", "image": ""}]]
    )
    name = draw.choice(sorted(job["spec"][kind.specs]))
    return _put(job, "spec", kind.specs, name, "template", "spec", "containers", value=containers)


def _without(draw: random.Random, kind: Kind, job: Tree) -> Tree:
    name = draw.choice(sorted(job["spec"][kind.specs]))
    return _put(job, "spec", kind.specs, value=trees.drop(job["spec"][kind.specs], name))


def _elastic(draw: random.Random, kind: Kind, job: Tree) -> Tree:
    if not kind.elastic:
        return job
    policy: Tree = draw.choice([{}, {"minReplicas": 2, "maxReplicas": 1}, {"nProcPerNode": 2}, {"maxReplicas": 4}])
    if kind is kinds.PADDLE:
        policy.pop("nProcPerNode", None)
    more = {"nprocPerNode": "2"} if kind is kinds.PYTORCH and draw.random() < 0.5 else {}
    return {**job, "spec": {**job["spec"], "elasticPolicy": policy, **more}}


def _ruled(draw: random.Random, kind: Kind, job: Tree) -> Tree:
    field, value = draw.choice([("cleanPodPolicy", "Some"), ("backoffLimit", -1), ("backoffLimit", 3)])
    return _put(job, "spec", "runPolicy", field, value=value)


def _restarted(draw: random.Random, kind: Kind, job: Tree) -> Tree:
    name = draw.choice(sorted(job["spec"][kind.specs]))
    policy = draw.choice(["Sometimes", *names.RESTART_POLICIES])
    return _put(job, "spec", kind.specs, name, "restartPolicy", value=policy)


FAULTS: Final[tuple[Callable[[random.Random, Kind, Tree], Tree], ...]] = (
    _named,
    _managed,
    _counted,
    _typed,
    _bare,
    _without,
    _elastic,
    _ruled,
    _restarted,
)

STRICTER: Final = {
    "a name that is too long for the pods that follow": r"metadata\.name: is too long",
    "a restart policy that no pod can have": r"\.restartPolicy: must be",
    "a run policy that means nothing": r"spec\.runPolicy\.(cleanPodPolicy|backoffLimit): ",
    "a type that TensorFlow does not know, of which the old operator made pods": r"is no replica type of a TFJob",
    "no pods, or more than are looked after": r"asks for (no pod|\d+ pods)",
    "so many that no process could be told of all": r"asks for so many pods that the list of their addresses",
    "fewer pods than none": r"\.replicas: must be at least 0",
    "bounds of an elastic job that are none": r"spec\.elasticPolicy\.m",
    "an elastic PaddleJob without workers": r"spec\.paddleReplicaSpecs\.Worker: is missing",
    "JAXJobs' managedBy, which the old operator's webhook forgot": r"spec\.runPolicy\.managedBy: must be",
}
"""Why we refuse what it takes, and how such a finding reads."""


PLANTED: Final = (
    r"metadata\.name: must begin",
    r"spec\.runPolicy\.managedBy: must be",
    r"is no replica type of",
    r"\.image: is missing",
    r"must have a container",
    r"\.Master\.replicas: must be 1",
    r"\.Worker\.replicas: must be at least 1",
    r"spec\.xgbReplicaSpecs\.Master: is missing",
    r"has both Chief and Master",
    r"spec\.pytorchReplicaSpecs\.Worker: is missing",
    r"nProcPerNode: says what",
)
"""Rules that the old operator has too, by how their findings read; each is taken away once."""


class Reviewed(NamedTuple):
    """A job, whether the old operator refuses it, and what we say of it."""

    job: Tree
    theirs: bool
    ours: list[Finding]


def ask(cases: list[Tree], file: str) -> list[bool]:
    """Return whether training-operator's webhooks refuse each case, from what is recorded.

    Their messages have addresses in memory and are not recorded.
    """
    recorded = Recorded(RECORDED / f"{file}.jsonl", (ORACLE,), "RECORD=1 make legacy")
    return recorded.ask([Question(str(number), case) for number, case in enumerate(cases)], _ask_oracle)


def _ask_oracle(questions: Sequence[Question]) -> list[bool]:
    text = "".join(json.dumps(question.content) + "\n" for question in questions)
    ran = subprocess.run([binary(ORACLE)], input=text, capture_output=True, text=True, timeout=60, check=True)
    return [bool(json.loads(line)[0]) for line in ran.stdout.splitlines()]


def found(job: Tree, old: Tree | None = None) -> list[Finding]:
    """Return what we say of a job."""
    return problems(kinds.KINDS[job["kind"]], job, old, SETTINGS)


@pytest.fixture(scope="module")
def reviewed() -> list[Reviewed]:
    """Return jobs with up to three faults each, completed, as both sides judge them."""
    draw = random.Random(20)  # noqa: S311 no secret
    jobs = []
    for _ in range(CASES):
        kind = draw.choice(V1)
        job = plain(draw, kind)
        for fault in draw.sample(FAULTS, draw.randint(0, 3)):
            job = fault(draw, kind, job) if job["spec"][kind.specs] else job
        jobs.append(default(kind, job))
    answers = ask([{"review": job} for job in jobs], "creates")
    return [Reviewed(job, said, found(job)) for job, said in zip(jobs, answers, strict=True)]


def test_what_the_old_operator_refuses_is_refused_and_the_rest_has_a_cause(
    reviewed: list[Reviewed], report: SuiteReport
) -> None:
    looser = [one for one in reviewed if one.theirs and not one.ours]
    stricter = [
        str(finding)
        for one in reviewed
        if not one.theirs
        for finding in one.ours
        if not any(re.search(pattern, str(finding)) for pattern in STRICTER.values())
    ]
    report.figure("admission_cases", len(reviewed))
    report.figure("admission_unexplained", len(looser) + len(stricter))
    assert CASES // 5 < sum(bool(one.theirs) for one in reviewed) < CASES * 4 // 5
    assert looser == []
    assert stricter == []


def test_each_cause_is_needed(reviewed: list[Reviewed]) -> None:
    told = [str(finding) for one in reviewed if not one.theirs for finding in one.ours]
    assert [cause for cause, pattern in STRICTER.items() if not any(re.search(pattern, one) for one in told)] == []


def test_a_rule_that_is_missing_is_noticed(reviewed: list[Reviewed], report: SuiteReport) -> None:
    refused = [[str(finding) for finding in one.ours] for one in reviewed if one.theirs]
    noticed = [rule for rule in PLANTED if any(all(re.search(rule, one) for one in ours) for ours in refused)]
    report.figure("admission_planted", len(PLANTED))
    report.figure("admission_found", len(noticed))
    assert noticed == list(PLANTED)


@pytest.fixture(scope="module")
def updated() -> dict[str, tuple[Tree, Tree, bool]]:
    """Return a job of each kind that gets another manager: before, after, and whether the old operator refuses it."""
    olds = [default(kind, plain(random.Random(1), kind)) for kind in V1]  # noqa: S311 no secret
    news = [trees.put(old, "spec", "runPolicy", "managedBy", value=names.MANAGED_BY_MULTIKUEUE) for old in olds]
    said = ask([{"review": new, "older": old} for old, new in zip(olds, news, strict=True)], "updates")
    return dict(zip((kind.name for kind in V1), zip(olds, news, said, strict=True), strict=True))


@pytest.mark.parametrize("kind", V1, ids=lambda kind: kind.name)
def test_who_manages_a_job_does_not_change(kind: Kind, updated: dict[str, tuple[Tree, Tree, bool]]) -> None:
    """Of a PyTorchJob and a JAXJob the old operator's webhook lets it pass, by mistake; here it does not."""
    old, new, is_refused = updated[kind.name]
    assert is_refused == (kind not in {kinds.PYTORCH, kinds.JAX})
    assert [finding.path for finding in found(new, old)] == ["spec.runPolicy.managedBy"]
