"""Cases made by Hypothesis: runtimes, TrainJobs and stories that nobody thought of.

The strategies decide what a case is about (framework, jobs, counts, environment, patches of several managers, what
happens to the job); the fields of pods come from the schema. Frameworks take turns. Cases are collected first and then
driven all at once, since each takes a round trip through two operators; the seed is given, and a case has the same
number in every run of it, however many are asked for.
"""

from __future__ import annotations

import functools
from random import Random
from typing import TYPE_CHECKING, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import day
from tests.conformance.cases import Case, Change, Create, Remove, Report, Step, Tree
from tests.conformance.context import KUEUE, ancestor
from tests.conformance.documents import COMPLETED, FAILED, counts, patch, reported, train_job
from tests.conformance.generated_patches import edited, jobs_of, patches
from tests.conformance.generated_pods import ENV, RESOURCES
from tests.conformance.generated_runtimes import FRAMEWORKS, runtimes
from tests.conformance.schema import WORDS
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.render import pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.generated_pods import Draw

SEED: Final = day.seed()
"""Whose cases a run drives; see `tests.day`."""
_PIPELINE = pipeline.Pipeline(plugin() for plugin in (*pipeline.FRAMEWORKS, *pipeline.COMMON))
_FAR = 3600
"""Seconds until a deadline that no run reaches."""
_BYTES = 16_384
"""What a case is drawn from; more than any needs."""
_TRAINER = st.fixed_dictionaries(
    {},
    optional={
        "numNodes": st.integers(1, 4),
        "image": st.just("test:trainjob"),
        "command": st.lists(st.sampled_from(WORDS), min_size=1, max_size=2),
        "args": st.lists(st.sampled_from(WORDS), min_size=1, max_size=2),
        "env": ENV,
        "resourcesPerNode": RESOURCES,
        "numProcPerNode": st.integers(1, 4),
    },
)
_REPORTED: Final[dict[str, tuple[str, tuple[Tree, ...]]]] = {
    "run": ("active", ()),
    "hold": ("suspended", ()),
    "succeed": ("succeeded", (COMPLETED,)),
    "fail": ("failed", (FAILED,)),
}
_ENDS = ("succeed", "fail")
_HAPPENINGS = (
    *("suspend", "resume", "resume", "edit", "edit and resume", "touch", "edit runtime"),
    *("run", "run", "hold", "succeed", "fail", "remove JobSet"),
)


# -- a case -----------------------------------------------------------------------------------------------------------


@st.composite
def cases(draw: Draw, framework: str) -> Case:
    """Return a case: a runtime of a framework, a TrainJob of it, and what happens then."""
    on = draw(runtimes(framework))
    entries = draw(patches(on))
    if draw(st.booleans()):
        # Kueue brings an empty entry to a new TrainJob, and fills it later.
        entries.insert(draw(st.integers(0, len(entries))), patch(KUEUE))
    spec: Tree = {"suspend": draw(st.booleans()), "runtimePatches": entries}
    if draw(st.sampled_from((True, True, True, True, True, False))):
        spec["trainer"] = draw(_TRAINER)
    if draw(st.sampled_from((False, False, False, False, True))):
        spec["activeDeadlineSeconds"] = _FAR
    if initializer := draw(_initializers(on)):
        spec["initializer"] = initializer
    spec["runtimeRef"] = {"kind": on["kind"], "name": on["metadata"]["name"]}
    return Case("", (Create(train_job(**spec)), *draw(_steps(on, entries))), (on,))


@st.composite
def _initializers(draw: Draw, on: Tree) -> Tree:
    steps = [ancestor(job) for job in jobs_of(on)]
    found: Tree = {}
    for which in ("dataset", "model"):
        if f"{which}-initializer" in steps and draw(st.booleans()):
            secret = {"env": draw(ENV), "secretRef": {"name": "token"}}
            found[which] = {"storageUri": f"hf://a/{which}", **draw(st.sampled_from(({}, secret)))}
    return found


@st.composite
def _steps(draw: Draw, on: Tree, entries: list[Tree]) -> list[Step]:
    """Return what happens to a job after its creation; a JobSet that has ended says nothing more."""
    steps, has_ended = [], False
    for word in draw(st.lists(st.sampled_from(_HAPPENINGS), min_size=2, max_size=6)):
        if not (has_ended and word in _REPORTED):
            steps.append(draw(_step(word, on, entries)))
        has_ended = word != "remove JobSet" and (has_ended or word in _ENDS)
    return steps


@st.composite
def _step(draw: Draw, word: str, on: Tree, entries: list[Tree]) -> Step:
    if word in _REPORTED:
        report: Report = draw(_report(word, [job["name"] for job in jobs_of(on)]))
        return report
    if word == "remove JobSet":
        return Remove("JobSet")
    if word == "edit runtime":
        return Change({"spec": {"mlPolicy": {"numNodes": 7}}}, on["kind"], on["metadata"]["name"])
    if word == "touch":
        return Change({"metadata": {"labels": {"touched": "yes"}}})
    said: Tree = {"suspend": word == "suspend"} if word != "edit" else {}
    if word.startswith("edit"):
        said["runtimePatches"] = draw(edited(on, entries))
    return Change({"spec": said})


@st.composite
def _report(draw: Draw, word: str, names: list[str]) -> Report:
    """Return what a JobSet says of its Jobs, and of its end."""
    if word == "run":
        return reported(*(counts(name, active=1, ready=draw(st.integers(0, 1))) for name in names))
    said, conditions = _REPORTED[word]
    return reported(*(counts(name, **{said: 1}) for name in names), conditions=conditions)


# -- many cases -------------------------------------------------------------------------------------------------------


def collect(number: int, *, of: int = 0) -> list[Case]:
    """Return the first so many cases of a seed."""
    return [generate(index, of=of) for index in range(number)]


def generate(index: int, *, of: int = 0) -> Case:
    """Return the case of a seed that has a number: the same one each time, whichever others are asked for."""
    random = Random(f"{of} {index}")  # noqa: S311 no secret
    draw = _drawing(FRAMEWORKS[index % len(FRAMEWORKS)])
    while True:
        case = draw(random.randbytes(_BYTES))
        if case is not None and _can_be(case):
            return Case(f"generated {index:03d}", case.steps, case.setup)


@functools.cache
def _drawing(framework: str) -> Callable[[bytes], Case | None]:
    """Return what makes a case of a framework out of bytes; of some there is none.

    Hypothesis makes cases on its own as well, but begins with small ones and then varies what it had.
    """
    found: list[Case] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases(framework))
    def gather(case: Case) -> None:
        found.append(case)

    make: Callable[[bytes], bytes | None] = vars(gather)["hypothesis"].fuzz_one_input

    def draw(data: bytes) -> Case | None:
        found.clear()
        make(data)
        return found[0] if found else None

    return draw


def _can_be(case: Case) -> bool:
    """Return whether a pod can be made of a case: one that ends in a refusal tells nothing of what comes after."""
    (on,) = case.setup
    document = next(step.document for step in case.steps if isinstance(step, Create))
    job = {**document, "metadata": {**document["metadata"], "namespace": "team", "uid": "uid"}}
    is_of_cluster = on["kind"] == "ClusterTrainingRuntime"
    runtime = read(on, ClusterTrainingRuntime) if is_of_cluster else read(on, TrainingRuntime)
    return _PIPELINE.validate(read(job, TrainJob), None, runtime).allowed
