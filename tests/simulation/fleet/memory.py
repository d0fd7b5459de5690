"""What the hub server must know at last: what is there, and nothing of what is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.fleet.history import HUB
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.fleet.judge import FleetJudge
    from trainplane.hub.logarchive.mirror import Mirror
    from trainplane.hub.main import Hub
    from trainplane.kube.reflector import Reflector
    from trainplane.kube.testing.storage import Tree

_PODS = collection_of(PODS)


def judge_memory(court: FleetJudge, hub: Hub) -> None:
    """Judge what a hub server remembers; `court` notes what is broken."""
    jobs = court.clusters[HUB].server.storage.objects.get(TRAINJOBS, {})
    _same(court, HUB, hub.jobs.reflectors)
    _within(court, "jobs by uid", hub.jobs._by_uid, (one["metadata"]["uid"] for one in jobs.values()))
    pods: set[str] = set()
    for name, cluster in court.clusters.items():
        there = {one["metadata"]["uid"] for one in cluster.server.storage.objects.get(_PODS, {}).values()}
        pods |= there
        mirror = hub.collector.mirrors.get("" if name == HUB else name)
        if mirror is None:
            court.broken("mirrors end equal", f"the hub server has none of {name}")
            continue
        _mirror(court, name, mirror, there)
        claims = hub.collector._claims[mirror.name]
        if claims._waiting or claims._again:
            court.broken("nothing is stuck", f"pods of {name} are still judged: {claims._waiting or claims._again}")
    _within(court, "followers", {uid for uid, _ in hub.collector._followers}, pods)
    _within(court, "workers that are gone", hub.collector._removed, ())


def _mirror(court: FleetJudge, name: str, mirror: Mirror, pods: set[str]) -> None:
    _same(court, name, mirror.reflectors)
    _within(court, f"pods of {name}", mirror.accepted, pods)
    if mirror.former is not None:
        court.broken("memory is back", f"the former mirror of {name} is still shown")
    if mirror.copies is not None:
        copies = court.clusters[name].server.storage.objects.get(TRAINJOBS, {})
        _within(court, f"copies of {name}", mirror.copies._read, copies)


def _same(court: FleetJudge, name: str, reflectors: Iterable[Reflector]) -> None:
    objects = court.clusters[name].server.storage.objects
    for reflector in reflectors:
        truth = {key: _version(one) for key, one in objects.get(collection_of(reflector.resource), {}).items()}
        seen = {key: str(reflector.store.resource_version(key)) for key in reflector.store}
        if seen != truth:
            odd = sorted(set(seen.items()) ^ set(truth.items()))[:3]
            court.broken("mirrors end equal", f"the hub server, {reflector.resource.plural} of {name}: {odd}")


def _version(one: Tree) -> str:
    return str(one["metadata"]["resourceVersion"])


def _within(court: FleetJudge, what: str, remembered: Iterable[object], there: Iterable[object]) -> None:
    left = set(remembered) - set(there)
    if left:
        court.broken("memory is back", f"the hub server remembers {what}: {sorted(map(str, left))[:3]}")
