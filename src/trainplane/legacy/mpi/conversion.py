"""MPIJobs of v1 and v2beta1, each turned into the other without loss.

v2beta1 is stored and run. Most fields are the same in both; these are not:

| v1                                 | v2beta1                                                              |
|------------------------------------|----------------------------------------------------------------------|
| `cleanPodPolicy`                   | `runPolicy.cleanPodPolicy`, which outranks it in v1 as well          |
| `mainContainer`                    | none: the first container is it                                      |
| `managedBy: .../training-operator` | `.../mpi-operator`                                                   |
| no restart policy means Never      | Never, written down: a launcher that says nothing means OnFailure    |
| restart policies Always, ExitCode  | OnFailure, Never                                                     |
| a launcher with GPUs is a host     | `runLauncherAsWorker: true`                                          |
| none                               | `sshAuthMountPath`, `launcherCreationPolicy`, `mpiImplementation`    |

What the other version cannot say goes into an annotation of the converted object: for each such field what it said, and
what the way there and back would make of it. The way back puts it in again, unless somebody changed the field since.
An empty annotation says in which version the object was written.

Anybody may write that annotation. So of what it says only these fields are read, with values that a field may have: it
lets nobody say what could not be written without it. What is not of its form is dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.mpi.job import SSH_MOUNT_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainplane.api.tree import Tree

V1: Final = f"{names.GROUP}/{names.V1}"
V2BETA1: Final = MPI.api_version

LONGEST_RECORD: Final = 16384
"""Characters of an annotation that are read."""
LONGEST_PATH: Final = 4096
"""Characters of a folder's path that Linux can open."""

Path: TypeAlias = tuple[str, ...]

_CONTAINER: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_AS_V2BETA1: Final = {
    names.RESTART_ALWAYS: names.RESTART_ON_FAILURE,
    names.RESTART_EXIT_CODE: names.RESTART_NEVER,
    None: names.RESTART_NEVER,
}
_V2BETA1_ALONE: Final = ("runLauncherAsWorker", "sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation")
_OURS: Final = (names.MANAGED_BY_TRAINING_OPERATOR, names.MANAGED_BY_MPI_OPERATOR)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of MPIJob, as the other sees it."""

    api_version: str
    forth: Callable[[Tree], Tree]
    """Turns a spec of this version into one of the other, as far as the other can say it."""
    fields: Mapping[Path, Callable[[Any], bool]]
    """Fields that are lost on the way there and back, and whether a value is one that the field may have."""
    record: str
    """The annotation, on objects of the other version, that keeps them."""
    defaults: Mapping[Path, Any] = field(default_factory=dict)
    """What the schema fills in: it need not be kept."""


def converted(job: Tree, api_version: str) -> Tree:
    """Return an MPIJob in a version; itself if it is of that version.

    Nothing of its metadata changes but one annotation, as the API server demands.
    """
    if job.get("apiVersion") == api_version:
        return job
    source, target = (_V1, _V2) if api_version == V2BETA1 else (_V2, _V1)
    said = trees.fields(job, "spec")
    spec = _restored(source.forth(said), _read(job, target))
    back = target.forth(spec)
    lost = [(path, trees.get(said, *path), trees.get(back, *path)) for path in source.fields]
    record = {
        ".".join(path): [value, other]
        for path, value, other in lost
        if value != other and (other is not None or value != source.defaults.get(path))
    }
    annotations = trees.fields(job, "metadata", "annotations")
    kept = {key: value for key, value in annotations.items() if key not in {source.record, target.record}}
    if record or target.record not in annotations:
        kept[source.record] = msgspec.json.encode(record).decode()
    return _annotated({**job, "apiVersion": api_version, "spec": spec}, kept)


def was_v1(job: Tree) -> bool:
    """Return whether an MPIJob was written as v1, by its version or by what was kept of it."""
    return job.get("apiVersion") == V1 or trees.text(job, "metadata", "annotations", _V1.record) is not None


def _v1_as_v2beta1(spec: Tree) -> Tree:
    policy = trees.fields(spec, "runPolicy")
    changed = {
        "cleanPodPolicy": trees.get(policy, "cleanPodPolicy") or spec.get("cleanPodPolicy"),
        "managedBy": _managed_by(policy, names.MANAGED_BY_MPI_OPERATOR),
    }
    spec = {key: value for key, value in spec.items() if key not in {"cleanPodPolicy", "mainContainer"}}
    spec = _with_policy(spec, changed)
    for name, replica in trees.fields(spec, MPI.specs).items():
        restart = replica.get("restartPolicy") if isinstance(replica, dict) else ""
        if isinstance(restart, str | None) and restart in _AS_V2BETA1:
            spec = trees.put(spec, MPI.specs, name, "restartPolicy", value=_AS_V2BETA1[restart])
    if any(map(_has_gpu, trees.entries(spec, MPI.specs, names.LAUNCHER, "template", "spec", "containers"))):
        spec = {**spec, "runLauncherAsWorker": True}
    return spec


def _v2beta1_as_v1(spec: Tree) -> Tree:
    changed = {"managedBy": _managed_by(trees.fields(spec, "runPolicy"), names.MANAGED_BY_TRAINING_OPERATOR)}
    return _with_policy({key: value for key, value in spec.items() if key not in _V2BETA1_ALONE}, changed)


def _with_policy(spec: Tree, changed: Tree) -> Tree:
    """Return a spec with fields of its runPolicy set; None is a field that is not there."""
    policy = spec.get("runPolicy")
    said = {key: value for key, value in changed.items() if value is not None}
    return {**spec, "runPolicy": {**(policy or {}), **said}} if said and isinstance(policy, dict | None) else spec


def _managed_by(policy: Tree, ours: str) -> Any:
    said = policy.get("managedBy")
    return ours if said in _OURS else said


def _has_gpu(container: Tree) -> bool:
    return any("gpu" in name for name in trees.fields(container, "resources", "limits"))


def _one_of(*values: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in values


def _is_container(value: Any) -> bool:
    return isinstance(value, str) and _CONTAINER.fullmatch(value) is not None


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_folder(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_PATH


_RESTARTS: Final[dict[Path, Callable[[Any], bool]]] = {
    (MPI.specs, name, "restartPolicy"): _one_of(*names.RESTART_POLICIES) for name in (names.LAUNCHER, names.WORKER)
}
_CLEAN: Final = _one_of(*names.CLEAN_POD_POLICIES)
_V1: Final = Version(
    V1,
    _v1_as_v2beta1,
    {
        ("cleanPodPolicy",): _CLEAN,
        ("mainContainer",): _is_container,
        ("runPolicy", "cleanPodPolicy"): _CLEAN,
        ("runPolicy", "managedBy"): _one_of(names.MANAGED_BY_MPI_OPERATOR),
        **_RESTARTS,
    },
    "trainplane.dev/mpijob-v1",
)
_V2: Final = Version(
    V2BETA1,
    _v2beta1_as_v1,
    {
        ("runLauncherAsWorker",): _is_flag,
        ("sshAuthMountPath",): _is_folder,
        ("launcherCreationPolicy",): _one_of(names.LAUNCHER_AT_STARTUP, names.LAUNCHER_WAITS),
        ("mpiImplementation",): _one_of(*names.MPI_IMPLEMENTATIONS),
        ("runPolicy", "managedBy"): _one_of(names.MANAGED_BY_TRAINING_OPERATOR),
        **_RESTARTS,
    },
    "trainplane.dev/mpijob-v2beta1",
    {
        ("runLauncherAsWorker",): False,
        ("sshAuthMountPath",): SSH_MOUNT_PATH,
        ("launcherCreationPolicy",): names.LAUNCHER_AT_STARTUP,
        ("mpiImplementation",): names.MPI_OPENMPI,
    },
)


def _read(job: Tree, version: Version) -> dict[Path, tuple[Any, Any]]:
    """Return what an annotation keeps of a version's fields, as far as it can be believed."""
    text = trees.text(job, "metadata", "annotations", version.record)
    if text is None or len(text) > LONGEST_RECORD:
        return {}
    try:
        record = msgspec.json.decode(text, type=dict[str, tuple[Any, Any]])
    except (msgspec.DecodeError, RecursionError):
        return {}
    found = {path: record[".".join(path)] for path in version.fields if ".".join(path) in record}
    return {
        path: pair
        for path, pair in found.items()
        if all(value is None or version.fields[path](value) for value in pair)
    }


def _restored(spec: Tree, record: dict[Path, tuple[Any, Any]]) -> Tree:
    for path, (value, other) in record.items():
        around = trees.get(spec, *path[:-1])
        if value == other or trees.get(spec, *path) != other or not isinstance(around, dict):
            continue
        if value is not None:
            spec = trees.put(spec, *path, value=value)
        elif path[:-1] == ("runPolicy",) and len(around) == 1:
            spec = trees.drop(spec, *path[:-1])  # it was made for this field
        else:
            spec = trees.drop(spec, *path)
    return spec


def _annotated(job: Tree, annotations: Tree) -> Tree:
    metadata = {key: value for key, value in trees.fields(job, "metadata").items() if key != "annotations"}
    return {**job, "metadata": {**metadata, "annotations": annotations} if annotations else metadata}
