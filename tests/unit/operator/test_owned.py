"""The mirrors of what TrainJobs own: what is kept, of what is sent, whatever is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from trainplane.kube.resource import Key, Resource
from trainplane.operator.owned import POD_GROUPS, OwnedMirrors, row
from trainplane.resources import CONFIG_MAPS, SECRETS, SERVICES

if TYPE_CHECKING:
    from trainplane.kube.store import Store

OWNER = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "name": "job",
    "uid": "uid-job",
    "controller": True,
}
SNAPSHOT = "job-runtime-snapshot"


def mirror(mirrors: OwnedMirrors, resource: Resource = CONFIG_MAPS) -> Store:
    (found,) = [store for store in mirrors.all() if store.resource == resource]
    return found


def send(store: Store, name: str = SNAPSHOT, version: int = 5, **meta: Any) -> None:
    metadata = {"name": name, "namespace": "team", "uid": "u", "resourceVersion": str(version), **meta}
    tree = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    store.put(store.read(msgspec.Raw(msgspec.json.encode(tree))))


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (CONFIG_MAPS, SNAPSHOT),
        (CONFIG_MAPS, "job-mpi-hostfile"),
        (CONFIG_MAPS, "job-flux-entrypoint"),
        (CONFIG_MAPS, "job-trainplane-code"),
        (POD_GROUPS[0], "job"),
        (POD_GROUPS[1], "job"),
        (SERVICES, "job-cache-service"),
    ],
)
def test_what_a_trainjob_controls_under_a_name_of_ours_is_kept(resource: Resource, name: str) -> None:
    store = mirror(OwnedMirrors(), resource)
    send(store, name, ownerReferences=[OWNER], generation=3)
    entry = store.entry(Key("team", name))
    assert entry is not None
    assert (row(entry).owner, row(entry).uid) == ("job", "uid-job")
    assert row(entry).version == (3 if resource in POD_GROUPS else 5)


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"ownerReferences": None},
        {"ownerReferences": []},
        {"ownerReferences": [{**OWNER, "controller": False}]},
        {"ownerReferences": [{**OWNER, "controller": None}]},
        {"ownerReferences": [{**OWNER, "kind": "JobSet"}]},
        {"ownerReferences": [{**OWNER, "apiVersion": "kubeflow.org/v2alpha1"}]},
        {"ownerReferences": [{**OWNER, "name": "another"}]},
        {"name": "job-history", "ownerReferences": [OWNER]},
        {"name": "job", "ownerReferences": [OWNER]},
        {"ownerReferences": "job"},
        {"ownerReferences": [{"name": 5}]},
        {"ownerReferences": [OWNER], "generation": "many"},
    ],
    ids=str,
)
def test_everything_else_leaves_no_trace(meta: dict[str, Any]) -> None:
    store = mirror(OwnedMirrors())
    send(store, **{"name": SNAPSHOT, **meta})
    assert len(store) == 0


def test_secrets_are_not_mirrored() -> None:
    assert SECRETS not in {store.resource for store in OwnedMirrors().all()}


def test_nothing_is_missed_before_a_list_has_ended() -> None:
    mirrors = OwnedMirrors()
    store, key = mirror(mirrors), Key("team", SNAPSHOT)
    assert not mirrors.lacks(CONFIG_MAPS, key, "uid-job")
    store.observed = 7
    assert mirrors.lacks(CONFIG_MAPS, key, "uid-job")
    send(store, ownerReferences=[OWNER])
    assert not mirrors.lacks(CONFIG_MAPS, key, "uid-job")
    assert mirrors.lacks(CONFIG_MAPS, key, "uid-of-its-namesake")
    assert not mirrors.lacks(SECRETS, key, "uid-job"), "what is not watched is not missed"
