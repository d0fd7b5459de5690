"""What holds for every TrainJob, also for one that no schema would accept."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.admission.objects import KUEUE, OURS, runtime, trainjob
from trainplane.admission.conversion import LONGEST_WARNING
from trainplane.admission.defaulting import default_trainjob
from trainplane.admission.jsonpatch import identical, json_patch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "name", "auto", "4", OURS]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["name", "spec", "targetJobs", "metadata", "labels", "env", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Give what is right, mostly."""
    return st.one_of(strategy, strategy, strategy, ANYTHING)


TEXTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2"]), max_size=2)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["node", "side"])},
        optional={
            "env": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from("AB")}, optional={"value": st.just("")}), max_size=2
            ),
            "volumeMounts": st.just([{"name": "v", "mountPath": "/v", "readOnly": False}]),
        },
    ),
    max_size=2,
)
POD = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": TEXTS,
        "containers": CONTAINERS,
        "volumes": st.just([{"name": "v", "emptyDir": {}}]),
        "tolerations": st.lists(st.just({"key": "k"}), max_size=1),
        "terminationGracePeriodSeconds": st.integers(0, 2),
    },
)
TARGETS = st.lists(st.sampled_from(["node", "launcher"]).map(lambda name: {"name": name}), max_size=2)


def job_patches(name: str) -> st.SearchStrategy[Any]:
    return POD.map(lambda pod: {"name": name, "template": {"spec": {"template": {"spec": pod}}}})


def each(choices: list[str], strategy: Any) -> st.SearchStrategy[Any]:
    """Draw a list with an entry for each of some of the choices."""
    drawn = st.lists(st.sampled_from(choices), max_size=len(choices), unique=True)
    return drawn.flatmap(lambda names: st.tuples(*map(strategy, names)).map(list))


def entries(manager: str) -> st.SearchStrategy[Any]:
    def made(jobs: Any, labels: Any, time: Any) -> Any:
        template = {"metadata": {"labels": labels}, "spec": {"replicatedJobs": jobs}}
        return {"manager": manager, **time, "trainingRuntimeSpec": {"template": template}}

    times = st.sampled_from([{}, {"time": "2025-01-01T00:00:00Z"}])
    return st.builds(made, each(["node", "launcher"], job_patches), TEXTS, times)


PATCHES = each([KUEUE, OURS, "example.com/me"], entries)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "labels": maybe(TEXTS),
        "annotations": maybe(TEXTS),
        "podSpecOverrides": maybe(
            st.lists(st.builds(lambda pod, targets: {**pod, "targetJobs": targets}, POD, TARGETS), max_size=2)
        ),
        "podTemplateOverrides": maybe(
            st.lists(
                st.builds(
                    lambda pod, targets, labels: {"targetJobs": targets, "metadata": {"labels": labels}, "spec": pod},
                    POD,
                    TARGETS,
                    TEXTS,
                ),
                max_size=2,
            )
        ),
        "runtimePatches": maybe(PATCHES),
        "runtimeRef": maybe(
            st.fixed_dictionaries(
                {"name": st.just("torch")},
                optional={"apiGroup": st.sampled_from(["kubeflow.org", "trainer.kubeflow.org"])},
            )
        ),
        "trainer": maybe(
            st.fixed_dictionaries(
                {},
                optional={
                    "numProcPerNode": st.sampled_from([1, "1", "auto", "cpu", "gpu", "many"]),
                    "args": st.just([]),
                    "resourcesPerNode": st.sampled_from(
                        [
                            {"requests": {"cpu": "0.5"}},
                            {"requests": {"cpu": "500m"}},
                            {"limits": {"gpu": 2}},
                            {"limits": "x"},
                        ]
                    ),
                },
            )
        ),
        "suspend": st.booleans(),
    },
)
TRAINJOBS = SPECS.map(lambda spec: trainjob(**spec))
RUNTIMES = st.sampled_from([None, runtime(), runtime(policy={"torch": {"numProcPerNode": 4}})])


@given(TRAINJOBS, st.none() | TRAINJOBS, RUNTIMES)
@settings(max_examples=300)
def test_twice_is_once(new: Any, old: Any, known: Any) -> None:
    sent, stored = copy.deepcopy(new), copy.deepcopy(old)
    once = default_trainjob(new, old, now=NOW, runtime=known)
    twice = default_trainjob(once.tree, old, now=NOW, runtime=known)
    assert identical(once.tree, twice.tree)
    assert identical(new, sent)
    assert identical(old, stored)
    assert all(len(warning) <= LONGEST_WARNING and warning.isascii() for warning in once.warnings)


@given(TRAINJOBS, RUNTIMES)
@settings(max_examples=200)
def test_what_is_stored_stays_as_it_is_when_it_is_written_back(new: Any, known: Any) -> None:
    stored = default_trainjob(new, None, now=NOW, runtime=known).tree
    again = default_trainjob(copy.deepcopy(stored), stored, now=LATER, runtime=known)
    assert json_patch(stored, again.tree) == []


@given(TRAINJOBS, RUNTIMES)
@settings(max_examples=200)
def test_sending_the_same_document_again_changes_nothing(new: Any, known: Any) -> None:
    """`kubectl apply` sends the older fields on top of what is stored."""
    stored = default_trainjob(new, None, now=NOW, runtime=known).tree
    older = ("labels", "annotations", "podSpecOverrides", "podTemplateOverrides", "trainer")
    sent = {name: value for name, value in new["spec"].items() if name in older}
    merged = {**stored, "spec": {**stored["spec"], **sent}}
    again = default_trainjob(merged, stored, now=LATER, runtime=known)
    assert json_patch(stored, again.tree) == []


MARK = "aFieldOfTomorrow"
LOST = {"targetJobs", "metadata"}
"""Where v2.1's overrides said something that meant nothing."""


def marked(tree: Any, path: tuple[str, ...] = ()) -> tuple[Any, int]:
    """Put a field of its own into every object, but for texts by key and what overrides never took."""
    if isinstance(tree, dict):
        if path and (path[-1] in {"labels", "annotations", "nodeSelector"} or (len(path) > 3 and path[-1] in LOST)):
            return tree, 0
        parts = {key: marked(value, (*path, key)) for key, value in tree.items()}
        return {**{key: part for key, (part, _) in parts.items()}, MARK: "/".join(path)}, 1 + sum(
            n for _, n in parts.values()
        )
    if isinstance(tree, list) and (not path or path[-1] != "targetJobs"):
        items = [marked(value, (*path, str(index))) for index, value in enumerate(tree)]
        return [item for item, _ in items], sum(n for _, n in items)
    return tree, 0


def marks(tree: Any) -> set[str]:
    if isinstance(tree, dict):
        own = {tree[MARK]} if isinstance(tree.get(MARK), str) else set()
        return own.union(*(marks(value) for value in tree.values()))
    if isinstance(tree, list):
        return set().union(*(marks(value) for value in tree)) if tree else set()
    return set()


ONE_TARGET = st.fixed_dictionaries(
    {},
    optional={
        "labels": TEXTS,
        "annotations": TEXTS,
        "podSpecOverrides": POD.map(lambda pod: [{**pod, "targetJobs": [{"name": "node"}]}]),
        "podTemplateOverrides": POD.map(lambda pod: [{"targetJobs": [{"name": "launcher"}], "spec": pod}]),
        "runtimePatches": each(["example.com/you", "example.com/me"], entries),
        "runtimeRef": st.just({"name": "torch", "apiGroup": "kubeflow.org"}),
        "trainer": st.fixed_dictionaries({}, optional={"numProcPerNode": st.sampled_from([1, "1", "auto"])}),
    },
)


@given(ONE_TARGET, st.booleans())
@settings(max_examples=200)
def test_fields_that_nobody_knows_yet_survive(spec: dict[str, Any], update: bool) -> None:
    job, count = marked(trainjob(**spec))
    result = default_trainjob(job, trainjob() if update else None, now=NOW).tree
    before = marks(job)
    assert count >= len(before) > 3
    # An override's own object becomes the pod's patch, so its mark comes out there under the same name.
    assert before <= marks(result)
