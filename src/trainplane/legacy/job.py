"""A job of v1 as the rest of the room reads it: its replicas by type, its run policy, the names of its pods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.moments import read_moment
from trainplane.legacy.defaults import defaulted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree


class Member(NamedTuple):
    """One pod of a job by what it is there for; a pod that takes another's place is the same member."""

    type: str
    number: int


@dataclass(frozen=True, slots=True)
class Replicas:
    """The pods of one type."""

    type: str
    count: int
    restart: str
    template: Tree


class Job:
    """A job of v1, completed by what it leaves out. What is not of the form that it ought to be is as if not there."""

    def __init__(self, kind: Kind, tree: Tree) -> None:
        self.kind = kind
        self.tree = defaulted(kind, tree)
        self.spec = trees.fields(self.tree, "spec")
        self.policy = trees.fields(self.spec, "runPolicy")
        elastic = self.spec.get("elasticPolicy")
        self.elastic: Tree | None = elastic if kind.elastic and isinstance(elastic, dict) else None

    @property
    def name(self) -> str:
        """The job's name, with which those of its pods begin."""
        return trees.text(self.tree, "metadata", "name") or ""

    @property
    def namespace(self) -> str:
        """The namespace of the job and of its pods."""
        return trees.text(self.tree, "metadata", "namespace") or ""

    @cached_property
    def replicas(self) -> dict[str, Replicas]:
        """What the job asks for, by type, in the kind's order."""
        found = {}
        for name in self.kind.types:
            said = trees.fields(self.spec, self.kind.specs).get(name)
            if isinstance(said, dict):
                count = max(0, trees.number(said, "replicas") or 0)
                restart = trees.text(said, "restartPolicy") or self.kind.restart_of(name)
                found[name] = Replicas(name, count, restart, trees.fields(said, "template"))
        return found

    @property
    def total(self) -> int:
        """How many pods the job asks for."""
        return sum(one.count for one in self.replicas.values())

    def count(self, replica_type: str) -> int:
        """Return how many pods of a type the job asks for."""
        return self.replicas[replica_type].count if replica_type in self.replicas else 0

    def members(self) -> Iterator[Member]:
        """Yield every pod that the job asks for."""
        for one in self.replicas.values():
            for index in range(one.count):
                yield Member(one.type, index)

    def pod_name(self, replica_type: str, index: int = 0) -> str:
        """Return the name of a member's pod and Service, which is its address within the namespace."""
        return names.pod_name(self.name, replica_type, index)

    def port(self, replica_type: str) -> int:
        """Return the port that the training container of a type listens on."""
        template = self.replicas[replica_type].template if replica_type in self.replicas else {}
        path = ("spec", "containers", ("name", self.kind.container), "ports", ("name", self.kind.port_name))
        return trees.number(template, *path, "containerPort") or self.kind.port

    @property
    def is_suspended(self) -> bool:
        """Whether no pod may run."""
        return self.policy.get("suspend") is True

    @property
    def started(self) -> datetime | None:
        """When the job began, or began again after it was suspended."""
        return read_moment(trees.get(self.tree, "status", "startTime"))

    @property
    def owner(self) -> Tree:
        """The job as the controller of what it is made into."""
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.name,
            "name": self.name,
            "uid": trees.text(self.tree, "metadata", "uid") or "",
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def labels(self) -> dict[str, str]:
        """Return what every pod and Service of the job is labelled with."""
        return {names.LABEL_OPERATOR_NAME: self.kind.operator, names.LABEL_JOB_NAME: self.name}

    def labels_of(self, replica_type: str) -> dict[str, str]:
        """Return what pods of a type are labelled with, by which autoscalers select them."""
        return {**self.labels(), names.LABEL_REPLICA_TYPE: replica_type.lower()}
