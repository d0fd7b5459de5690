"""The fleet check on a fleet in which something is wrong: each lack is found and named."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.fleet import objects
from tests.fleet.check.command import Said, check, run, sync
from tests.fleet.team import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.fleet import Fleet
    from tests.fleet.api import Api
    from tests.fleet.team import MakeTeam, Team

Tree = dict[str, Any]

NAMED = {
    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}],
}


class Spoilt:
    """A team whose workers lack one thing each, and what names the lacks."""

    def __init__(self, team: Team, elsewhere: Team) -> None:
        self.team = team
        self.elsewhere = elsewhere
        self.missing, self.different, self.urgent, self.high = (
            f"{team.namespace}-{word}" for word in ("missing", "different", "urgent", "high")
        )

    def spoil(self) -> None:
        hub, worker1, worker2 = (self.team.api(name) for name in ("hub", "worker1", "worker2"))
        namespace = self.team.namespace
        different = objects.runtime(self.different)
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": self.urgent}}
        hub.apply(different, self._runtime(), objects.namespaced(objects.runtime("mine"), namespace))
        hub.apply(objects.priority_class(self.high, 10), priority | {"value": 7})
        worker1.apply(objects.runtime(self.different, image="registry.invalid/train:2"))
        worker2.apply(different, priority | {"value": 7}, objects.priority_class(self.high, 5))
        worker2.delete("localqueues", namespace, objects.QUEUE)

    def repair(self) -> None:
        namespace = self.team.namespace
        worker1, worker2 = self.team.api("worker1"), self.team.api("worker2")
        worker2.apply(objects.local_queue(namespace), objects.namespace(self.elsewhere.namespace))
        worker2.apply(objects.local_queue(self.elsewhere.namespace), objects.priority_class(self.high, 10))
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": self.urgent}}
        worker1.apply(objects.priority_class(self.high, 10), priority | {"value": 7})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hugging-face", "namespace": namespace}}
        for api in (worker1, worker2):
            api.apply(secret)
        for name in (namespace, self.elsewhere.namespace):
            wait_until(f"the queue of {name}", partial(self._is_active, worker2, name), log=self.team.fleet.hub)

    def remove(self) -> None:
        for api in (self.team.api(name) for name in ("hub", "worker1", "worker2")):
            for name in (self.missing, self.different):
                api.delete("clustertrainingruntimes", "", name)
            api.delete("priorityclasses", "", self.urgent)
            api.delete("workloadpriorityclasses", "", self.high)

    def job(self, *, nodes: int = 1) -> str:
        """Return the manifest of a TrainJob that names what workers may lack."""
        tree = objects.train_job("tune", self.team.namespace, runtime=self.missing, nodes=nodes)
        tree["spec"]["trainer"] |= NAMED
        tree["metadata"]["labels"][objects.PRIORITY_LABEL] = self.high
        return yaml.safe_dump(tree)

    def _runtime(self) -> Tree:
        tree = objects.runtime(self.missing)
        job = tree["spec"]["template"]["spec"]["replicatedJobs"][0]
        job["template"]["spec"]["template"]["spec"]["priorityClassName"] = self.urgent
        return tree

    @staticmethod
    def _is_active(api: Api, namespace: str) -> bool:
        queue = api.get("localqueues", namespace, objects.QUEUE) or {}
        conditions = (queue.get("status") or {}).get("conditions") or []
        return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)


@pytest.fixture
def spoilt(team: MakeTeam) -> Iterator[Spoilt]:
    spoilt = Spoilt(team(quotas={"worker2": {"cpu": "2"}}), team(absent=("worker2",)))
    try:
        spoilt.spoil()
        yield spoilt
    finally:
        spoilt.remove()


def test_every_lack_is_named_sync_mends_the_runtimes_and_then_nothing_is_left(fleet: Fleet, spoilt: Spoilt) -> None:
    said = check(fleet, "--trainjob", "-", stdin=spoilt.job(nodes=3))
    assert said.code == 1
    _assert_named(said, spoilt)
    _sync(fleet, spoilt)
    spoilt.repair()
    said = check(fleet, "--trainjob", "-", stdin=spoilt.job())
    for name in (spoilt.team.namespace, spoilt.elsewhere.namespace, "TrainJob"):
        for cluster in ("hub", "worker1", "worker2"):
            assert said.about(cluster, name) == []
    result = run(fleet, "check")
    assert "✓ versions" in result.stdout
    assert "\033" not in result.stdout


def _assert_named(said: Said, spoilt: Spoilt) -> None:
    namespace, away = spoilt.team.namespace, spoilt.elsewhere.namespace
    assert said.problems("worker1", "runtimes", f"{spoilt.missing} ")[0][0] == "stops"
    ((level, text),) = said.problems("worker1", "runtimes", spoilt.different)
    assert level == "stops"
    assert "differs from the hub's" in text
    assert said.problems("worker2", "runtimes", spoilt.different) == []
    for worker in ("worker1", "worker2"):
        ((level, text),) = said.problems(worker, "runtimes", f"{namespace}/mine")
        assert text.startswith("TrainingRuntime")
        ((level, text),) = said.problems(worker, "trainjob", "hugging-face")
        assert (level, text.split(", named")[0]) == ("stops", "Secret hugging-face")
    assert said.problems("worker2", "namespaces", away) == [("stops", f"namespace {away} does not exist here")]
    assert said.problems("worker1", "namespaces", away) == []
    ((level, text),) = said.problems("worker2", "queues", namespace)
    assert (level, text) == ("stops", f"LocalQueue {namespace}/{objects.QUEUE} does not exist here")
    assert said.problems("worker1", "queues", namespace) == []
    assert said.problems("worker1", "priorities", f"WorkloadPriorityClass {spoilt.high} does not exist")
    assert said.problems("worker2", "priorities", f"WorkloadPriorityClass {spoilt.high} has value 5 here and 10")
    ((level, text),) = said.problems("worker1", "priorities", f"PriorityClass {spoilt.urgent}")
    assert level == "stops"
    ((level, text),) = said.problems("worker1", "trainjob", f"PriorityClass {spoilt.urgent}")
    assert level == "stops"


def _sync(fleet: Fleet, spoilt: Spoilt) -> None:
    mine = {spoilt.missing, spoilt.different, "mine"}

    def steps(tree: Tree) -> dict[tuple[str, str], str]:
        found = {(one["worker"], one["name"]): one["verb"] for one in tree["steps"] if one["name"] in mine}
        assert all(one["diff"] for one in tree["steps"])
        return found

    expected = {
        ("worker1", spoilt.missing): "create",
        ("worker1", spoilt.different): "update",
        ("worker1", "mine"): "create",
        ("worker2", spoilt.missing): "create",
        ("worker2", "mine"): "create",
    }
    code, tree = sync(fleet)
    assert (code, steps(tree)) == (1, expected)
    assert spoilt.team.api("worker1").get("clustertrainingruntimes", "", spoilt.missing) is None
    code, tree = sync(fleet, "--apply")
    assert steps(tree) == expected
    assert all(one["done"] for one in tree["steps"] if one["name"] in mine), tree
    made = spoilt.team.api("worker1").get("clustertrainingruntimes", "", spoilt.missing)
    assert made is not None
    assert made["metadata"]["labels"]["hub.trainplane.dev/made-by-sync"] == "true"
    spoilt.team.api("hub").delete("clustertrainingruntimes", "", spoilt.different)
    _, tree = sync(fleet, "--apply", "--prune")
    assert steps(tree) == {}
    kept = spoilt.team.api("worker1").get("clustertrainingruntimes", "", spoilt.different)
    assert kept is not None
    spoilt.team.api("hub").apply(objects.runtime(spoilt.different))


def test_quota_that_can_never_hold_a_job_is_said_of_that_worker(fleet: Fleet, team: MakeTeam) -> None:
    small = team(quotas={"worker2": {"cpu": "2"}})
    job = objects.train_job("large", small.namespace, nodes=3, cpu="1")
    said = check(fleet, "--trainjob", "-", stdin=yaml.safe_dump(job))
    assert said.problems("worker1", "trainjob") == []
    ((level, text),) = said.problems("worker2", "trainjob")
    assert level == "stops"
    assert f"ClusterQueue {small.namespace} can never give more than 2 cpu" in text
    job["spec"]["trainer"]["resourcesPerNode"]["requests"]["example.com/tpu"] = 1
    said = check(fleet, "--trainjob", "-", stdin=yaml.safe_dump(job))
    for worker in ("worker1", "worker2"):
        assert any("no quota for example.com/tpu" in text for _, text in said.problems(worker, "trainjob"))


def test_a_worker_that_is_cut_off_is_named_and_the_other_is_judged(fleet: Fleet) -> None:
    worker = fleet.workers[1]
    fleet.cut(worker)
    try:
        said = check(fleet, "--timeout", "10")  # for those that answer: the machine may be busy
    finally:
        fleet.mend(worker)
    (silence, *_) = said.problems("worker2", "connection")
    assert silence[0] == "stops"
    assert silence[1].startswith(f"https://{worker.address}:{worker.port} does not answer")
    assert said.problems("worker1", "connection") == []
    assert said.problems("worker1", "credentials") == []
    fleet.wait_connected(seconds=120)


def test_a_train_job_that_is_not_there_ends_the_command(fleet: Fleet) -> None:
    result = run(fleet, "check", "--trainjob", "default/none")
    assert result.code == 2
    assert "there is no TrainJob 'none' in namespace 'default' of the hub" in result.stderr
