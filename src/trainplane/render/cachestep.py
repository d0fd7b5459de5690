"""Which pods of a TrainJob are its data cache.

One of three, in this order:

- all of them, where the runtime is for a cache alone (the framework `data-cache`): its trainer are the cache's nodes;
- the job whose step is `cache-initializer`, if it has a container of that name;
- the job whose step is `dataset-initializer`, if the TrainJob wants `cache://` from it and the runtime names the
  reference's image and no command: that would make other objects, which serve; here the step itself does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import jobset, names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.render.plan import Container, Plan, PodSet

CACHE_SCHEME: Final = "cache://"
_REFERENCE: Final = "dataset-initializer"
"""The reference's image that a cache's step names, by the last part of its name; it cannot serve."""


@dataclass(frozen=True, slots=True)
class CacheStep:
    """The pods that serve, and the container in them that does."""

    pods: PodSet
    container: Container

    @property
    def trains(self) -> bool:
        """Whether the cache is what the TrainJob is for, so that it ends when the cache does."""
        return self.pods.ancestor == names.ANCESTOR_TRAINER


def cache_step(plan: Plan) -> CacheStep | None:
    """Return a TrainJob's data cache; None if it has none, or no container to serve in."""
    ancestor = cache_ancestor(plan)
    pods = next((pods for pods in plan.pod_sets if pods.ancestor == ancestor), None)
    container = pods.container(names.CONTAINER_OF_ANCESTOR[ancestor]) if pods and ancestor else None
    return CacheStep(pods, container) if pods and container else None


def cache_ancestor(plan: Plan) -> str | None:
    """Return the step that is the data cache; None if no step is."""
    if plan.framework == names.FRAMEWORK_CACHE:
        return names.ANCESTOR_TRAINER
    steps = {pods.ancestor: pods for pods in reversed(plan.pod_sets)}
    said = steps.get(names.ANCESTOR_CACHE)
    if said is not None and said.container(names.ANCESTOR_CACHE) is not None:
        return names.ANCESTOR_CACHE
    fetches = steps.get(names.ANCESTOR_DATASET)
    if fetches is None or not wants_cache(plan):
        return None
    # As the runtime has it: in the plan, it may be a cache by now.
    container = trees.get(plan.runtime_pod_spec(fetches), "containers", ("name", names.ANCESTOR_DATASET))
    return names.ANCESTOR_DATASET if runs_references(jobset.Container(container or {})) else None


def wants_cache(plan: Plan) -> bool:
    """Return whether the TrainJob's dataset is to be served by a cache."""
    initializer = plan.job.view.spec.initializer
    dataset = initializer.dataset if initializer else None
    return dataset is not None and (dataset.storage_uri or "").startswith(CACHE_SCHEME)


def runs_references(container: jobset.Container) -> bool:
    """Return whether a container runs the reference's image, and what that does by itself."""
    name = container.image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    return name == _REFERENCE and not container.command and not container.args
