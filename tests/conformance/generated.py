"""Cases made by Hypothesis: runtimes, TrainJobs and stories that nobody thought of.

The strategies decide what a case is about (jobs, counts, environment, patches of several managers, suspend toggles);
the fields of pods come from the schema. Cases are collected first and then driven all at once, since each takes a
round trip through two operators; the seed is given, so that a case has the same number in every run.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from tests.conformance.cases import Case, Change, Create, Remove, Step, Tree
from tests.conformance.documents import (
    ANCESTOR,
    COMPLETED,
    FAILED,
    container,
    counts,
    initializer_job,
    patch,
    replicated_job,
    reported,
    runtime,
    train_job,
)
from tests.conformance.schema import QUANTITIES, WORDS, below, crd, some
from trainplane.api.document import read
from trainplane.api.runtime import TrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[st.SearchStrategy[Any]], Any]

_PIPELINE = Pipeline(plugin() for plugin in (*FRAMEWORKS, *COMMON))
_TEMPLATE = ("template", "spec", "replicatedJobs", "template", "spec", "template")
_POD = below(crd("trainingruntimes"), *_TEMPLATE, "spec")
_PATCH = below(crd("trainjobs"), "runtimePatches", "trainingRuntimeSpec", *_TEMPLATE, "spec")
_ENV = st.lists(
    st.builds(lambda name, value: {"name": name, "value": value}, st.sampled_from("ABCD"), st.sampled_from(WORDS)),
    min_size=1,
    max_size=3,
    unique_by=lambda entry: entry["name"],
)
_AMOUNTS = st.sampled_from(QUANTITIES)
_DEVICES = st.sampled_from(("1", 2, "4000m"))
_RESOURCES = st.fixed_dictionaries(
    # Names of their own, since a pod may not request more than its limit of one resource.
    {
        "requests": st.fixed_dictionaries(
            {"cpu": st.sampled_from(("1", 3, "500m", "2500m"))}, optional={"memory": _AMOUNTS}
        )
    },
    # Devices are whole: a pod may not have the half of one.
    optional={"limits": st.dictionaries(st.sampled_from(("nvidia.com/gpu", "example.com/nic")), _DEVICES, min_size=1)},
)
_LABELS = st.dictionaries(st.sampled_from(("a", "example.com/b")), st.sampled_from(WORDS), min_size=1)
_METADATA = st.fixed_dictionaries({"labels": _LABELS}, optional={"annotations": _LABELS})
_MANAGERS = ("a.example.com/x", "b.example.com/y")
_KUEUE = "kueue.x-k8s.io/manager"
"""Brings an empty entry to a new TrainJob, and fills it later."""
_EDITABLE = ("nodeSelector", "tolerations", "schedulingGates")
"""What JobSet lets a suspended job change, beside the pods' labels and annotations."""
_CLOSED = tuple(sorted(set(_PATCH["properties"]) - set(_EDITABLE)))


@st.composite
def _containers(draw: Draw, names: list[str]) -> list[Tree]:
    schema = below(_POD, "containers")["items"]
    taken = ("name", "image", "env", "resources")
    found = []
    for name in names:
        fields = draw(some(schema, without=taken))
        fields |= draw(st.fixed_dictionaries({}, optional={"env": _ENV, "resources": _RESOURCES}))
        found.append(container(name, **fields))
    return found


@st.composite
def _jobs(draw: Draw) -> list[Tree]:
    beside = draw(st.lists(st.sampled_from(("side", "log")), unique=True, max_size=1))
    init = draw(st.lists(st.just("init"), max_size=1))
    pod = draw(some(_POD, most=3, without=("containers", "initContainers", "ephemeralContainers")))
    pod["containers"] = draw(_containers(["node", *beside]))
    if init:
        pod["initContainers"] = draw(_containers(init))
    parallelism = draw(st.sampled_from((None, {"parallelism": 2}, {"parallelism": 3, "backoffLimit": 0})))
    node = replicated_job(
        ancestor=draw(st.sampled_from(("trainer", "trainer", "trainer", None))), job=parallelism, **pod
    )
    node["template"]["spec"]["template"]["metadata"] = draw(_METADATA)
    before = draw(st.lists(st.sampled_from(("dataset", "model")), unique=True, max_size=1))
    return [*(initializer_job(which, which) for which in before), node]


@st.composite
def _runtimes(draw: Draw) -> Tree:
    policy = draw(st.sampled_from((None, {}, {"numNodes": 2}, {"torch": {}}, {"torch": {}, "numNodes": 3})))
    extra = draw(
        st.sampled_from(
            (
                {},
                {"network": {"subdomain": "sub"}},
                {"failurePolicy": {"maxRestarts": 2}},
                {"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["node"]}},
                {"ttlSecondsAfterFinished": 5},
            )
        )
    )
    return runtime(*draw(_jobs()), policy=policy, template=draw(_METADATA), **extra)


@st.composite
def _patches(draw: Draw, on: Tree, *, whole: bool = True) -> list[Tree]:
    """Return entries of several managers: of every field, or only of those that JobSet lets a suspended job change."""
    jobs = on["spec"]["template"]["spec"]["replicatedJobs"]
    entries = []
    for manager in draw(st.lists(st.sampled_from(_MANAGERS), unique=True, max_size=3)):
        chosen = draw(st.lists(st.sampled_from([job["name"] for job in jobs]), unique=True, max_size=2))
        said = [draw(_patched(next(job for job in jobs if job["name"] == name), whole=whole)) for name in chosen]
        entries.append(patch(manager, *said, metadata=draw(_METADATA)))
    return entries


@st.composite
def _patched(draw: Draw, job: Tree, *, whole: bool) -> Tree:
    target = job["template"]["spec"]["template"]["spec"]
    closed = ("containers", "initContainers") if whole else _CLOSED
    pod = draw(some(_PATCH, most=3, without=closed))
    template: Tree = {"spec": {"template": {"metadata": draw(_METADATA), "spec": pod}}}
    if whole:
        template["metadata"] = draw(_METADATA)
        for kind in ("containers", "initContainers"):
            names = [entry["name"] for entry in target.get(kind, ())]
            chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []
            schema = below(_PATCH, kind)["items"]
            if chosen:
                pod[kind] = [_named(name, draw(some(schema, without=("name",)))) for name in chosen]
    return {"name": job["name"], "template": template}


def _named(name: str, fields: Tree) -> Tree:
    """Return a container's patch; the operator's own containers may have no env by a patch."""
    if name == "node" or name.endswith("-initializer"):
        fields.pop("env", None)
    if "volumeMounts" in fields:
        # Two mounts at one path are no case of merging, but a mistake.
        fields["volumeMounts"] = list({mount["mountPath"]: mount for mount in fields["volumeMounts"]}.values())
    return {"name": name, **fields}


@st.composite
def _trainers(draw: Draw) -> Tree | None:
    fields = {
        "numNodes": st.integers(1, 4),
        "image": st.just("test:trainjob"),
        "command": st.lists(st.sampled_from(WORDS), min_size=1, max_size=2),
        "args": st.lists(st.sampled_from(WORDS), min_size=1, max_size=2),
        "env": _ENV,
        "resourcesPerNode": _RESOURCES,
        "numProcPerNode": st.integers(1, 4),
    }
    found: Tree | None = draw(st.none() | st.fixed_dictionaries({}, optional=fields))
    return found


@st.composite
def _edited(draw: Draw, on: Tree, entries: list[Tree]) -> list[Tree]:
    """Return a job's entries with other values in what JobSet lets a suspended job change, and perhaps a new manager's.

    Other fields stay: JobSet refuses them, and a case that ends in a refusal tells nothing of what comes after.
    """
    edited: list[Tree] = json.loads(json.dumps(entries))
    for entry in edited:
        if entry["manager"] == _KUEUE:
            names = [job["name"] for job in _of(on)]
            placed = [{"name": name, "template": {"spec": {"template": {"spec": {}}}}} for name in names]
            entry["trainingRuntimeSpec"]["template"]["spec"] = {"replicatedJobs": placed}
        for job in entry["trainingRuntimeSpec"]["template"].get("spec", {}).get("replicatedJobs", ()):
            pod = job["template"]["spec"]["template"]
            pod["metadata"] = draw(_METADATA)
            kept = {key: value for key, value in pod["spec"].items() if key not in _EDITABLE}
            pod["spec"] = kept | draw(some(_PATCH, without=_CLOSED))
    managers = {entry["manager"] for entry in edited}
    return [*edited, *(entry for entry in draw(_patches(on, whole=False)) if entry["manager"] not in managers)]


@st.composite
def _steps(draw: Draw, on: Tree, entries: list[Tree]) -> list[Step]:
    """Return what happens to a job after its creation."""
    names = [job["name"] for job in on["spec"]["template"]["spec"]["replicatedJobs"]]
    running = reported(*(counts(name, active=1, ready=draw(st.integers(0, 1))) for name in names))
    ended = draw(st.sampled_from((COMPLETED, FAILED)))
    happenings: tuple[Step, ...] = (
        Change({"spec": {"suspend": True}}),
        Change({"spec": {"suspend": False}}),
        Change({"spec": {"runtimePatches": draw(_edited(on, entries))}}),
        Change({"spec": {"suspend": False, "runtimePatches": draw(_edited(on, entries))}}),
        Change({"metadata": {"labels": {"touched": "yes"}}}),
        Change({"spec": {"mlPolicy": {"numNodes": 7}}}, "TrainingRuntime", "runtime"),
        running,
        reported(*(counts(name, suspended=1) for name in names)),
        reported(*(counts(name, succeeded=1) for name in names), conditions=(ended,)),
        Remove("JobSet"),
    )
    found: list[Step] = draw(st.lists(st.sampled_from(happenings), min_size=1, max_size=4))
    return found


@st.composite
def cases(draw: Draw) -> Case:
    """Return a case: a runtime, a TrainJob of it, and what happens then."""
    on = draw(_runtimes())
    spec: Tree = {"suspend": draw(st.booleans()), "runtimePatches": draw(_patches(on))}
    if draw(st.booleans()):
        spec["runtimePatches"].insert(draw(st.integers(0, len(spec["runtimePatches"]))), patch(_KUEUE))
    trainer = draw(_trainers())
    if trainer is not None:
        spec["trainer"] = trainer
    ancestors = [job["template"].get("metadata", {}).get("labels", {}).get(ANCESTOR) for job in _of(on)]
    for which in ("dataset", "model"):
        if f"{which}-initializer" in ancestors and draw(st.booleans()):
            given_env = {"env": draw(_ENV), "secretRef": {"name": "token"}}
            spec["initializer"] = {which: {"storageUri": f"hf://a/{which}", **draw(st.sampled_from(({}, given_env)))}}
    return Case("", (Create(train_job(**spec)), *draw(_steps(on, spec["runtimePatches"]))), (on,))


def _of(on: Tree) -> list[Tree]:
    jobs: list[Tree] = on["spec"]["template"]["spec"]["replicatedJobs"]
    return jobs


def _can_be(case: Case) -> bool:
    """Return whether a pod can be made of a case: one that ends in a refusal tells nothing of what comes after."""
    (on,) = case.setup
    document = next(step.document for step in case.steps if isinstance(step, Create))
    job = {**document, "metadata": {**document["metadata"], "namespace": "team", "uid": "uid"}}
    return _PIPELINE.validate(read(job, TrainJob), None, read(on, TrainingRuntime)).allowed


def _patched_fields(case: Case) -> list[Tree]:
    return [step.document["spec"] for step in case.steps if isinstance(step, Create)]


def _outline(value: Any) -> str:
    """Return which fields a value has."""
    if isinstance(value, dict):
        return "{" + " ".join(f"{key}{_outline(item)}" for key, item in sorted(value.items())) + "}"
    return "".join(sorted({_outline(item) for item in value})) if isinstance(value, list) else ""


class _Enough(Exception):  # noqa: N818 no error, but the end of a search
    """There are as many cases as were asked for."""


def collect(number: int, *, of: int = 0) -> list[Case]:
    """Return so many cases, no two with the same fields; the same ones each time, and others of another seed."""
    found: dict[str, Case] = {}

    @seed(of)
    @settings(
        max_examples=20 * number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def gather(case: Case) -> None:
        if len(found) == number:
            raise _Enough
        if not _can_be(case):
            return
        # Hypothesis likes to vary a case a little; a case with other fields tells more than one with other values.
        found.setdefault(_outline([*case.setup, *_patched_fields(case)]), case)

    with contextlib.suppress(_Enough):
        gather()
    return [Case(f"generated {n:03d}", case.steps, case.setup) for n, case in enumerate(found.values())]
