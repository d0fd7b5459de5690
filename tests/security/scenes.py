"""Scenes to search through for the one that costs most: runtimes of every framework, TrainJobs that ask much of them.

Drawn: the framework and the gang, how many jobs the runtime has and for what, how many nodes and processes the TrainJob
wants, whether Kueue counts it, who patches it, what it was before, and where both objects grow. The sizes are not
drawn: each object is fitted to the bounds, so that every scene is as large as one can be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.security.grown import AMOUNTS, STORED, Growth, Tree, grown, job, places, runtime, size, train_job
from tests.security.reviews import Scene
from trainplane.api import names
from trainplane.api.bounds import MOST_VALUES, weigh

JOBS, RUNTIMES = "trainjobs", "clustertrainingruntimes"

_POLICIES: tuple[tuple[Tree, str], ...] = (
    ({"torch": {}}, ""),
    ({"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 100_000}}}, ""),
    ({"numNodes": 4, "mpi": {"mpiImplementation": "OpenMPI"}}, ""),
    ({"mpi": {"mpiImplementation": "OpenMPI", "runLauncherAsNode": True}}, ""),
    ({"jax": {}}, ""),
    ({"xgboost": {}}, ""),
    ({"flux": {"numProcPerNode": 2}}, ""),
    ({"numNodes": 2}, names.FRAMEWORK_TENSORFLOW),
    ({"numNodes": 2}, names.FRAMEWORK_PADDLE),
    ({}, ""),
)
_GANGS: tuple[Tree, ...] = ({}, {"coscheduling": {}}, {"volcano": {}})
_ANCESTORS = (names.ANCESTOR_TRAINER, names.ANCESTOR_DATASET, names.ANCESTOR_MODEL, None)
_NODES = (1, 2, 1000, 20_000, 32_768, 100_000, 2**31 - 1)
_MANAGERS = ("example.com/a", names.PATCH_MANAGER_KUEUE, names.PATCH_MANAGER_OLDER_FIELDS)


_READ = frozenset(
    {
        "env",
        "args",
        "command",
        "volumes",
        "volumeMounts",
        "containers",
        "initContainers",
        "limits",
        "requests",
        "labels",
    }
    | {"replicatedJobs", "dependsOn", "tolerations", "ports", "runtimePatches", "podSpecOverrides", "targetJobs"}
)
"""Lists and maps that we read, and do not only carry: every other draw is one of them."""


@dataclass(frozen=True)
class Draft:
    """What is drawn; `fitted` makes a scene of it."""

    policy: tuple[Tree, str]
    gang: Tree
    ancestors: tuple[str | None, ...]
    """Of the runtime's jobs, over and over."""
    job_count: int
    name: str
    trainer: Tree
    initializes: bool
    queued: bool
    manager: str
    older: bool
    job_growths: tuple[Growth, ...]
    runtime_growths: tuple[Growth, ...]
    rewritten: bool
    """Whether the old TrainJob says the same in other letters, or less."""

    def fitted(self, share: float = 1.0) -> Scene:
        """Return the scene, each object as large as a share of the bounds allows."""
        policy, label = self.policy
        jobs = [job("node", names.ANCESTOR_TRAINER)]
        jobs += [job(f"job-{n}", self.ancestors[n % len(self.ancestors)]) for n in range(int(self.job_count * share))]
        spec: Tree = {"podGroupPolicy": self.gang} if self.gang else {}
        whole = _fit(RUNTIMES, runtime(*jobs, policy=policy, label=label, **spec), self.runtime_growths, share)
        base = train_job(trainer=self.trainer)
        base["metadata"] = {**base["metadata"], "name": self.name}
        if self.queued:
            base["metadata"]["labels"] = {names.LABEL_QUEUE: "queue"}
        if self.initializes:
            base["spec"]["initializer"] = {"dataset": {"storageUri": "hf://a/b"}, "model": {"storageUri": "hf://c/d"}}
        if self.older:
            base["spec"]["podSpecOverrides"] = [{"targetJobs": [{"name": one["name"]} for one in jobs[:20]]}]
        base["spec"]["runtimePatches"] = [{"manager": self.manager}]
        new = _fit(JOBS, base, self.job_growths, share)
        old = _fit(JOBS, base, tuple(map(_otherwise, self.job_growths)), share) if self.rewritten else base
        return Scene(new, old, whole, runtime(*jobs, policy=policy, label=label))


def _otherwise(growth: Growth) -> Growth:
    """Return the same in other letters: amounts with a nought behind the point."""
    return replace(growth, amount="{}.0")


def _fit(plural: str, tree: Tree, growths: tuple[Growth, ...], share: float) -> Tree:
    """Return the object with its growths in their proportion, as many as there is room for."""
    most, room = MOST_VALUES * share * 0.97, STORED * share
    whole, ratio = tree, 1.0
    scale = most / max(1, sum(growth.count for growth in growths)) / 2
    for _ in range(5):
        scaled = [replace(one, count=max(1, int(one.count * scale))) for one in growths]
        whole = grown(plural, tree, *scaled)
        ratio = min(most / weigh(whole)[0], room / size(whole))
        if 0.9 < ratio < 1.05:
            break
        scale *= ratio
    return whole if ratio > 0.9 else tree


def _growths(plural: str, most: int) -> st.SearchStrategy[tuple[Growth, ...]]:
    known = [path for path in places(plural) if path[-2] in _READ]
    one = st.builds(
        Growth,
        st.one_of(st.sampled_from(known), st.sampled_from(places(plural))),
        st.sampled_from((1, 10, 100, 1000)),
        st.sampled_from((4, 60, 1000, 60_000)),
        st.sampled_from("ab"),
        st.sampled_from(AMOUNTS),
    )
    return st.lists(one, max_size=most).map(tuple)


def _trainers() -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "numNodes": st.sampled_from(_NODES),
            "numProcPerNode": st.sampled_from((1, 2**31 - 1, "auto", "gpu", "cpu", "4")),
            "command": st.sampled_from((["tune", "run"], ["python"])),
            "resourcesPerNode": st.just({"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}),
        },
    )


def drafts() -> st.SearchStrategy[Draft]:
    """Return a strategy for drafts."""
    return st.builds(
        Draft,
        policy=st.sampled_from(_POLICIES),
        gang=st.sampled_from(_GANGS),
        ancestors=st.lists(st.sampled_from(_ANCESTORS), min_size=1, max_size=3).map(tuple),
        job_count=st.sampled_from((0, 1, 30, 300, 1500)),
        name=st.sampled_from(("job", "j" * 50)),
        trainer=_trainers(),
        initializes=st.booleans(),
        queued=st.booleans(),
        manager=st.sampled_from(_MANAGERS),
        older=st.booleans(),
        job_growths=_growths(JOBS, 4),
        runtime_growths=_growths(RUNTIMES, 3),
        rewritten=st.booleans(),
    )


_POD = ("template", "spec", "replicatedJobs", "[]", "template", "spec", "template", "spec")
_PATCHED = ("runtimePatches", "[]", "trainingRuntimeSpec", *_POD)


def _found(
    jobs: tuple[Growth, ...] = (), runtimes: tuple[Growth, ...] = (), gang: str = "volcano", **said: Any
) -> Draft:
    usual: Tree = {
        "policy": ({"torch": {}}, ""),
        "gang": {gang: {}},
        "ancestors": (None,),
        "job_count": 0,
        "name": "j" * 50,
        "trainer": {"numNodes": 4},
        "initializes": False,
        "queued": True,
        "manager": _MANAGERS[0],
        "older": False,
        "rewritten": True,
    }
    return Draft(**{**usual, **said, "job_growths": jobs, "runtime_growths": runtimes})


_LARGE = "{}e900"
FOUND = (
    _found(runtimes=(Growth((*_POD, "containers", "[]", "resources", "requests", "{}"), 1, amount=_LARGE),)),
    _found(
        jobs=(
            Growth(("trainer", "resourcesPerNode", "limits", "{}"), 1, amount=_LARGE),
            Growth(("trainer", "resourcesPerNode", "requests", "{}"), 1, amount=_LARGE),
        ),
        runtimes=(Growth((*_POD, "containers", "[]", "resources", "limits", "{}"), 1, amount=_LARGE),),
        gang="coscheduling",
    ),
    _found(
        jobs=(
            Growth(
                (*_PATCHED, "volumes", "[]", "ephemeral", "volumeClaimTemplate", "spec", "resources", "limits", "{}"),
                1,
                amount=_LARGE,
            ),
        ),
        runtimes=(Growth((*_POD, "containers", "[]", "resources", "requests", "{}"), 1, amount=_LARGE),),
    ),
    _found(job_count=1000, ancestors=(names.ANCESTOR_TRAINER,)),
)
"""Scenes that earlier searches found to cost most, each over a second once: every search begins with them."""
