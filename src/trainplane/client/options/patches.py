"""What a TrainJob changes in its runtime, for itself alone: volumes, service account, tolerations, ...

The classes follow `spec.runtimePatches` of the API, with its names in Python's spelling. What a patch holds at its ends
(volumes, tolerations, variables) is as Kubernetes writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.client.errors import InvalidError
from trainplane.client.options.option import Option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.api.tree import Tree

MANAGER: Final = "trainplane.dev/sdk"
"""Whose entry of `runtimePatches` these are."""
_SOURCES: Final = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")


@dataclass
class ContainerPatch:
    """Changes to a container of the runtime."""

    name: str
    """The container, such as `node`."""
    env: Sequence[Tree] | None = None
    """Variables to add or replace: `{"name": ..., "value": ...}` or with `valueFrom`."""
    volume_mounts: Sequence[Tree] | None = None
    """Mounts to add or replace: `{"name": ..., "mountPath": "/..."}`."""
    security_context: Tree | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidError("name of a ContainerPatch must be a container's name, such as 'node'")
        for place, entry in enumerate(_entries(self.env, "env")):
            _check_variable(entry, f"env[{place}]")
        for place, entry in enumerate(_entries(self.volume_mounts, "volume_mounts")):
            path = entry.get("mountPath")
            if not isinstance(path, str) or not path.startswith("/"):
                raise InvalidError(f"volume_mounts[{place}] needs a mountPath that begins with '/', and has {path!r}")


@dataclass
class PodSpecPatch:
    """Changes to the pods of a job of the runtime."""

    service_account_name: str | None = None
    volumes: Sequence[Tree] | None = None
    init_containers: Sequence[ContainerPatch] | None = None
    containers: Sequence[ContainerPatch] | None = None
    image_pull_secrets: Sequence[Tree] | None = None
    security_context: Tree | None = None
    node_selector: Mapping[str, str] | None = None
    affinity: Tree | None = None
    tolerations: Sequence[Tree] | None = None
    scheduling_gates: Sequence[Tree] | None = None
    termination_grace_period_seconds: int | None = None
    """How long a pod may take to stop, to save a checkpoint for example."""


@dataclass
class PodTemplatePatch:
    """Changes to a Job's pod template."""

    metadata: Tree | None = None
    """Labels and annotations of the pods."""
    spec: PodSpecPatch | None = None


@dataclass
class JobSpecPatch:
    """Changes to a Job."""

    template: PodTemplatePatch | None = None


@dataclass
class JobTemplatePatch:
    """Changes to a Job template."""

    metadata: Tree | None = None
    """Labels and annotations of the Jobs."""
    spec: JobSpecPatch | None = None


@dataclass
class ReplicatedJobPatch:
    """Changes to a job of the runtime."""

    name: str
    """The job, such as `node` or `launcher`."""
    template: JobTemplatePatch | None = None


@dataclass
class JobSetSpecPatch:
    """Changes to the runtime's jobs."""

    replicated_jobs: Sequence[ReplicatedJobPatch] | None = None


@dataclass
class JobSetTemplatePatch:
    """Changes to the runtime's JobSet template."""

    metadata: Tree | None = None
    """Labels and annotations of the JobSet."""
    spec: JobSetSpecPatch | None = None


@dataclass
class TrainingRuntimeSpecPatch:
    """Changes to the runtime's spec."""

    template: JobSetTemplatePatch | None = None


@dataclass
class RuntimePatch(Option):
    """Changes to the runtime, for this TrainJob alone. Several of them add up to one; the later one's word counts."""

    training_runtime_spec: TrainingRuntimeSpecPatch | None = None
    manager: str = field(default=MANAGER, init=False, repr=False)

    def apply(self, job: Tree, trainer: Any) -> None:
        """Merge into our entry of `spec.runtimePatches`."""
        del trainer
        patches = job.setdefault("spec", {}).setdefault("runtimePatches", [])
        job["spec"]["runtimePatches"] = _merge(patches, [_write(self)])


def _write(value: Any) -> Any:
    """Return a patch as the API has it: names in its spelling, without what is not said."""
    if isinstance(value, list | tuple):
        return [_write(entry) for entry in value]
    if not is_dataclass(value):
        return value
    said = {_spell(entry.name): _write(getattr(value, entry.name)) for entry in fields(value)}
    return {name: entry for name, entry in said.items() if entry is not None and entry not in ({}, [])}


def _spell(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _merge(old: Any, new: Any) -> Any:
    """Return both. Entries of lists that have a name, or a manager, are the same if it is; others are added."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _merge(old[key], value) if key in old else value for key, value in new.items()}}
    if not (isinstance(old, list) and isinstance(new, list)):
        return new
    merged = list(old)
    for entry in new:
        place = next((place for place, other in enumerate(merged) if _same(other, entry)), None)
        if place is None:
            merged.append(entry)
        else:
            merged[place] = _merge(merged[place], entry)
    return merged


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return bool(one == other)
    key = next((key for key in ("manager", "name") if key in one), None)
    return one == other or (key is not None and one.get(key) == other.get(key))


def _entries(entries: Any, where: str) -> list[Tree]:
    """Return entries of a list, each of which must be an object with a name."""
    if entries is not None and (
        isinstance(entries, str | dict) or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise InvalidError(f"{where} of a ContainerPatch must be a list of dicts, and is {entries!r}")
    for place, entry in enumerate(entries or ()):
        if not entry.get("name"):
            raise InvalidError(f"{where}[{place}] needs a name")
    return list(entries or ())


def _check_variable(entry: Tree, where: str) -> None:
    if "value" not in entry and "valueFrom" not in entry:
        raise InvalidError(f"{where} ({entry['name']}) needs a value or a valueFrom")
    source = entry.get("valueFrom")
    if source is not None and not (isinstance(source, dict) and any(key in source for key in _SOURCES)):
        raise InvalidError(f"{where}.valueFrom ({entry['name']}) must be one of {', '.join(_SOURCES)}")
