"""What the reference decided and made, step by step of each case: recorded once, in `recorded/SUBJECT.jsonl`.

    Told         what the reference made of one case: a verdict for each step, and the objects after it
    Recordings   the recorded answers to cases, by the file that each belongs to
    Recorder     a side that keeps what its API server answers
    Replayed     a side that answers from recordings, at once

Everything is in the normal form in which both sides are compared, so that two recordings are equal byte by byte. A file
has what changed since the step before. The objects of a step are those that were last seen before the next one.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.conformance import ports
from tests.conformance.cases import Await, Remove, Report
from tests.conformance.compare import Verdict
from tests.conformance.context import merged
from tests.conformance.drive import Drive
from tests.conformance.normal import message
from tests.conformance.side import Side
from tests.recorded import Question, Recorded, RecordedError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from tests.conformance.cases import Case, Step, Tree
    from tests.conformance.drive import Run

States = dict[str, "Tree"]
"""Objects in normal form, by kind and name."""

FOLDER: Final = Path(__file__).with_name("recorded")
ENGINES: Final = ("trainer", "kubernetes", "jobset")
"""The engines that an answer comes from: the reference, its API server, and JobSet's webhooks."""
COMMAND: Final = "RECORD=1 make conformance"
AT_ONCE: Final = 140
"""How many cases the reference is asked about at once: it reconciles one TrainJob at a time."""
QUIET_SECONDS: Final = 3.0
"""How long the reference is left alone before its objects are recorded."""
LONG: Final = 1000
_LONGEST: Final = 4_000_000
_REPEATED: Final = "repeated"


@dataclass
class Told:
    """What the reference made of a case: a verdict for each step, and the objects by how many steps were taken."""

    verdicts: list[Verdict] = field(default_factory=list)
    states: dict[int, States] = field(default_factory=dict)


# -- files ------------------------------------------------------------------------------------------------------------


def question(case: Case) -> Question:
    """Return all that the reference is told of a case."""
    steps = [[type(step).__name__, asdict(step)] for step in case.steps]
    return Question(case.id, {"setup": case.setup, "steps": steps})


class Recordings:
    """The recorded answers to some cases.

    Args:
        cases: the cases by the name of their file.
        folder: where the files are.
        keys: the keys of the engines, for tests.
    """

    def __init__(
        self, cases: Mapping[str, Iterable[Case]], folder: Path = FOLDER, *, keys: dict[str, str] | None = None
    ) -> None:
        self.cases = {name: tuple(some) for name, some in cases.items()}
        self._files = {name: Recorded(folder / f"{name}.jsonl", ENGINES, COMMAND, keys=keys) for name in self.cases}
        self._homes = {case.id: name for name, some in self.cases.items() for case in some}

    def of(self, case: Case) -> Told:
        """Return the answer to a case.

        Raises:
            RecordedError: there is none, or it isn't valid any more.
        """
        if case.id not in self._homes:
            message = f"{case.id!r} is no case that is recorded"
            raise RecordedError(message)
        return _unpacked(case, self._files[self._homes[case.id]].answer(question(case)))

    def require(self, cases: Iterable[Case]) -> None:
        """Raise a RecordedError that names every case without a valid answer."""
        asked = defaultdict(list)
        for case in cases:
            asked[self._homes[case.id]].append(question(case))
        problems = [one for name, questions in asked.items() for one in self._files[name].problems(questions)]
        if problems:
            raise RecordedError("\n".join(problems))

    def write(self, told: Mapping[str, Told]) -> None:
        """Write all files again, from what was told of each case by its id."""
        for name, cases in self.cases.items():
            self._files[name].write((question(case), _packed(told[case.id])) for case in cases)

    def strays(self) -> list[str]:
        """Return the recorded answers that belong to no case."""
        return [
            f"{name}.jsonl: {one}"
            for name, cases in self.cases.items()
            for one in self._files[name].strays(map(question, cases))
        ]


def _packed(told: Told) -> Tree:
    """Return an answer as a file has it: of a verdict no empty fields at its end, of objects what changed."""
    verdicts = []
    for one in told.verdicts:
        values: list[Any] = [one.code, list(one.fields), one.warned, one.message]
        while not values[-1]:
            values.pop()
        verdicts.append(values)
    before: States = {}
    changes = []
    steps = sorted(told.states)
    assert steps == list(range(steps[0], len(told.verdicts) + 1)), "the objects of a step are missing"
    for taken in steps:
        after = told.states[taken]
        changes.append(_change(before, after))
        assert _changed(before, changes[-1]) == after
        before = after
    return {"verdicts": verdicts, "objects": _short(changes)}


def _unpacked(case: Case, packed: Tree) -> Told:
    verdicts = [Verdict(code, *_typed(*rest)) for code, *rest in packed["verdicts"]]
    states: dict[int, States] = {}
    now: States = {}
    for taken, change in enumerate(_long(packed["objects"]), len(case.setup) or 1):
        now = states[taken] = _changed(now, change)
    return Told(verdicts, states)


def _short(tree: Any) -> Any:
    """Return a tree with a letter and a count for each very long text of one letter, as some cases have."""
    if isinstance(tree, dict):
        return {name: _short(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_short(value) for value in tree]
    if isinstance(tree, str) and len(tree) > LONG and tree == tree[0] * len(tree):
        return {_REPEATED: [tree[0], len(tree)]}
    return tree


def _long(tree: Any) -> Any:
    """Return a tree with its very long texts again."""
    if isinstance(tree, list):
        return [_long(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.keys() == {_REPEATED}:
        letter, count = tree[_REPEATED]
        return letter * min(count, _LONGEST)
    return {name: _long(value) for name, value in tree.items()}


def _typed(fields: Sequence[str] = (), warned: int = 0, message: str = "") -> tuple[tuple[str, ...], int, str]:
    return tuple(fields), warned, message


def _change(before: States, after: States) -> Tree:
    """Return what changed: a merge patch of each object, null for one that is gone, `=` for one written whole."""
    change: Tree = {name: None for name in before if name not in after}
    for name, tree in after.items():
        old = before.get(name)
        if old == tree:
            continue
        patch = _patch(old or {}, tree)
        change[name] = patch if merged(old or {}, patch) == tree else {"=": tree}
    return change


def _changed(before: States, change: Tree) -> States:
    after = dict(before)
    for name, patch in change.items():
        if patch is None:
            del after[name]
        else:
            after[name] = patch["="] if patch.keys() == {"="} else merged(before.get(name, {}), patch)
    return after


def _patch(before: Tree, after: Tree) -> Tree:
    """Return a merge patch (RFC 7386), which can't say null: the caller checks what comes of it."""
    patch: Tree = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if old != value:
                patch[name] = _patch(old, value)
        elif name not in before or type(old) is not type(value) or old != value:
            patch[name] = value
    return patch


# -- sides ------------------------------------------------------------------------------------------------------------


class Recorder(Side):
    """A side of the reference that keeps what it was told, without what differs between any two runs."""

    fence_seconds = 240.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._told: defaultdict[str, Told] = defaultdict(Told)
        self._cases: dict[str, Case] = {}
        self._lock = threading.Lock()

    def begin(self, case: Case, namespace: str) -> None:
        """Create the namespace of a case, and note the case."""
        self._cases[namespace] = case
        super().begin(case, namespace)

    def take(self, step: Step, namespace: str) -> Verdict:
        """Take one step, and keep the verdict."""
        verdict = super().take(step, namespace)
        kept = replace(verdict, message=message(verdict.message, namespace))
        with self._lock:
            self._told[namespace].verdicts.append(kept)
        return kept

    def states(self, namespaces: Sequence[str]) -> list[States]:
        """Return the objects, and keep them as what the last step led to."""
        seen, found = super().states(namespaces), []
        with self._lock:
            for name, states in zip(namespaces, seen, strict=True):
                told = self._told[name]
                taken = len(told.verdicts)
                told.states[taken] = without_chance(self._cases[name], taken, _plain(states))
                found.append(told.states[taken])
        return found

    def told(self, runs: Iterable[Run]) -> dict[str, Told]:
        """Return what was kept of some cases, by their ids."""
        return {run.case.id: self._told[self.namespace(run.number)] for run in runs}


def _plain(states: States) -> States:
    """Return objects without two texts of Flux: a certificate that is made of a uid, and scripts that are long.

    Ours are wanted differences, whatever the reference has there.
    """
    return {name: _plain_object(name, tree) for name, tree in states.items()}


def without_chance(case: Case, taken: int, states: States) -> States:
    """Return objects without what the reference makes of a case only by chance.

    If the API server refuses a JobSet, the reference gives up at the first object that is refused. In which order it
    comes to objects differs from start to start. If a JobSet that failed is deleted, the reference mostly forgets the
    failure when it creates the JobSet again, and sometimes doesn't.
    """
    jobset = next((tree for place, tree in states.items() if _kind(place) == "JobSet"), None)
    if jobset is None and ports.are_refused(case):
        return {place: tree for place, tree in states.items() if not _is_beside(place)}
    if jobset is not None and "status" not in jobset and _lost_failure(case.steps[: taken - len(case.setup)]):
        return {place: _forgetful(tree) if _kind(place) == "TrainJob" else tree for place, tree in states.items()}
    return states


def _is_beside(place: str) -> bool:
    return _kind(place) in ports.BESIDE and not place.endswith("-runtime-snapshot")


def _lost_failure(steps: Sequence[Step]) -> bool:
    """Return whether a JobSet was deleted after it had reported that it failed."""
    reports = [number for number, step in enumerate(steps) if isinstance(step, Report) and _fails(step)]
    return any(isinstance(step, Remove) and step.kind == "JobSet" for step in (steps[reports[0] :] if reports else ()))


def _fails(report: Report) -> bool:
    return any(one["type"] == "Failed" for one in report.status.get("conditions", ()))


def _forgetful(job: Tree) -> Tree:
    """Return a TrainJob without a status that has nothing but the failure and the counts of the JobSet that is gone."""
    conditions = [one["type"] for one in job.get("status", {}).get("conditions", ())]
    return {name: value for name, value in job.items() if name != "status"} if conditions == ["Failed"] else job


def _kind(place: str) -> str:
    return place.partition(" ")[0]


def _plain_object(name: str, tree: Tree) -> Tree:
    if name.endswith("-flux-curve"):
        return {**tree, "data": {key: f"<{len(text)} letters>" for key, text in tree.get("data", {}).items()}}
    if name.endswith("-flux-entrypoint"):
        return {**tree, "data": {key: f"<sha256 {_digest(text)}>" for key, text in tree.get("data", {}).items()}}
    return tree


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Replayed(Side):
    """A side that answers from recordings."""

    def __init__(self, recordings: Recordings) -> None:
        self.name, self.prefix = "recorded", "re"
        self._recordings = recordings
        self._told: dict[str, Told] = {}
        self._taken: defaultdict[str, int] = defaultdict(int)

    def begin(self, case: Case, namespace: str) -> None:
        """Look up the answer to a case."""
        self._told[namespace] = self._recordings.of(case)

    def take(self, step: Step, namespace: str) -> Verdict:
        """Return the verdict that the step had."""
        del step
        self._taken[namespace] += 1
        return self._told[namespace].verdicts[self._taken[namespace] - 1]

    def states(self, namespaces: Sequence[str]) -> list[States]:
        """Return the objects after the last step."""
        return [self._told[name].states[self._taken[name]] for name in namespaces]

    def prepare(self, fence_runtime: Tree) -> None:
        """Do nothing: no operator runs."""

    def fence(self, document: Tree) -> None:
        """Do nothing: no operator runs."""

    def close(self) -> None:
        """Do nothing: no connection is open."""


# -- the reference ----------------------------------------------------------------------------------------------------


class Quiet(Drive):
    """A drive that leaves both sides alone for a while before it compares, so that what it sees is settled.

    Cases that wait for a deadline have no time for that.
    """

    _is_quiet = True

    def run(self, cases: Sequence[Case]) -> list[Run]:
        """Take all cases to their ends."""
        self._is_quiet = not any(map(_waits, cases))
        return super().run(cases)

    def _settle(self) -> None:
        super()._settle()
        if self._is_quiet:
            time.sleep(QUIET_SECONDS)
            super()._settle()


def _waits(case: Case) -> bool:
    return any(isinstance(step, Await) for step in case.steps)


def drive_all(drive: Drive, cases: Collection[Iterable[Case]]) -> list[Run]:
    """Drive the cases of all files, some at once: those with few steps first, those that wait for a deadline last."""
    every = sorted((case for some in cases for case in some), key=lambda case: len(case.steps))
    together, waiting = ([case for case in every if _waits(case) is waits] for waits in (False, True))
    batches = [together[start : start + AT_ONCE] for start in range(0, len(together), AT_ONCE)]
    return [run for batch in (*batches, waiting) if batch for run in drive.run(batch)]


def record(recordings: Recordings, drive: Drive, recorder: Recorder) -> None:
    """Record all cases. The drive's other side is the reference as well, in other namespaces.

    Raises:
        RecordedError: the reference made two different things of one case.
    """
    runs = drive_all(drive, recordings.cases.values())
    if found := [str(one) for run in runs for one in run.differences]:
        raise RecordedError("the reference differs from itself, nothing is recorded:\n" + "\n".join(found))
    recordings.write(recorder.told(runs))
