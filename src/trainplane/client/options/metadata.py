"""Options about what a TrainJob is called and whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainplane.api import names
from trainplane.api.objectname import is_train_job_name
from trainplane.client.errors import InvalidError
from trainplane.client.options.option import CLUSTER, Option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree


@dataclass
class Name(Option):
    """The TrainJob's name; without it, one is drawn."""

    name: str
    """Small letters, digits and `-`, beginning with a letter: pods and their addresses begin with it."""

    def __post_init__(self) -> None:
        if not is_train_job_name(self.name):
            raise InvalidError(
                f"name must be of small letters, digits and '-', begin with a letter, not end with '-', and have at "
                f"most 63 characters; it is {self.name!r}"
            )

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set `metadata.name`."""
        del trainer
        job.setdefault("metadata", {})["name"] = self.name


@dataclass
class Labels(Option):
    """Labels of the TrainJob."""

    labels: Mapping[str, str]
    """To add; of two with the same key, the later option's counts."""

    def __post_init__(self) -> None:
        _check_texts(self.labels, "labels")

    def apply(self, job: Tree, trainer: Any) -> None:
        """Add to `metadata.labels`."""
        del trainer
        _add(job, "labels", self.labels)


@dataclass
class Annotations(Option):
    """Annotations of the TrainJob."""

    annotations: Mapping[str, str]
    """To add; of two with the same key, the later option's counts."""

    def __post_init__(self) -> None:
        _check_texts(self.annotations, "annotations")

    def apply(self, job: Tree, trainer: Any) -> None:
        """Add to `metadata.annotations`."""
        del trainer
        _add(job, "annotations", self.annotations)


@dataclass
class Queue(Option):
    """Let Kueue start the TrainJob when its queue has quota; on a MultiKueue hub, on the cluster that it chooses."""

    backends = CLUSTER

    name: str
    """A LocalQueue of the namespace."""

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set Kueue's label."""
        del trainer
        _add(job, "labels", {names.LABEL_QUEUE: self.name})


@dataclass
class After(Option):
    """Begin when another TrainJob of the namespace is complete, and hold no quota until then; needs a `Queue`."""

    backends = CLUSTER

    name: str
    """The TrainJob that must be complete first, such as one that fetches the data."""

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set the annotation that the operator knows."""
        del trainer
        _add(job, "annotations", {names.ANNOTATION_AFTER: self.name})


@dataclass
class PriorityClass(Option):
    """Who comes first in the queue, and who may be asked to leave."""

    backends = CLUSTER

    name: str
    """A WorkloadPriorityClass of the cluster."""

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set Kueue's label."""
        del trainer
        _add(job, "labels", {names.LABEL_PRIORITY_CLASS: self.name})


def _add(job: Tree, field: str, entries: Mapping[str, str]) -> None:
    metadata = job.setdefault("metadata", {})
    metadata[field] = {**metadata.get(field, {}), **entries}


def _check_texts(entries: Mapping[str, Any], field: str) -> None:
    for key, value in entries.items():
        if not isinstance(value, str):
            raise InvalidError(f"{field}[{key!r}] must be a text, and is {value!r}: write {str(value)!r}")
