from __future__ import annotations

from collections import deque

import msgspec
import pytest

from tests.unit.operator.objects import runtime
from tests.unit.operator.world import DONE, World
from trainplane.api.trainjob import RuntimeRef
from trainplane.kube.errors import ConflictError, NotFoundError
from trainplane.kube.resource import Key
from trainplane.operator.errors import RuntimeUnsupportedError, SnapshotError
from trainplane.operator.runtimes import FinalizerRemover
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, resource_of

REF = RuntimeRef(name="torch")
IN_USE = "trainer.kubeflow.org/resource-in-use"


async def test_a_runtime_is_decoded_once_per_version() -> None:
    world = World().with_runtime()
    world.sync()
    first = await world.runtimes.find(REF, "team")
    assert first is not None
    assert await world.runtimes.find(REF, "other") is first
    assert first.text is first.text
    world.with_runtime(image="img:2")
    world.sync()
    second = await world.runtimes.find(REF, "team")
    assert second is not first
    assert world.client.asked == []


async def test_a_runtime_is_decoded_anew_where_a_restored_server_gave_its_version_twice() -> None:
    world = World().with_runtime()
    world.sync()
    first = await world.runtimes.find(REF, "team")
    store = world.stores.cluster_training_runtimes
    text = store.get(Key("", "torch"))
    assert text is not None
    other = store.read(msgspec.Raw(text.replace(b'"img:1"', b'"img:2"')))
    assert [change.type for change in store.put(other, compare=True)] == ["MODIFIED"]
    second = await world.runtimes.find(REF, "team")
    assert first is not None
    assert second is not None
    assert second.text != first.text


async def test_a_runtime_that_nobody_knows() -> None:
    world = World()
    assert await world.runtimes.find(REF, "team") is None
    assert [str(one) for one in world.client.asked] == ["get clustertrainingruntimes torch"]


async def test_a_runtime_that_was_deleted_is_not_remembered() -> None:
    world = World().with_runtime()
    world.sync()
    await world.runtimes.find(REF, "team")
    world.delete(CLUSTER_TRAINING_RUNTIMES, "torch", "")
    world.sync()
    assert await world.runtimes.find(REF, "team") is None


@pytest.mark.parametrize("ref", [RuntimeRef(name="x", kind="Job"), RuntimeRef(name="x", api_group="batch")])
async def test_what_is_no_kind_of_runtime(ref: RuntimeRef) -> None:
    with pytest.raises(RuntimeUnsupportedError, match="is no kind of runtime"):
        await World().runtimes.find(ref, "team")


async def test_a_runtime_with_a_field_of_another_type() -> None:
    world = World()
    world.put(CLUSTER_TRAINING_RUNTIMES, {**runtime(), "spec": {"mlPolicy": {"numNodes": "two"}}})
    world.sync()
    with pytest.raises(SnapshotError, match=r"spec\.mlPolicy\.numNodes"):
        await world.runtimes.find(REF, "team")


def remover(world: World) -> FinalizerRemover:
    world.sync()
    return FinalizerRemover(world.writer, world.stores.cluster_training_runtimes)


async def test_the_old_finalizer_goes_and_others_stay() -> None:
    world = World().with_runtime(finalizers=[IN_USE, "example.com/mine"])
    assert await remover(world).reconcile(Key("", "torch")) == DONE
    found = world.find(CLUSTER_TRAINING_RUNTIMES, "torch", "")
    assert found is not None
    assert found["metadata"]["finalizers"] == ["example.com/mine"]
    assert await remover(world).reconcile(Key("", "torch")) == DONE
    assert world.client.writes == ["patch clustertrainingruntimes torch"]


async def test_a_runtime_without_it_is_left_alone() -> None:
    world = World().with_runtime()
    assert await remover(world).reconcile(Key("", "torch")) == DONE
    assert await remover(world).reconcile(Key("", "ghost")) == DONE
    assert world.client.writes == []


async def test_a_runtime_that_changed_meanwhile_is_tried_again() -> None:
    world = World().with_runtime(finalizers=[IN_USE])
    stale = remover(world)
    world.with_runtime(finalizers=[IN_USE, "example.com/new"])
    with pytest.raises(ConflictError):
        await stale.reconcile(Key("", "torch"))
    world.client.refuse["patch clustertrainingruntimes"] = deque([NotFoundError("gone")])
    assert await remover(world).reconcile(Key("", "torch")) == DONE


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "Secret", "/api/v1/secrets"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"),
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"),
        ("networking.k8s.io/v1", "NetworkPolicy", "/apis/networking.k8s.io/v1/networkpolicies"),
        ("networking.k8s.io/v1", "Ingress", "/apis/networking.k8s.io/v1/ingresses"),
    ],
)
def test_where_rendered_objects_live(api_version: str, kind: str, path: str) -> None:
    assert resource_of({"apiVersion": api_version, "kind": kind}).path() == path
