"""The kinds of jobs that a hub looks after: TrainJobs always, and those of `kubeflow.org` that an admin enables.

A row says everything in which they differ for the hub: where a job says who runs it, how it ends, how its pods name it
and who owns them. Whatever else the hub does, it does for all kinds alike, by these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import names as legacy_names
from trainplane.api.legacy.kinds import KINDS as LEGACY
from trainplane.lifecycle.conditions import ENDS, conditions_of
from trainplane.resources import JOB_SETS, JOBS, LEGACY_JOBS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.kube.resource import Resource


class JobKey(NamedTuple):
    """Which job: two of different kinds may have one name."""

    namespace: str
    name: str
    kind: str = names.TRAIN_JOB

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs."""

    resource: Resource
    framework: str
    """How Kueue calls it in `integrations.frameworks`."""
    manager: str
    """Who runs a job that does not say who."""
    chains: tuple[tuple[Resource, ...], ...]
    """Who may own its pods, from a pod's own controller up to the job."""
    pod_label: str
    """By which a pod says the name of its job."""
    operator: str = ""
    """What its pods say of who made them; empty for TrainJobs, whose pods are JobSet's."""
    policy: tuple[str, ...] = ("spec",)
    """Where `suspend` and `managedBy` stand."""
    ends: tuple[str, ...] = ENDS
    """The conditions with which it is over; the first counts where both are True."""
    replica_specs: str = ""
    """The field of its spec that has the pods by their types; empty where a runtime has them."""
    pod_set: str = names.JOB_NODE
    """The pods whose number people choose, as Kueue calls them."""
    is_mirrored: bool = True
    """Whether the worker's Kueue takes the copy that MultiKueue makes."""

    @property
    def name(self) -> str:
        """The kind's name."""
        return self.resource.kind

    @property
    def plural(self) -> str:
        """Its name in paths and roles."""
        return self.resource.plural

    def field(self, name: str) -> str:
        """Return a field of the policy as people write it: `spec.runPolicy.suspend`."""
        return ".".join((*self.policy, name))

    def managed_by(self, job: Tree) -> str:
        """Return who runs a job."""
        return str(trees.get(job, *self.policy, "managedBy") or self.manager)

    def is_dispatched(self, job: Tree) -> bool:
        """Return whether MultiKueue runs a job, on another cluster than it was submitted to."""
        return self.managed_by(job) == names.MANAGED_BY_MULTIKUEUE

    def is_suspended(self, job: Tree) -> bool:
        """Return whether a job is to have no pods for now."""
        return bool(trees.get(job, *self.policy, "suspend"))

    def end(self, job: Tree) -> Tree | None:
        """Return the condition with which a job is over; None if it is not."""
        holding = {one.get("type"): one for one in conditions_of(job) if one.get("status") == "True"}
        return next((holding[kind] for kind in self.ends if kind in holding), None)


TRAIN_JOB: Final = JobKind(
    TRAIN_JOBS,
    "trainer.kubeflow.org/trainjob",
    names.MANAGED_BY_TRAINER,
    ((JOBS, JOB_SETS, TRAIN_JOBS),),
    names.LABEL_JOBSET_NAME,
)


def _legacy(kind: Kind) -> JobKind:
    resource = LEGACY_JOBS[kind.name]
    launched = ((JOBS, resource),) if legacy_names.LAUNCHER in kind.types else ()  # a launcher's pods are a Job's
    return JobKind(
        resource,
        f"{resource.group}/{kind.singular}",
        kind.managed_by,
        ((resource,), *launched),
        legacy_names.LABEL_JOB_NAME,
        operator=kind.operator,
        policy=("spec", "runPolicy"),
        ends=(legacy_names.SUCCEEDED, legacy_names.FAILED),
        replica_specs=kind.specs,
        pod_set=legacy_names.WORKER.lower(),
        is_mirrored=kind.name != legacy_names.JAX_JOB,
    )


KINDS: Final[Mapping[str, JobKind]] = MappingProxyType(
    {TRAIN_JOB.name: TRAIN_JOB, **{name: _legacy(kind) for name, kind in LEGACY.items()}}
)
"""All kinds, by their names."""
BY_PLURAL: Final[Mapping[str, JobKind]] = MappingProxyType({kind.plural: kind for kind in KINDS.values()})


def kind_of(job: Tree) -> JobKind:
    """Return the kind of a job's document; one that does not say is a TrainJob's."""
    return KINDS.get(str(job.get("kind")), TRAIN_JOB)


def is_over(job: Tree | None) -> bool:
    """Return whether a job has ended by itself; one that is not there has not."""
    return job is not None and kind_of(job).end(job) is not None


def key_of(job: Tree) -> JobKey:
    """Return which job a document is of."""
    metadata = job["metadata"]
    return JobKey(metadata.get("namespace") or "", metadata["name"], kind_of(job).name)


def claimed(labels: Mapping[str, str], kinds: Iterable[JobKind]) -> tuple[JobKind, str] | None:
    """Return the kind and the name of the job that a pod says it is of, None if it says nothing of the kind.

    A pod has one answer, whatever else stands on it: an operator of these kinds that it names goes before a JobSet.
    """
    by_operator = {kind.operator: kind for kind in kinds}
    kind = by_operator.get(labels.get(legacy_names.LABEL_OPERATOR_NAME, "")) or by_operator.get("")
    name = "" if kind is None else labels.get(kind.pod_label, "")
    return None if kind is None or not name else (kind, name)
