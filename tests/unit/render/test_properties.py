"""What holds for every TrainJob and runtime: rendering is pure, nothing is lost, and every field says who wrote it."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.render.objects import PIPELINE, job, patch, render, replicated_job, runtime
from trainplane.api import tree as trees
from trainplane.api.quantity import Quantity

NAMES = st.sampled_from(["A", "B", "C"])
SMALL = st.text(alphabet="xyz", max_size=3)
UNKNOWN = st.dictionaries(st.just("fromTomorrow"), st.dictionaries(NAMES, st.integers(), min_size=1), max_size=1)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from([1, "500m", "2Gi", 0, "3"]), max_size=2
)
RESOURCES = st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "requests": AMOUNTS})


def keyed(key: str, keys: st.SearchStrategy[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    entry = st.fixed_dictionaries({key: keys}, optional=fields)
    return st.lists(entry, max_size=3, unique_by=lambda one: str(one[key]))


ENV = keyed("name", NAMES, value=SMALL)
MOUNTS = keyed("mountPath", st.sampled_from(["/a", "/b"]), name=NAMES)
VOLUMES = keyed("name", NAMES, emptyDir=st.just({}))
TOLERATIONS = st.lists(st.fixed_dictionaries({"key": NAMES}), max_size=2)
WHERE = {
    "nodeSelector": st.dictionaries(NAMES, SMALL, max_size=2),
    "tolerations": TOLERATIONS,
    "volumes": VOLUMES,
    "terminationGracePeriodSeconds": st.integers(0, 9),
    "schedulingGates": keyed("name", NAMES),
}


@st.composite
def containers(draw: st.DrawFn) -> dict[str, Any]:
    fields = {"image": SMALL, "command": st.lists(SMALL, max_size=2), "env": ENV, "volumeMounts": MOUNTS}
    rest = draw(st.fixed_dictionaries({}, optional={**fields, "resources": RESOURCES}))
    return {"name": "node", **rest, **draw(UNKNOWN)}


@st.composite
def runtimes(draw: st.DrawFn) -> Any:
    jobs = []
    for name, ancestor in (("dataset-initializer", "dataset-initializer"), ("node", "trainer"), ("other", None)):
        pod = draw(st.fixed_dictionaries({}, optional=WHERE))
        container = {**draw(containers()), "name": ancestor if ancestor and ancestor != "trainer" else "node"}
        entry = replicated_job(name, ancestor, containers=[container], **pod)
        entry["template"]["spec"].update(draw(st.fixed_dictionaries({}, optional={"parallelism": st.integers(0, 5)})))
        jobs.append({**entry, **draw(UNKNOWN)})
    policy: Any = draw(st.sampled_from([None, {}, {"numNodes": 3}, {"torch": {}}, {"numNodes": 2, "torch": {}}]))
    metadata = {"labels": draw(st.dictionaries(NAMES, SMALL, max_size=2))}
    return runtime(*jobs, policy=policy, metadata=metadata)


@st.composite
def patches(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for manager in draw(st.lists(st.sampled_from(["a.com/x", "b.com/y", "kueue.x-k8s.io/manager"]), unique=True)):
        pod = draw(st.fixed_dictionaries({}, optional=WHERE))
        mounted = draw(st.fixed_dictionaries({"name": st.just("node")}, optional={"volumeMounts": MOUNTS}))
        where = draw(st.sampled_from(["node", "other"]))
        made.append(patch(manager, where, metadata={"labels": draw(st.dictionaries(NAMES, SMALL))}, **pod))
        made[-1]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"][
            "spec"
        ]["containers"] = [mounted]
    return made


@st.composite
def jobs(draw: st.DrawFn) -> Any:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "trainer": st.fixed_dictionaries(
            {},
            optional={
                "numNodes": st.integers(0, 9),
                "image": SMALL,
                "command": st.lists(SMALL, max_size=2),
                "args": st.lists(SMALL, max_size=2),
                "env": ENV,
                "resourcesPerNode": RESOURCES,
                "numProcPerNode": st.integers(1, 4),
            },
        ),
        "initializer": st.fixed_dictionaries({"dataset": st.fixed_dictionaries({}, optional={"env": ENV})}),
        "suspend": st.booleans(),
    }
    return job(*draw(patches()), **draw(st.fixed_dictionaries({}, optional=fields)))


@settings(max_examples=30, deadline=None)
@given(jobs(), runtimes())
def test_rendering_is_pure(asked: Any, have: Any) -> None:
    before = copy.deepcopy((asked.tree, have.tree))
    first, second = render(asked, have), render(asked, have)
    assert first.jobset.tree == second.jobset.tree
    assert list(first.jobset.leaves()) == list(second.jobset.leaves())
    assert (asked.tree, have.tree) == before
    _spoil(first.jobset.tree)
    assert (asked.tree, have.tree) == before
    assert PIPELINE.render(asked, have).jobset.tree == second.jobset.tree


@settings(max_examples=30, deadline=None)
@given(jobs(), runtimes())
def test_what_says_runtime_is_in_the_runtime(asked: Any, have: Any) -> None:
    template = have.tree["spec"]["template"]
    rendered = render(asked, have).jobset
    for path, value, origin in rendered.leaves():
        if origin.source == "runtime" and not origin.path:
            said = _keyed_get(template, rendered.tree, path)
            is_amount = "resources" in path or "overhead" in path  # written as the API server does: 1 becomes "1"
            assert (Quantity.of(said) == Quantity.of(value)) if is_amount and isinstance(value, str) else said == value


@settings(max_examples=30, deadline=None)
@given(jobs(), runtimes())
def test_what_says_patch_is_in_that_patch(asked: Any, have: Any) -> None:
    said = {
        entry["manager"]: entry["trainingRuntimeSpec"]["template"]
        for entry in asked.tree["spec"].get("runtimePatches", [])
    }
    for path, value, origin in render(asked, have).jobset.leaves():
        if origin.source == "patch":
            assert path[-1] in str(said[origin.name]) if isinstance(path[-1], str) else True
            assert str(value) in str(said[origin.name])


@settings(max_examples=30, deadline=None)
@given(jobs(), runtimes())
def test_unknown_fields_survive(asked: Any, have: Any) -> None:
    rendered = render(asked, have).jobset.tree["spec"]["replicatedJobs"]
    for mine, theirs in zip(rendered, have.tree["spec"]["template"]["spec"]["replicatedJobs"], strict=True):
        assert mine.get("fromTomorrow") == theirs.get("fromTomorrow")
        at = ("template", "spec", "template", "spec", "containers", 0, "fromTomorrow")
        assert trees.get(mine, *at) == trees.get(theirs, *at)


@settings(max_examples=30, deadline=None)
@given(jobs(), runtimes())
def test_a_patch_twice_is_a_patch_once(asked: Any, have: Any) -> None:
    entries = asked.tree["spec"].get("runtimePatches", [])
    doubled = asked.put("spec", "runtimePatches", value=[one for entry in entries for one in (entry, entry)])
    assert render(doubled, have).jobset.tree == render(asked, have).jobset.tree


@settings(max_examples=30, deadline=None)
@given(jobs(), runtimes())
def test_what_is_allowed_can_be_rendered(asked: Any, have: Any) -> None:
    if PIPELINE.validate(asked, None, have).allowed:
        rendered = render(asked, have).jobset.tree["spec"]["replicatedJobs"]
        for entry in rendered:
            spec = entry["template"]["spec"]
            assert spec["parallelism"] == spec["completions"] >= 0


def _keyed_get(template: Any, rendered: Any, path: tuple[Any, ...]) -> Any:
    """Return what the runtime has where the rendered object has `path`, entries of lists found by what keys them."""
    place = template
    for step in path:
        rendered = rendered[step]
        if isinstance(step, int) and isinstance(rendered, dict):
            key = next((one for one in ("mountPath", "containerPort", "name", "key") if one in rendered), None)
            place = next(entry for entry in place if key is not None and entry.get(key) == rendered[key])
        else:
            place = place[step]
    return place


def _spoil(tree: Any) -> None:
    """Change every object and list of a tree, to show that it shares none with another."""
    inner = list(tree.values()) if isinstance(tree, dict) else list(tree) if isinstance(tree, list) else []
    for value in inner:
        _spoil(value)
    if isinstance(tree, dict):
        tree["spoiled"] = True
    elif isinstance(tree, list):
        tree.append("spoiled")
