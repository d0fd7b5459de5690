"""Volumes of pods on a machine without a cluster: folders below the job's, and files from ConfigMaps and Secrets.

`lay_out` is pure: it says which folder stands for which mount and what lies in it. `make` writes it.
What another machine would have to provide (a PersistentVolumeClaim, NFS, a CSI driver) is refused: leaving it out would
change what the training reads or keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from trainplane.client.backends.local.values import field_of
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.values import Sources

_CONFIG_MODE: Final = 0o644
_HOST_PATHS_TO_MAKE: Final = {"DirectoryOrCreate"}


@dataclass(frozen=True)
class File:
    """A file of a volume."""

    content: bytes
    mode: int = _CONFIG_MODE


@dataclass(frozen=True)
class Volume:
    """A folder that stands for a volume."""

    source: Path
    files: Mapping[str, File] = field(default_factory=dict)
    """By path below the folder."""
    make: bool = True
    """Whether to make the folder; a path of the machine's own may have to be there already."""
    theirs: bool = False
    """Whether it is for the containers to write to, as whatever user they run."""


@dataclass(frozen=True)
class Mount:
    """A volume, or a part of it, as a container sees it."""

    source: Path
    path: str
    read_only: bool = False


def volumes_of(pod: Tree, work: Path, claims: Iterable[str], sources: Sources) -> dict[str, Volume]:
    """Return the volumes of a pod by name.

    Raises:
        InvalidError: one cannot be had here.
    """
    own = work / "pods" / pod["metadata"]["name"] / "volumes"
    found = {name: Volume(work / "claims" / name, theirs=True) for name in claims}
    for entry in pod["spec"].get("volumes") or ():
        found[entry["name"]] = _volume(entry, own / entry["name"], pod, sources)
    return found


def mounts_of(container: Tree, volumes: Mapping[str, Volume], place: str) -> list[Mount]:
    """Return what a container mounts.

    Raises:
        InvalidError: it names a volume that the pod does not have.
    """
    mounts = []
    for entry in container.get("volumeMounts") or ():
        name = entry["name"]
        if name not in volumes:
            raise InvalidError(f"{place}.volumeMounts: the pod has no volume {name}: add it to the runtime's volumes")
        source = volumes[name].source
        if entry.get("subPath"):
            source = source / entry["subPath"]
        mounts.append(Mount(source, str(PurePosixPath(entry["mountPath"])), bool(entry.get("readOnly"))))
    return mounts


def make(volumes: Iterable[Volume], translate: Callable[[str], str]) -> None:
    """Make the folders and write the files; `translate` puts this machine's addresses and paths into texts."""
    for volume in volumes:
        if volume.make and not volume.source.exists():
            volume.source.mkdir(parents=True, exist_ok=True)
            if volume.theirs:
                volume.source.chmod(0o777)  # others of this machine do not get as far as here
        for path, file in volume.files.items():
            target = volume.source / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            target.touch(file.mode | 0o200)
            target.write_bytes(_translated(file.content, translate))
            target.chmod(file.mode)


def _translated(content: bytes, translate: Callable[[str], str]) -> bytes:
    try:
        return translate(content.decode()).encode()
    except UnicodeDecodeError:
        return content


def _volume(entry: Tree, folder: Path, pod: Tree, sources: Sources) -> Volume:
    name = entry["name"]
    place = f"volumes[name={name}]"
    if "emptyDir" in entry or "ephemeral" in entry or len(entry) == 1:
        return Volume(folder, theirs=True)
    if "hostPath" in entry:
        path = entry["hostPath"]
        return Volume(Path(path["path"]), make=path.get("type") in _HOST_PATHS_TO_MAKE)
    if "configMap" in entry or "secret" in entry:
        return Volume(folder, dict(_files(entry, place, sources)))
    if "projected" in entry:
        return Volume(folder, dict(_projected(entry["projected"], place, pod, sources)))
    if "downwardAPI" in entry:
        return Volume(folder, dict(_fields(entry["downwardAPI"].get("items") or (), place, pod)))
    kinds = ", ".join(sorted(entry.keys() - {"name"}))
    raise InvalidError(
        f"{place}: {kinds} is a volume of a cluster, and this runs on your machine: patch the runtime with a hostPath "
        "of the same name, or use the Kubernetes backend"
    )


def _files(entry: Tree, place: str, sources: Sources) -> Iterator[tuple[str, File]]:
    """Yield the files of a ConfigMap or a Secret, whole or by `items`."""
    data: Mapping[str, str | bytes]
    if "configMap" in entry:
        source = entry["configMap"]
        data = sources.config_map(source["name"], f"{place}.configMap", optional=bool(source.get("optional")))
    else:
        source = entry["secret"]
        name = source.get("secretName") or source.get("name", "")
        data = sources.secret(name, f"{place}.secret", optional=bool(source.get("optional")))
    mode = source.get("defaultMode") or _CONFIG_MODE
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    for item in items:
        if item["key"] not in data:
            raise InvalidError(f"{place}: there is no key {item['key']} in it")
        value = data[item["key"]]
        yield item["path"], File(value if isinstance(value, bytes) else value.encode(), item.get("mode") or mode)


def _projected(projected: Tree, place: str, pod: Tree, sources: Sources) -> Iterator[tuple[str, File]]:
    for source in projected.get("sources") or ():
        if "downwardAPI" in source:
            yield from _fields(source["downwardAPI"].get("items") or (), place, pod)
        elif "configMap" in source or "secret" in source:
            yield from _files(source, place, sources)
        else:
            raise InvalidError(f"{place}: {', '.join(source)} comes from a cluster: use the Kubernetes backend for it")


def _fields(items: Iterable[Tree], place: str, pod: Tree) -> Iterator[tuple[str, File]]:
    for item in items:
        path = (item.get("fieldRef") or {}).get("fieldPath", "")
        yield item["path"], File(field_of(path, pod, place).encode())
