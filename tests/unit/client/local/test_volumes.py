from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.local.documents import job, pod
from trainplane.client.backends.local.values import Sources
from trainplane.client.backends.local.volumes import make, mounts_of, volumes_of
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = Sources({"m": {"hosts": "a-node-0-0\n", "b": "2"}}, {"s": {"key": b"\xff"}})


def with_volumes(*volumes: dict[str, Any]) -> dict[str, Any]:
    document = pod()
    document["spec"]["volumes"] = list(volumes)
    return document


def test_volumes_are_folders_with_files(tmp_path: Path) -> None:
    document = with_volumes(
        {"name": "empty", "emptyDir": {}},
        {"name": "map", "configMap": {"name": "m"}},
        {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "host", "hostPath": {"path": str(tmp_path / "host"), "type": "DirectoryOrCreate"}},
        {"name": "down", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {
            "name": "all",
            "projected": {"sources": [{"configMap": {"name": "m", "items": [{"key": "b", "path": "x/b"}]}}]},
        },
    )
    found = volumes_of(document, tmp_path / "work", ["claim"], SOURCES)
    make(found.values(), lambda text: text.replace("a-node-0-0\n", "127.0.0.1\n"))
    own = tmp_path / "work/pods/a-node-0-0-x/volumes"
    assert (own / "map/hosts").read_text() == "127.0.0.1\n"
    assert (own / "secret/key").read_bytes() == b"\xff"
    assert (own / "secret/key").stat().st_mode & 0o777 == 0o400
    assert (own / "down/name").read_text() == "a-node-0-0-x"
    assert (own / "all/x/b").read_text() == "2"
    assert (tmp_path / "work/claims/claim").is_dir()
    assert (tmp_path / "host").is_dir()
    for theirs in (own / "empty", tmp_path / "work/claims/claim"):
        assert theirs.stat().st_mode & 0o777 == 0o777, "a container's user may be any"
    for ours in (own / "map", own / "secret", tmp_path / "host"):
        assert not ours.stat().st_mode & 0o022
    make(found.values(), str)  # a second time, over what is there


def test_mounts_may_be_parts_of_volumes(tmp_path: Path) -> None:
    found = volumes_of(with_volumes({"name": "v", "emptyDir": {}}), tmp_path, [], SOURCES)
    container = {"volumeMounts": [{"name": "v", "mountPath": "/a/", "subPath": "part", "readOnly": True}]}
    (mount,) = mounts_of(container, found, "here")
    assert (mount.source, mount.path, mount.read_only) == (found["v"].source / "part", "/a", True)
    with pytest.raises(InvalidError, match="the pod has no volume w"):
        mounts_of({"volumeMounts": [{"name": "w", "mountPath": "/"}]}, found, "here")


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, r"volumes\[name=v\]: persistentVolumeClaim .* hostPath"),
        ({"nfs": {"server": "s"}}, "nfs is a volume of a cluster"),
        ({"configMap": {"name": "no"}}, "ConfigMap no is in a cluster"),
        ({"secret": {"secretName": "no"}}, "there is no Secret no"),
        ({"configMap": {"name": "m", "items": [{"key": "no", "path": "p"}]}}, "there is no key no"),
        ({"projected": {"sources": [{"serviceAccountToken": {}}]}}, "serviceAccountToken comes from a cluster"),
    ],
)
def test_what_another_machine_has_is_refused(tmp_path: Path, volume: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        volumes_of(with_volumes({"name": "v", **volume}), tmp_path, [], SOURCES)


def test_a_pod_without_volumes_has_those_of_its_job(tmp_path: Path) -> None:
    assert job()
    assert set(volumes_of(pod(), tmp_path, ["shared"], SOURCES)) == {"shared"}
