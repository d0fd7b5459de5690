"""The synchronous face on the real API server: what a script or a notebook does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.kube.support import CONFIGMAPS, configmap
from trainplane.kube.codec import decode
from trainplane.kube.errors import AlreadyExistsError, NotFoundError
from trainplane.kube.loading import load_config
from trainplane.kube.sync import SyncClient

if TYPE_CHECKING:
    from lab.cluster import Cluster


def test_verbs_lists_and_watches_without_await(cluster: Cluster, namespace: str) -> None:
    # Every namespace gets one a moment after it is made, which must not come between two lists.
    cluster.kubectl("wait", "--for=create", "--timeout=120s", "configmap/kube-root-ca.crt", "-n", namespace)
    with SyncClient.connect(load_config(cluster.kubeconfig)) as client:
        made = client.create(CONFIGMAPS, configmap("a", namespace, x="1"))
        with pytest.raises(AlreadyExistsError):
            client.create(CONFIGMAPS, configmap("a", namespace))
        client.apply(CONFIGMAPS, configmap("b", namespace, x="2"))
        client.patch(CONFIGMAPS, "b", {"data": {"x": "3"}}, namespace)
        names = [item["metadata"]["name"] for item in client.list_all(CONFIGMAPS, namespace)]
        assert {"a", "b"} <= set(names)
        pages = list(client.list_pages(CONFIGMAPS, namespace, limit=1))
        assert [len(page.items) for page in pages] == [1] * len(names)
        news = client.watch(
            CONFIGMAPS, namespace, resource_version=made["metadata"]["resourceVersion"], fields={"metadata.name": "b"}
        )
        changes = [next(news) for _ in range(2)]
        news.close()
        assert [decode(event.object, dict)["data"]["x"] for event in changes] == ["2", "3"]
        client.delete(CONFIGMAPS, "a", namespace)
        with pytest.raises(NotFoundError):
            client.get(CONFIGMAPS, "a", namespace)
        client.delete_collection(CONFIGMAPS, namespace)
        assert "b" not in [item["metadata"]["name"] for item in client.list_all(CONFIGMAPS, namespace)]
