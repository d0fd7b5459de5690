"""A recording gives again what the reference decided and made, step by step; the committed ones are up to date."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Case, Create, Remove
from tests.conformance.documents import COMPLETED, FAILED, container, replicated_job, reported, runtime, train_job
from tests.conformance.drive import Drive, Run
from tests.conformance.normal import NOW
from tests.conformance.recording import FOLDER, LONG, Recorder, Recordings, Replayed, Told, without_chance
from tests.conformance.side import Answer
from tests.recorded import RecordedError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance.cases import Step, Tree
    from tests.conformance.compare import Verdict

CASE = Case("one", (Create(train_job()), Remove("TrainJob")), (runtime(),))
OTHER = Case("two", (Create(train_job()),), (runtime(),))
BARE = Case("three", (Create(train_job()),))
KEYS = {"trainer": "k1"}


class Canned(Recorder):
    """A recorder whose API server lists one TrainJob for each write so far, and answers with a warning."""

    def __init__(self, prefix: str = "rc") -> None:
        self.name, self.prefix = "reference", prefix
        self._told = defaultdict(Told)
        self._cases = {}
        self._lock = threading.Lock()
        self.writes = 0
        self.image = "test:image"

    def send(self, method: str, path: str, body: Any = None, content_type: str = "") -> Answer:
        del body, content_type
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        if method != "GET":
            self.writes += 1
            return Answer(
                201 if path.endswith("/namespaces") else 200 + self.writes,
                {},
                (f"299 - about {namespace} at 2030-01-01T00:00:00Z",),
            )
        if not path.endswith("/trainjobs"):
            return Answer(200, {"items": []})
        return Answer(200, {"items": [self._job(number, namespace) for number in range(self.writes)]})

    def _job(self, number: int, namespace: str) -> Tree:
        text = "a" * (LONG + 1 + number)
        metadata = {"name": f"n-{number}", "namespace": namespace, "uid": f"{self.prefix}-{number}"}
        return {"metadata": metadata, "spec": {"image": self.image, "writes": self.writes, "none": None, "text": text}}


def lived(side: Canned, case: Case, number: int) -> tuple[dict[str, Told], list[Verdict], list[Tree]]:
    """Return what a side keeps of a case, and what it said at the time."""
    where, verdicts, seen = side.namespace(number), [], []
    side.begin(case, where)
    side.writes = 0  # without the namespace
    for step in (*map(Create, case.setup), *case.steps):
        verdicts.append(side.take(step, where))
        side.states([where])
        seen += side.states([where])
    return side.told([Run(case, number)]), verdicts, seen


def recordings(folder: Path, *cases: Case, **keys: str) -> Recordings:
    return Recordings({"some": cases}, folder, keys=keys or KEYS)


@pytest.mark.parametrize("case", [CASE, BARE], ids=str)
def test_what_was_said_is_said_again(tmp_path: Path, case: Case) -> None:
    told, verdicts, seen = lived(Canned(), case, 7)
    recordings(tmp_path, case).write(told)
    side = Replayed(recordings(tmp_path, case))
    for number in (0, 1):  # a case can be told again, under its next number
        where = side.namespace(number)
        side.begin(case, where)
        for step, verdict, objects in zip((*map(Create, case.setup), *case.steps), verdicts, seen, strict=True):
            assert side.take(step, where) == verdict
            assert side.states([where]) == [objects]
            assert "TrainJob n-0" in objects


def test_two_recordings_in_other_namespaces_are_equal_byte_by_byte(tmp_path: Path) -> None:
    for number, prefix in enumerate(("ra", "rb")):
        recordings(tmp_path / prefix, CASE).write(lived(Canned(prefix), CASE, number)[0])
    texts = [(tmp_path / prefix / "some.jsonl").read_text() for prefix in ("ra", "rb")]
    assert texts[0] == texts[1]
    assert "about @ns@ at <now>" in texts[0]
    assert len(texts[0]) < LONG * 3


def test_a_step_is_recorded_as_what_it_changes(tmp_path: Path) -> None:
    recordings(tmp_path, CASE).write(lived(Canned(), CASE, 0)[0])
    answer = json.loads((tmp_path / "some.jsonl").read_text().splitlines()[1])["answer"]
    first, *later = answer["objects"]
    assert first.keys() == {"TrainJob n-0"}
    assert [change["TrainJob n-0"] for change in later] == [{"spec": {"writes": 2}}, {"spec": {"writes": 3}}]


class Refused(Canned):
    """A recorder of an operator that made some objects and gave up at the JobSet."""

    def send(self, method: str, path: str, body: Any = None, content_type: str = "") -> Answer:
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        if method == "GET" and path.endswith("/configmaps"):
            names = ("job-runtime-snapshot", "job-flux-entrypoint")
            return Answer(
                200, {"items": [{"metadata": {"name": one, "namespace": namespace, "uid": one}} for one in names]}
            )
        return super().send(method, path, body, content_type)


@pytest.mark.parametrize(("ports", "is_kept"), [([{"containerPort": 1}], True), ([{"containerPort": 1}] * 2, False)])
def test_what_is_left_to_chance_is_not_recorded(ports: list[Tree], is_kept: bool) -> None:
    case = Case(
        "ports", (Create(train_job(trainer={})),), (runtime(replicated_job(containers=[container(ports=ports)])),)
    )
    told, _, _ = lived(Refused(), case, 0)
    for states in told["ports"].states.values():
        assert "ConfigMap job-runtime-snapshot" in states
        assert ("ConfigMap job-flux-entrypoint" in states) == is_kept


def job(*conditions: str) -> Tree:
    return {"metadata": {}, "status": {"conditions": [{"type": one} for one in conditions], "jobsStatus": []}}


FAILS = (Create(train_job()), reported(conditions=(FAILED,)), Remove("JobSet"))


@pytest.mark.parametrize(
    ("steps", "taken", "jobset", "conditions", "is_kept"),
    [
        (FAILS, 4, {}, ("Failed",), False),
        (FAILS, 3, {}, ("Failed",), True),
        (FAILS, 4, {"status": {}}, ("Failed",), True),
        (FAILS, 4, {}, ("Failed", "Suspended"), True),
        (FAILS, 4, {}, ("Complete",), True),
        ((FAILS[0], FAILS[2], FAILS[1]), 4, {}, ("Failed",), True),
        ((FAILS[0], reported(conditions=(COMPLETED,)), FAILS[2]), 4, {}, ("Failed",), True),
    ],
)
def test_a_failure_is_forgotten_with_its_jobset(
    steps: tuple[Step, ...], taken: int, jobset: Tree, conditions: tuple[str, ...], is_kept: bool
) -> None:
    states = {"TrainJob job": job(*conditions), "JobSet job": jobset}
    found = without_chance(Case("fails", steps, (runtime(),)), taken, states)
    assert ("status" in found["TrainJob job"]) is is_kept
    assert found["JobSet job"] == jobset


def test_a_case_that_says_something_else_has_no_answer(tmp_path: Path) -> None:
    recordings(tmp_path, CASE).write(lived(Canned(), CASE, 0)[0])
    changed = Case("one", CASE.steps, (runtime(policy={"numNodes": 2}),))
    found = recordings(tmp_path, changed, OTHER)
    with pytest.raises(RecordedError, match=r"'one': the case changed .*: run `RECORD=1 make conformance`"):
        found.of(changed)
    with pytest.raises(RecordedError) as caught:
        found.require([changed, OTHER])
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == [" 'one'", " 'two'"]
    with pytest.raises(RecordedError, match="no case that is recorded"):
        found.of(BARE)
    with pytest.raises(RecordedError):
        Replayed(found).begin(changed, "re-00000-ns")


def test_another_reference_has_no_answer(tmp_path: Path) -> None:
    recordings(tmp_path, CASE).write(lived(Canned(), CASE, 0)[0])
    with pytest.raises(RecordedError, match="recorded with trainer k1, the checkout pins trainer k2"):
        recordings(tmp_path, CASE, trainer="k2").require([CASE])


class Settled(Canned):
    """A recorder of an operator that has reached everything at once."""

    def prepare(self, fence_runtime: Tree) -> None:
        """Make nothing: each write is a TrainJob more."""

    def begin(self, case: Case, namespace: str) -> None:
        """Note the case, and make nothing."""
        self._cases[namespace] = case

    def fence(self, document: Tree) -> None:
        """Return at once."""

    def close(self) -> None:
        """Close nothing."""


def test_the_whole_run_finds_what_differs_from_the_recording(tmp_path: Path) -> None:
    recordings(tmp_path, OTHER).write(lived(Canned(), OTHER, 0)[0])
    found = []
    for image in ("test:image", "test:other"):
        live = Settled("rw")
        live.image = image
        drive = Drive(Replayed(recordings(tmp_path, OTHER)), live, patience=lambda _: 0.0)
        (run,) = drive.run([OTHER])
        drive.close()
        found.append(sorted({one.path for one in run.differences}))
    assert found == [[], ["spec.image"]]


# -- the committed recordings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_recording_has_nothing_of_its_run(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"\b[a-z]{2}-\d{5}-ns", text) == []
    assert NOW.findall(text) == []
    assert "resourceVersion" not in text
    assert "managedFields" not in text
