"""Views of a JobSet template: the few places of an untyped tree that we read and write.

A view is a window, not a copy: it holds the tree it looks at and writes into that tree. What a view does not name stays
as it is, at every level. Whoever changes a template begins with `JobSetTemplate.copy_of`, so that no tree that was read
is ever written into.

    template = JobSetTemplate.copy_of(runtime.tree["spec"]["template"])
    node = template.job("node").container("node")
    node.set_env({"name": "PET_NNODES", "value": "2"})
    template.tree                                            # everything else as the admin wrote it

Properties read, and a part that is missing reads as empty. Methods write, and make what is missing on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from trainplane.api.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a tree; two windows on the same part see each other's writes."""

    tree: Tree

    def get(self, *path: str) -> Any:
        """Return what stands at a path, or None."""
        return trees.get(self.tree, *path)

    def grow(self, *path: str) -> Tree:
        """Return the object at a path to write into, made if it is not there."""
        place = self.tree
        for key in path:
            if place.get(key) is None:
                place[key] = {}
            place = place[key]
        return place

    def upsert(self, *path: str, entries: Iterable[Tree], key: str) -> None:
        """Put each entry into the list at a path: in the place of the one with the same key, or at the end."""
        parent = self.grow(*path[:-1])
        present = cast("list[Tree]", parent.get(path[-1]) or [])
        parent[path[-1]] = present
        places: dict[Hashable, int] = {}
        for place, one in enumerate(present):
            places.setdefault(trees.hashable(one.get(key)), place)
        for entry in entries:
            place = places.setdefault(trees.hashable(entry[key]), len(present))
            if place == len(present):
                present.append(entry)
            else:
                present[place] = entry


class Container(Window):
    """A container or init container."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The container's name."""
        return str(self.tree.get("name", ""))

    @property
    def image(self) -> str:
        """The image, empty if none."""
        return self.tree.get("image") or ""

    @property
    def command(self) -> list[str]:
        """The command, empty if the image's own."""
        return self.tree.get("command") or []

    @property
    def args(self) -> list[str]:
        """The arguments, empty if the image's own."""
        return self.tree.get("args") or []

    @property
    def env(self) -> list[Tree]:
        """The variables."""
        return self.tree.get("env") or []

    @property
    def requests(self) -> Tree:
        """What the container asks for, quantities as they are written."""
        return self.get("resources", "requests") or {}

    @property
    def limits(self) -> Tree:
        """What the container may use, quantities as they are written."""
        return self.get("resources", "limits") or {}

    def set(self, key: str, value: Any) -> None:
        """Set a field of the container: image, command, args, resources."""
        self.tree[key] = value

    def set_env(self, *variables: Tree) -> None:
        """Set variables, told apart by name."""
        self.upsert("env", entries=variables, key="name")

    def set_mounts(self, *mounts: Tree) -> None:
        """Set volume mounts, told apart by path: one volume may be mounted twice."""
        self.upsert("volumeMounts", entries=mounts, key="mountPath")

    def set_ports(self, *ports: Tree) -> None:
        """Set ports, told apart by number."""
        self.upsert("ports", entries=ports, key="containerPort")

    def add_env_from(self, *sources: Tree) -> None:
        """Add sources of variables that are not there yet."""
        present = self.tree.get("envFrom") or []
        self.tree["envFrom"] = [*present, *(source for source in sources if source not in present)]


class ReplicatedJob(Window):
    """One replicated job, and through it the pods it becomes."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The replicated job's name."""
        return str(self.tree.get("name", ""))

    @property
    def replicas(self) -> int:
        """How many Jobs; the CRD's default is one."""
        return int(self.tree.get("replicas", 1))

    @property
    def ancestor(self) -> str | None:
        """Which part of a TrainJob runs here; None for a job of the admin's own."""
        label = self.get("template", "metadata", "labels", names.LABEL_ANCESTOR)
        return None if label is None else str(label)

    @property
    def parallelism(self) -> int:
        """How many pods run at once; one if the template is silent."""
        count = self.get("template", "spec", "parallelism")
        return 1 if count is None else int(count)

    @property
    def pod_spec(self) -> Tree:
        """The pod's spec."""
        return self.get("template", "spec", "template", "spec") or {}

    @property
    def containers(self) -> list[Container]:
        """The containers, in order."""
        return [Container(entry) for entry in self.pod_spec.get("containers") or []]

    @property
    def init_containers(self) -> list[Container]:
        """The init containers, in order."""
        return [Container(entry) for entry in self.pod_spec.get("initContainers") or []]

    def container(self, name: str) -> Container | None:
        """Return the container of a name, or None; init containers are not looked at."""
        return next((container for container in self.containers if container.name == name), None)

    def set_replicas(self, count: int) -> None:
        """Let the replicated job have this many Jobs."""
        self.tree["replicas"] = count

    def set_pods(self, count: int) -> None:
        """Let each Job have this many pods, all at once."""
        self.grow("template", "spec").update(parallelism=count, completions=count)

    def label_pods(self, labels: Mapping[str, str]) -> None:
        """Add labels to the pods."""
        self.grow("template", "spec", "template", "metadata", "labels").update(labels)

    def annotate_pods(self, annotations: Mapping[str, str]) -> None:
        """Add annotations to the pods."""
        self.grow("template", "spec", "template", "metadata", "annotations").update(annotations)

    def set_volumes(self, *volumes: Tree) -> None:
        """Set volumes, told apart by name."""
        self.upsert("template", "spec", "template", "spec", "volumes", entries=volumes, key="name")

    def set_init_containers(self, *containers: Tree) -> None:
        """Set init containers, told apart by name."""
        self.upsert("template", "spec", "template", "spec", "initContainers", entries=containers, key="name")


class JobSetTemplate(Window):
    """The template of a runtime, or the `metadata` and `spec` of a JobSet."""

    __slots__ = ()

    @classmethod
    def copy_of(cls, tree: Tree) -> JobSetTemplate:
        """Return a window on a copy, which may be written into."""
        return cls(trees.copy(tree))

    @property
    def jobs(self) -> list[ReplicatedJob]:
        """The replicated jobs, in order."""
        return [ReplicatedJob(entry) for entry in self.get("spec", "replicatedJobs") or []]

    def job(self, name: str) -> ReplicatedJob | None:
        """Return the replicated job of a name, or None."""
        return next((job for job in self.jobs if job.name == name), None)

    def jobs_of(self, ancestor: str) -> list[ReplicatedJob]:
        """Return the replicated jobs that run a part of a TrainJob."""
        return [job for job in self.jobs if job.ancestor == ancestor]

    @property
    def labels(self) -> dict[str, str]:
        """The JobSet's labels."""
        return self.get("metadata", "labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        """The JobSet's annotations."""
        return self.get("metadata", "annotations") or {}

    @property
    def subdomain(self) -> str:
        """The subdomain that pods are addressed under; empty if it is the JobSet's name."""
        return self.get("spec", "network", "subdomain") or ""
