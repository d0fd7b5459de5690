"""The hub's API among the cluster's own: what happens to everybody else while it is away."""

from __future__ import annotations

import signal
import uuid
from typing import TYPE_CHECKING

import pytest

from lab import hub, trainplane
from lab.cluster import Cluster
from tests.integration.operator.test_operator import until

if TYPE_CHECKING:
    from collections.abc import Iterator

FINDING = ("hub-and-sdk", 2, "while the hub server was down, no namespace of the hub could be deleted")
VIEW = "/apis/hub.trainplane.dev/v1alpha1/namespaces/default/trainjobs"


@pytest.fixture(scope="module")
def fronted() -> Iterator[Cluster]:
    """Return a cluster with the hub server, one owner behind two fronts; it has no Kueue."""
    cluster = Cluster.up(f"fronted-{uuid.uuid4().hex[:6]}", owned=True)
    try:
        trainplane.install_crds(cluster)
        hub.install(cluster, *hub.front_flags())
        hub.install_fronts(cluster)
        until(lambda: _answers(cluster), "the view, through a front")
        yield cluster
    finally:
        cluster.down()


def _answers(cluster: Cluster) -> bool:
    return cluster.kubectl("get", "--raw", VIEW, check=False).code == 0


def _delete_a_namespace(cluster: Cluster) -> None:
    """Make a namespace and delete it; what is in its way would be said in its conditions."""
    name = f"gone-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")

    def gone() -> bool:
        found = cluster.kubectl("get", "namespace", name, "-o", "json", "--ignore-not-found").stdout.strip()
        return not found

    until(gone, f"namespace {name} is gone")


@pytest.mark.finding(*FINDING)
def test_the_owner_away_harms_nobody(fronted: Cluster) -> None:
    fronted.kill(hub.ENGINE)
    refused = fronted.kubectl("get", "--raw", VIEW, check=False)
    assert refused.code != 0
    assert "away for the moment" in refused.stderr
    _delete_a_namespace(fronted)
    assert hub.is_available(fronted)
    fronted.revive(hub.ENGINE)
    until(lambda: _answers(fronted), "the view, with the owner back")


@pytest.mark.finding(*FINDING)
def test_a_rolling_upgrade_of_the_fronts_harms_nobody(fronted: Cluster) -> None:
    for name in (f"{hub.FRONT}-1", f"{hub.FRONT}-2"):
        fronted.kill(name, signal.SIGTERM)
        _delete_a_namespace(fronted)
        fronted.revive(name)
        number = int(name.rpartition("-")[2])
        fronted.wait_http(name, hub.PORT + number, tls=fronted.address)
    assert hub.is_available(fronted)


@pytest.mark.finding(*FINDING)
def test_all_of_them_away_is_what_the_page_says(fronted: Cluster) -> None:
    engines = (hub.ENGINE, f"{hub.FRONT}-1", f"{hub.FRONT}-2")
    for name in engines:
        fronted.kill(name)
    name = f"waits-{uuid.uuid4().hex[:6]}"
    fronted.kubectl("create", "namespace", name)
    until(lambda: not hub.is_available(fronted), "the API server notices")
    fronted.kubectl("delete", "namespace", name, "--wait=false")

    def waits() -> bool:
        said = fronted.kubectl("get", "namespace", name, "-o", "json", "--ignore-not-found").stdout
        return "DiscoveryFailed" in said

    until(waits, "the namespace says what it waits for")
    for each in engines:
        fronted.revive(each)
    until(
        lambda: not fronted.kubectl("get", "namespace", name, "--ignore-not-found").stdout.strip(),
        "the namespace is gone",
        180,
    )
