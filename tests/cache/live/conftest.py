"""A cluster with a node, our operator, our image of the cache, Kueue and an S3 server, and a namespace in it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lab import kueue, node, profiles, trainplane
from lab.images import trainplane as images
from tests.e2e.user import User
from tests.initializers.chain.store import KEY, SECRET, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

QUEUE = "trainings"


def _install(cluster: Cluster) -> None:
    trainplane.install_crds(cluster)
    kueue.install(cluster, frameworks=("trainer.kubeflow.org/trainjob",))
    # Called before Kueue's webhooks, as in a real cluster: their names decide.
    settings: dict[str, Any] = {"cache": {"image": images.name("cache")}}
    trainplane.install(cluster, with_crds=False, prefix="a", settings=settings)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with profiles.node_with(_install, "cache") as cluster:
        node.give(cluster, "cache")
        yield cluster


@pytest.fixture(scope="session")
def bucket(cluster: Cluster) -> Store:
    return Store.start(cluster)


@pytest.fixture(scope="session")
def user(cluster: Cluster, bucket: Store) -> Iterator[User]:
    """Return a user with a queue, and the bucket's keys in a Secret."""
    user = User(cluster, f"cache-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    keys = {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "ENDPOINT": bucket.endpoint, "REGION": "us-east-1"}
    user.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket"}, "stringData": keys})
    cluster.apply(*kueue.queue(QUEUE, user.namespace, cpu="8", memory="64Gi"))
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")
