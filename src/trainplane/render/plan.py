"""The plan: what the pipeline carries from a TrainJob and its runtime to objects.

It begins as a private copy of the runtime's JobSet template with the patches and the TrainJob's own words in it
(`resolve`), and plugins write into it through the windows below. There is no second model of a pod beside the tree: a
window reads and writes the tree itself, so a field that we have no name for stays where it is.

Every write records where it came from (`provenance`): the plugin at work, unless the write says that it only passes on
what a field of the TrainJob or of the runtime's policy says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from trainplane.api import jobset, names
from trainplane.api import tree as trees
from trainplane.render.growth import Growth
from trainplane.render.provenance import RUNTIME, Origin, Provenance, trainjob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trainplane.api.document import Document
    from trainplane.api.runtime import ClusterTrainingRuntime, MLPolicy, PodGroupPolicy, TrainingRuntime
    from trainplane.api.trainjob import Trainer, TrainJob
    from trainplane.api.tree import Tree

Job: TypeAlias = "Document[TrainJob]"
Runtime: TypeAlias = "Document[TrainingRuntime] | Document[ClusterTrainingRuntime]"


@dataclass(frozen=True, slots=True)
class CreateOnce:
    """An object that is made once and then kept, because making it draws something random: an SSH key.

    The operator looks whether it is there and the TrainJob's own; if it is not there, it calls `make` and creates the
    object, and never changes it.
    """

    api_version: str
    kind: str
    name: str
    make: Callable[[], Tree]
    """Return the object's content (everything but apiVersion, kind, name, namespace, owner). May draw."""
    keys: tuple[str, ...] = ()
    """The keys of `data` that pods read: an object without them is not taken for the one that is wanted."""


def variable(entry: Tree) -> Tree:
    """Return a variable as a pod must have it: with a source or with a value, which may be empty, never with both."""
    if entry.get("valueFrom") is not None:
        return {key: value for key, value in entry.items() if key != "value"}
    return entry if entry.get("value") is not None else {**entry, "value": ""}


class FieldWriter:
    """Writes fields of one tree and records their provenance: who is writing now, and how much was written."""

    __slots__ = ("growth", "origin", "provenance")

    def __init__(self) -> None:
        self.growth = Growth()
        self.provenance = Provenance()
        self.origin: Origin = RUNTIME

    def entries(self, entries: Iterable[Tree], origin: Origin | None) -> list[Tree]:
        """Return copies of entries to put into a list of the tree, with their origin recorded."""
        copies = [self.growth.copy(entry) for entry in entries]
        for entry in copies:
            self.provenance.entry(entry, origin or self.origin)
        return copies

    def write(self, holder: Tree, key: str, value: Any, origin: Origin | None) -> None:
        """Write a field and record its origin; a value that is None takes the field away."""
        if value is None:
            holder.pop(key, None)
            return
        holder[key] = self.growth.copy(value)
        self.provenance.field(holder, key, origin or self.origin)

    def write_all(self, holder: Tree, values: Mapping[str, Any], origin: Origin | None) -> None:
        """Write some fields and record their origin."""
        holder.update(self.growth.copy(values))
        self.provenance.fields(holder, values, origin or self.origin)


def _digits_below(count: int) -> int:
    """Return how many digits the numbers from 0 below a count have together."""
    total, low, width = 0, 0, 1
    while low < count:
        high = min(10**width, count)
        total += width * (high - low)
        low, width = high, width + 1
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Container(jobset.Container):
    """A container of the plan: reads as `api.jobset.Container` does, and records the origin of what it writes.

    Each write takes an `provenance`; without one, it is the plugin at work.
    """

    writer: FieldWriter

    def set(self, key: str, value: Any, *, origin: Origin | None = None) -> None:
        """Set a field of the container: image, command, args, resources. None takes it away."""
        self.writer.write(self.tree, key, value, origin)

    def set_env(self, *variables: Tree, origin: Origin | None = None) -> None:
        """Set variables, told apart by name."""
        self._put("env", variables, "name", origin)

    def set_mounts(self, *mounts: Tree, origin: Origin | None = None) -> None:
        """Set volume mounts, told apart by path: one volume may be mounted twice."""
        self._put("volumeMounts", mounts, "mountPath", origin)

    def set_ports(self, *ports: Tree, origin: Origin | None = None) -> None:
        """Set ports, told apart by number."""
        self._put("ports", ports, "containerPort", origin)

    def add_env_from(self, *sources: Tree, origin: Origin | None = None) -> None:
        """Add sources of variables that are not there yet."""
        present = self.tree.get("envFrom") or []
        fresh = [source for source in sources if source not in present]
        if fresh:
            self.tree["envFrom"] = [*present, *self.writer.entries(fresh, origin)]

    def set_resources(self, kind: str, amounts: Mapping[str, Any], *, origin: Origin | None = None) -> None:
        """Set amounts of resources; `kind` is `limits` or `requests`, other resources stay."""
        self.writer.write_all(self.grow("resources", kind), amounts, origin)

    def set_claims(self, *claims: Tree, origin: Origin | None = None) -> None:
        """Set claims of devices, told apart by name."""
        if claims:
            self.upsert("resources", "claims", entries=self.writer.entries(claims, origin), key="name")

    def _put(self, key: str, entries: tuple[Tree, ...], by: str, origin: Origin | None) -> None:
        if entries:
            self.upsert(key, entries=self.writer.entries(entries, origin), key=by)


@dataclass(frozen=True, slots=True, eq=False)
class PodSet(jobset.ReplicatedJob):
    """The pods of one replicated job: an `api.jobset.ReplicatedJob` that records the origin of what it writes."""

    plan: Plan

    @property
    def count(self) -> int:
        """How many pods each Job has."""
        return self.parallelism

    @property
    def endpoints(self) -> Iterator[str]:
        """The addresses of all pods, in order of rank. Read them when counts are settled, or read the first."""
        for job in range(self.replicas):
            for pod in range(self.count):
                yield self.endpoint(pod, job=job)

    @property
    def endpoints_length(self) -> int:
        """How many characters these addresses have together, known without making one."""
        jobs, pods = max(self.replicas, 0), max(self.count, 0)
        fixed = len(self.endpoint(0)) - len("00")
        return jobs * pods * fixed + pods * _digits_below(jobs) + jobs * _digits_below(pods)

    def endpoint(self, pod: int, *, job: int = 0) -> str:
        """Return the address of one pod, which is known before there is any."""
        return f"{names.pod_hostname(self.plan.name, self.name, job, pod)}.{self.plan.subdomain}"

    @property
    def containers(self) -> list[jobset.Container]:
        """The containers, in order; each is a `Container`."""
        return [Container(entry, self.plan.writer) for entry in self.pod_spec.get("containers") or ()]

    @property
    def init_containers(self) -> list[jobset.Container]:
        """The init containers, in order; each is a `Container`."""
        return [Container(entry, self.plan.writer) for entry in self.pod_spec.get("initContainers") or ()]

    def container(self, name: str) -> Container | None:
        """Return the container of a name, or None; init containers are not looked at."""
        return self._find("containers", name)

    def any_container(self, name: str) -> Container | None:
        """Return the container of a name, else the init container of it, or None."""
        return self._find("containers", name) or self._find("initContainers", name)

    def set_replicas(self, count: int, *, origin: Origin | None = None) -> None:
        """Let the replicated job have this many Jobs."""
        self.plan.writer.write(self.tree, "replicas", count, origin)

    def set_pods(self, count: int, *, origin: Origin | None = None) -> None:
        """Let each Job have this many pods, all at once."""
        pods = {"parallelism": count, "completions": count}
        self.plan.writer.write_all(self.grow("template", "spec"), pods, origin)

    def label_pods(self, labels: Mapping[str, str], *, origin: Origin | None = None) -> None:
        """Add labels to the pods."""
        holder = self.grow("template", "spec", "template", "metadata", "labels")
        self.plan.writer.write_all(holder, labels, origin)

    def annotate_pods(self, annotations: Mapping[str, str], *, origin: Origin | None = None) -> None:
        """Add annotations to the pods."""
        holder = self.grow("template", "spec", "template", "metadata", "annotations")
        self.plan.writer.write_all(holder, annotations, origin)

    def set_volumes(self, *volumes: Tree, origin: Origin | None = None) -> None:
        """Set volumes, told apart by name."""
        path = ("template", "spec", "template", "spec", "volumes")
        self.upsert(*path, entries=self.plan.writer.entries(volumes, origin), key="name")

    def add_containers(self, *containers: Tree, origin: Origin | None = None) -> None:
        """Set containers beside those that are there, told apart by name."""
        path = ("template", "spec", "template", "spec", "containers")
        self.upsert(*path, entries=self.plan.writer.entries(containers, origin), key="name")

    def set_init_containers(self, *containers: Tree, origin: Origin | None = None) -> None:
        """Set init containers, told apart by name."""
        path = ("template", "spec", "template", "spec", "initContainers")
        self.upsert(*path, entries=self.plan.writer.entries(containers, origin), key="name")

    def _find(self, kind: str, name: str) -> Container | None:
        for entry in self.pod_spec.get(kind) or ():
            if entry.get("name") == name:
                return Container(entry, self.plan.writer)
        return None


class Plan:
    """A TrainJob on its way to objects."""

    def __init__(self, job: Job, runtime: Runtime, template: Tree, writer: FieldWriter) -> None:
        """Take the two documents, which nobody changes, and the JobSet template, which is the plan's own."""
        self.job = job
        self.runtime = runtime
        self.template = jobset.JobSetTemplate(template)
        """The JobSet being made: its `metadata` and `spec`."""
        self.writer = writer
        self.pod_sets = tuple(PodSet(entry, self) for entry in trees.get(template, "spec", "replicatedJobs") or ())

    @property
    def name(self) -> str:
        """The TrainJob's name, which is the JobSet's too."""
        return self.job.view.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace of the TrainJob and of everything it becomes."""
        return self.job.view.metadata.namespace

    @property
    def trainer(self) -> Trainer | None:
        """What the TrainJob says of its trainer; None if it leaves all to the runtime."""
        return self.job.view.spec.trainer

    @property
    def policy(self) -> MLPolicy | None:
        """The runtime's framework and its settings."""
        return self.runtime.view.spec.ml_policy

    @property
    def pod_group_policy(self) -> PodGroupPolicy | None:
        """The runtime's gang scheduling."""
        return self.runtime.view.spec.pod_group_policy

    @property
    def framework(self) -> str:
        """What the runtime's label says its framework is: how a framework without a policy of its own is chosen."""
        return self.runtime.view.metadata.labels.get(names.LABEL_FRAMEWORK, "")

    @property
    def subdomain(self) -> str:
        """The subdomain that pods are addressed under."""
        return self.template.subdomain or names.jobset_name(self.name)

    @cached_property
    def trainer_set(self) -> PodSet | None:
        """The pods that train: the first replicated job that the runtime labels as the trainer."""
        return next((pods for pods in self.pod_sets if pods.ancestor == names.ANCESTOR_TRAINER), None)

    @property
    def trainer_container(self) -> Container | None:
        """The container that trains."""
        return self.trainer_set.container(names.CONTAINER_NODE) if self.trainer_set else None

    def count_nodes(self) -> None:
        """Let there be as many pods that train as the TrainJob says, if it says how many."""
        if self.trainer_set and self.trainer and self.trainer.num_nodes is not None:
            self.trainer_set.set_pods(self.trainer.num_nodes, origin=trainjob("spec.trainer.numNodes"))

    def env_not_overridden(self, variables: Iterable[Tree]) -> Iterator[Tree]:
        """Yield the variables that the TrainJob does not set itself."""
        said = {entry.get("name") for entry in self.trainer.env} if self.trainer else set()
        return (entry for entry in variables if entry["name"] not in said)

    def runtime_pod_spec(self, pods: PodSet) -> Tree:
        """Return the spec of some pods as the runtime has it, to read from."""
        path = ("spec", "template", "spec", "replicatedJobs", ("name", pods.name))
        return trees.get(self.runtime.tree, *path, "template", "spec", "template", "spec") or {}

    def pod_set(self, name: str) -> PodSet | None:
        """Return the pods of the replicated job of a name, or None."""
        return next((pods for pods in self.pod_sets if pods.name == name), None)
