"""What Kueue counts for a TrainJob is what its pods ask for.

Kueue computes a job's pods itself, with the Go code of the trainer's release that it was built with. Up to Kueue 0.19
that is v2.2.1, for which `resourcesPerNode` replaces the training container's resources; for us, as for v2.3, it is
laid over them. A runtime with two GPUs and a TrainJob that asks for four CPUs then runs with two GPUs and is counted
with none. Where `resourcesPerNode` says everything, both come to the same: so it is spelt out. And so is the number of
nodes on an elastic runtime, which Kueue takes for one where the TrainJob leaves it to the runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.kueue import is_kueues, is_queued
from trainplane.admission.semantic_equality import same
from trainplane.api import tree as trees
from trainplane.api.document import read
from trainplane.api.errors import DecodeError
from trainplane.api.trainjob import TrainJob
from trainplane.render.errors import RenderError
from trainplane.render.findings import Finding
from trainplane.render.resolve import container_of_trainer, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.render.plan import Runtime

_PATH: Final = ("spec", "trainer", "resourcesPerNode")


def is_counted(job: Tree) -> bool:
    """Return whether Kueue may count this TrainJob: it is in a queue, or Kueue has its entry in it.

    Where Kueue looks after TrainJobs it puts its entry into every one of them, queue or not, and a job may come into a
    queue later, when `spec.trainer` can no longer change.
    """
    patches = trees.get(job, "spec", "runtimePatches")
    return is_queued(job) or (isinstance(patches, list) and any(map(is_kueues, patches)))


def says_resources(job: Tree) -> bool:
    """Return whether a TrainJob says anything of what its nodes ask for."""
    return isinstance(trees.get(job, *_PATH), dict)


def says_nodes(job: Tree) -> bool:
    """Return whether a TrainJob says how many nodes it wants."""
    return trees.get(job, "spec", "trainer", "numNodes") is not None


def spell_out(job: Tree, runtime: Runtime) -> Tree:
    """Return the TrainJob with all that Kueue counts by: nodes, and what each of them asks for."""
    return _with_resources(_with_nodes(job, runtime), runtime)


def _with_nodes(job: Tree, runtime: Runtime) -> Tree:
    """Return the TrainJob with as many nodes as an elastic runtime may have, unless it says how many."""
    policy = runtime.view.spec.ml_policy
    elastic = policy.torch.elastic_policy if policy and policy.torch else None
    trainer = trees.get(job, "spec", "trainer")
    if elastic is None or says_nodes(job) or not (trainer is None or isinstance(trainer, dict)):
        return job
    counted: Tree = trees.put(job, "spec", "trainer", value={**(trainer or {}), "numNodes": elastic.most_nodes})
    return counted


def _with_resources(job: Tree, runtime: Runtime) -> Tree:
    """Return the TrainJob with `resourcesPerNode` as its nodes will have it, the runtime's amounts included.

    What comes out renders to the same pods. A TrainJob that cannot be resolved stays as it is, and validation says why;
    so does one whose `resourcesPerNode` goes into several containers that the runtime gives different amounts.
    """
    if not says_resources(job):
        return job
    whole = _whole(job, runtime)
    return job if whole is None or same(whole, trees.get(job, *_PATH)) else trees.put(job, *_PATH, value=whole)


def judge_counted(job: Tree, runtime: Runtime) -> Iterator[Finding]:
    """Yield a finding if a queued TrainJob asks for what cannot be said in one, so that Kueue would count less."""
    if not (is_queued(job) and says_resources(job)):
        return
    containers = _containers(job, runtime)
    if len(containers) > 1 and not _are_same(list(containers.values())):
        yield Finding(
            ".".join(_PATH),
            f"cannot be counted: to Kueue it is all that a node has, and beside it the runtime gives the nodes of jobs "
            f"{' and '.join(containers)} different amounts. Leave it out, or use a runtime that gives them the same",
        )


def _whole(job: Tree, runtime: Runtime) -> Any:
    found = list(_containers(job, runtime).values())
    return trees.copy(found[0]) if found and _are_same(found) else None


def _containers(job: Tree, runtime: Runtime) -> dict[str, Tree]:
    """Return what the training container of each job will have; nothing if the TrainJob cannot be resolved."""
    try:
        plan = resolve(read(job, TrainJob), runtime)
    except (DecodeError, RenderError):
        return {}
    found = {pods.name: container_of_trainer(pods) for pods in plan.pod_sets}
    return {name: container.tree.get("resources") or {} for name, container in found.items() if container is not None}


def _are_same(found: list[Tree]) -> bool:
    return all(same(found[0], other) for other in found)
