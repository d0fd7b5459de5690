"""What Kueue computes against what we make: the list of frameworks that `test_podsets` compares.

Every runtime that we ship (`runtimes/`) is a case, so a framework to come is one as soon as its runtime is there. What
their runtimes do not have stands in `CASES`: a line each, a runtime and a TrainJob that uses most of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.fleet import objects
from tests.fleet.one_cluster.runtimes import in_namespace, runtime, step
from tests.fleet.one_cluster.stage import GPU

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fleet.objects import Tree

RUNTIMES = REPOSITORY / "runtimes"
_SMALL = {"cpu": "500m", "memory": "256Mi"}
_TORCHTUNE = "torchtune-llama3.2-1b"


@dataclass(frozen=True)
class Case:
    """A framework: its runtime and a TrainJob, for a namespace."""

    name: str
    runtime: Callable[[str], Tree]
    spec: Tree
    runtime_name: str = "runtime"

    def job(self, namespace: str) -> Tree:
        tree = objects.train_job("job", namespace, **in_namespace(self.runtime_name))
        tree["spec"] = {**tree["spec"], **self.spec}
        if "trainer" not in self.spec:
            del tree["spec"]["trainer"]
        return tree


def _case(name: str, *steps: Tree, policy: Tree | None = None, as_named: str = "runtime", **spec: Any) -> Case:
    return Case(name, lambda namespace: runtime(as_named, namespace, *steps, policy=policy), spec, as_named)


def shipped(name: str, **spec: Any) -> Case:
    """Return a case with a runtime that we ship, brought into the team's namespace."""
    (tree,) = documents(RUNTIMES / f"{name}.yaml")
    return Case(name, lambda namespace: objects.namespaced(tree, namespace), spec or _spec_for(name), name)


def _spec_for(name: str) -> Tree:
    """Return a TrainJob's spec for a shipped runtime: three nodes with a GPU each, tuned models on one."""
    if not name.startswith("torchtune-"):
        return {
            "trainer": {"numNodes": 3, "command": ["train"], "resourcesPerNode": {"limits": {GPU: "1", "cpu": "2"}}}
        }
    asks = {"limits": {GPU: "1"}, "requests": {"cpu": "4"}}
    return {"trainer": {"command": ["tune", "run"], "resourcesPerNode": asks}}


def _tuning() -> tuple[Tree, ...]:
    """Return the steps of a torchtune runtime: data and model are fetched, then the model is tuned."""
    fetched = ("dataset-initializer", "model-initializer")
    managed = ["output_dir=/workspace/output", "tokenizer.path=/workspace/model/tokenizer.model"]
    return (
        *(step(name, ancestor=name, requests=_SMALL) for name in fetched),
        step(after=fetched, limits={GPU: "2"}, command=["tune", "run", *managed]),
    )


_SIDECAR = {"name": "logs", "image": "none.invalid/x:1", "restartPolicy": "Always", "resources": {"requests": _SMALL}}

CASES = (
    _case("torch", step(), trainer={"numNodes": 3, "resourcesPerNode": {"requests": {"cpu": "2", "memory": "1Gi"}}}),
    _case("torch: all from the runtime", step(limits={GPU: "4", "cpu": "8"}), policy={"numNodes": 2, "torch": {}}),
    _case(
        "torch: CPUs over a runtime with GPUs",
        step(limits={GPU: "2", "cpu": "8"}, requests={"memory": "64Gi"}),
        trainer={"numNodes": 2, "resourcesPerNode": {"requests": {"cpu": "4"}}},
    ),
    _case(
        "torch: a device without a limit",
        step(),
        trainer={"resourcesPerNode": {"requests": {GPU: "1", "cpu": "0.5"}}},
    ),
    _case(
        "torch: more devices than the runtime's, said of one side",
        step(limits={GPU: "2"}, requests={GPU: "2", "cpu": "1"}),
        trainer={"resourcesPerNode": {"limits": {GPU: "4"}}},
    ),
    _case(
        "plainml",
        step(requests=_SMALL),
        policy={"numNodes": 2},
        trainer={"numNodes": 4, "resourcesPerNode": {"limits": {"memory": "2Gi"}}},
    ),
    _case(
        "no policy: resourcesPerNode counts all the same",
        step(requests=_SMALL),
        policy={},
        trainer={"resourcesPerNode": {"requests": {"cpu": "7"}}},
    ),
    _case(
        "several replicas without a trainer",
        step("many", ancestor=None, replicas=3, parallelism=2, completions=2, requests=_SMALL),
        step("few", ancestor=None, parallelism=4, completions=2, requests={"cpu": "1"}),
        policy={},
    ),
    _case(
        "Intel MPI, written as documents do",
        step(ancestor=None, requests=_SMALL),
        step("launcher", requests={"cpu": "1"}),
        policy={"numNodes": 1, "mpi": {"mpiImplementation": "IntelMPI"}},
        trainer={"numNodes": 3},
    ),
    _case("sidecar and overhead", step(pod={"initContainers": [_SIDECAR]}, requests=_SMALL), trainer={"numNodes": 2}),
    _case(
        "torchtune with initializers",
        *_tuning(),
        as_named=_TORCHTUNE,
        initializer={
            "dataset": {"storageUri": "hf://tatsu-lab/alpaca"},
            "model": {"storageUri": "hf://meta-llama/Llama-3.2-1B-Instruct"},
        },
        trainer={
            "command": ["tune", "run"],
            "args": ["dtype=bf16"],
            "resourcesPerNode": {"requests": {"cpu": "4"}},
        },
    ),
    *(shipped(path.stem) for path in sorted(RUNTIMES.glob("*.yaml"))),
)


def of_workload(workload: Tree) -> list[Tree]:
    """Return what Kueue counts: for each pod set its name, its count, and what each container asks for."""
    return [
        {"name": one["name"], "count": one["count"], "asks": _asks(one["template"]["spec"])}
        for one in workload["spec"]["podSets"]
    ]


def of_jobset(jobset: Tree) -> list[Tree]:
    """Return the same of the JobSet that we made."""
    return [_made(job) for job in jobset["spec"]["replicatedJobs"]]


def _made(job: Tree) -> Tree:
    spec = job["template"]["spec"]
    count = job["replicas"] * min(spec["parallelism"], spec["completions"])
    return {"name": job["name"], "count": count, "asks": _asks(spec["template"]["spec"])}


def _asks(pod: Tree) -> Tree:
    """Return what each container requests; where it only has a limit, Kubernetes takes that."""
    containers = [*pod.get("initContainers", ()), *pod["containers"]]
    resources = {one["name"]: one.get("resources") or {} for one in containers}
    return {name: {**one.get("limits", {}), **one.get("requests", {})} for name, one in resources.items()}
