"""Models of what stops pods: the pod failure policy, rules of a JobSet, kubelets, deletion in the foreground."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.simulation import job, jobset
from tests.simulation.apiserver import JOBSETS, ApiServer, Record
from tests.simulation.disruptions import Disruptions, disrupted
from tests.simulation.engines import JOBS, Engines
from tests.simulation.history import draw
from tests.simulation.kubelet import Kubelet
from tests.simulation.loop import VirtualClock, VirtualLoop
from tests.simulation.people import (
    FAIL_WHEN_DISRUPTED,
    NAMESPACE,
    PODS_NOTE,
    RESTART_WHEN_DISRUPTED,
    RUNTIME_SPECS,
    runtime,
    train_job,
)
from tests.simulation.stops import STOPPED, STOPS
from trainplane.kube.errors import ConflictError
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import Asking, Target, collection_of
from trainplane.resources import JOB_SETS, PODS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.kube.testing.storage import Tree

NOW = "2026-01-01T00:01:00Z"
PATH = Key(NAMESPACE, "a")


def _pod(index: int, phase: str, *, gone: bool = False, tracked: bool = True) -> Tree:
    meta: Tree = {"name": f"a-{index}", "namespace": "team", "uid": f"{index} {phase}", "labels": {}}
    meta["labels"]["batch.kubernetes.io/job-completion-index"] = str(index)
    meta["finalizers"] = [job.TRACKED] if tracked else []
    if gone:
        meta["deletionTimestamp"] = NOW
    return {"metadata": meta, "spec": {}, "status": {"phase": phase, "conditions": []}}


def _job(*, suspend: bool = False) -> Tree:
    spec = {"suspend": suspend, "completions": 2, "backoffLimit": 0, "podFailurePolicy": FAIL_WHEN_DISRUPTED}
    return {"metadata": {"name": "a", "namespace": "team"}, "spec": spec}


@pytest.mark.parametrize("suspend", [False, True])
@pytest.mark.parametrize("tracked", [False, True])
def test_job_with_disrupted_failed_pod_fails_by_its_policy(suspend: bool, tracked: bool) -> None:
    pods = [disrupted(_pod(0, "Failed", gone=True, tracked=tracked), "EvictionByEvictionAPI", NOW)]
    failure = jobset.condition(job.judge(_job(suspend=suspend), pods, NOW).job, "Failed")
    assert failure is not None
    assert failure["reason"] == "PodFailurePolicy"
    assert "has condition DisruptionTarget" in failure["message"]


def test_job_with_disrupted_running_pod_does_not_fail_yet() -> None:
    pods = [disrupted(_pod(0, "Running", gone=True), "EvictionByEvictionAPI", NOW), _pod(1, "Running")]
    after = job.judge(_job(), pods, NOW).job
    assert not jobset.finish(after)
    assert after["status"]["failed"] == 0


def test_job_whose_failing_pods_are_gone_keeps_its_cause() -> None:
    failed = disrupted(_pod(0, "Failed"), "EvictionByEvictionAPI", NOW)
    waiting = job.judge(_job(), [failed, _pod(1, "Running")], NOW)
    assert not jobset.finish(waiting.job)
    assert [one["metadata"]["name"] for one in waiting.drop] == ["a-1"]
    failure = jobset.condition(job.judge(waiting.job, [], NOW).job, "Failed")
    assert failure is not None
    assert failure["reason"] == "PodFailurePolicy"


def test_job_with_leaving_pods_replaces_them_when_they_have_left() -> None:
    leaving = [_pod(0, "Running", gone=True, tracked=False), _pod(1, "Running", gone=True, tracked=False)]
    assert not job.judge(_job(), leaving, NOW).make
    assert job.judge(_job(), leaving[:1], NOW).make == [1]
    assert job.judge(_job(), [], NOW).make == [0, 1]


def _failing(policy: Tree, reason: str, message: str = "") -> Tree:
    """Return the status of a JobSet with this failure policy after its only Job failed."""
    template = {"spec": {"completions": 1}}
    held: Tree = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a", "namespace": "team", "uid": "u"},
        "spec": {"replicatedJobs": [{"name": "node", "template": template}], "failurePolicy": policy},
        "status": {"restarts": 1},
    }
    child = jobset.job_of(held, held["spec"]["replicatedJobs"][0], 0, NOW)
    told = {"type": "Failed", "status": "True", "reason": reason, "message": message, "lastTransitionTime": NOW}
    child["status"] = {"conditions": [told]}
    status: Tree = jobset.judge(held, [child], NOW).jobset["status"]
    return status


def test_jobset_with_matching_rule_restarts_and_does_not_count() -> None:
    status = _failing(RESTART_WHEN_DISRUPTED, "PodFailurePolicy", "Pod team/a has condition DisruptionTarget matching")
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (2, 0)
    assert status["conditions"][0]["reason"] == "FailurePolicy_disrupted"


@pytest.mark.parametrize(
    ("reason", "message"),
    [("BackoffLimitExceeded", "has condition DisruptionTarget"), ("PodFailurePolicy", "exit code 1")],
)
def test_jobset_without_matching_rule_fails_by_its_limit(reason: str, message: str) -> None:
    status = _failing(RESTART_WHEN_DISRUPTED, reason, message)
    assert (status["restarts"], status["terminalState"]) == (1, "Failed")
    assert status["conditions"][0]["reason"] == "ReachedMaxRestarts"


def test_jobset_with_failing_rule_fails_within_its_limit() -> None:
    rule = {"name": "x", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    status = _failing({"maxRestarts": 9, "rules": [rule]}, "PodFailurePolicy")
    assert status["conditions"][0]["reason"] == "FailJobSetFailurePolicyAction"
    counted = _failing({"maxRestarts": 9, "rules": [rule]}, "BackoffLimitExceeded")
    assert (counted["restarts"], counted["restartsCountTowardsMax"]) == (2, 1)


class _Cluster:
    """A JobSet of two pods that run, with engines and no operator."""

    def __init__(self, loop: VirtualLoop, kind: Tree) -> None:
        self.loop = loop
        self.server = ApiServer(Record(now=VirtualClock(loop).now))
        self.kubelet = Kubelet(self.server, loop, Random(1), lambda _: (300.0, 0))
        self.engines = Engines(self.server, loop, Random(2), lambda _: (300.0, 0), self.kubelet)
        self.disruptions = Disruptions(self.server, self.engines, Random(3))
        told = {"runtime": "shipped", "nodes": 2, "seconds": 300, "codes": [0], "pods": kind}
        owner = self.server.put(TRAIN_JOBS, train_job("a", told), "user")
        spec = runtime("shipped", "image", **RUNTIME_SPECS["shipped"])["spec"]["template"]["spec"]
        spec["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 2, "completions": 2}
        meta = {"name": "a", "namespace": NAMESPACE, "ownerReferences": [jobset.owner(owner)]}
        made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}
        self.server.put(JOB_SETS, made, "operator")
        self.rest(10.0)

    def rest(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def stop(self, kind: str, **how: Any) -> None:
        self.loop.run_until_complete(getattr(self.disruptions, kind)("a", how))

    def pods(self) -> list[Tree]:
        return [pod for _, pod in sorted(self.server.storage.objects.get(collection_of(PODS), {}).items())]

    def delete(self, **preconditions: str) -> None:
        """Delete the JobSet as the operator does."""
        body = msgspec.json.encode({"propagationPolicy": "Foreground", "preconditions": preconditions})
        asking = Asking("delete", "/apis", {}, "", Target(JOBSETS, NAMESPACE, "a", ""), body)
        self.loop.run_until_complete(self.server.answer(asking, "operator"))


@contextmanager
def _cluster(**kind: Any) -> Iterator[_Cluster]:
    loop = VirtualLoop(Random(4))
    asyncio.set_event_loop(loop)
    try:
        yield _Cluster(loop, {"term": "signal", "start": 0.1, **kind})
    finally:
        loop.close()
        asyncio.set_event_loop(None)


@pytest.mark.parametrize(("term", "code"), [("saves", 0), ("signal", 143), ("error", 1), ("ignores", 137)])
def test_pod_that_is_deleted_ends_within_its_grace_period(term: str, code: int) -> None:
    with _cluster(term=term) as cluster:
        first, _ = cluster.pods()
        cluster.stop("delete_pod", index=0)
        cluster.rest(31.0)
        end = cluster.kubelet.ends[first["metadata"]["uid"]]
        assert (end.code, end.cause) == (code, "stop")


@pytest.mark.parametrize(("peers", "code"), [("error", 1), ("abort", 134)])
def test_pod_that_loses_a_peer_fails_with_its_log(peers: str, code: int) -> None:
    with _cluster(term="saves", peers=peers) as cluster:
        _, second = cluster.pods()
        cluster.stop("delete_pod", index=0)
        cluster.rest(21.0)
        end = cluster.kubelet.ends[second["metadata"]["uid"]]
        assert (end.code, end.cause) == (code, "peer of a stop")
        assert cluster.server.logs[second["metadata"]["uid"]]


def test_pod_that_is_drained_restarts_its_jobset() -> None:
    with _cluster() as cluster:
        cluster.stop("drain", index=0, reason="EvictionByEvictionAPI")
        cluster.rest(60.0)
        held = cluster.server.find(JOBSETS, PATH)
        assert held is not None
        assert (held["status"]["restarts"], held["status"]["restartsCountTowardsMax"]) == (1, 0)


def test_pod_that_is_lost_with_its_node_is_disrupted_later() -> None:
    with _cluster() as cluster:
        first, second = cluster.pods()
        cluster.stop("lose_node", index=0)
        cluster.rest(1.0)
        assert cluster.pods() == [first, second]
        cluster.rest(150.0)
        assert first["metadata"]["uid"] not in {one["metadata"]["uid"] for one in cluster.pods()}
        held = cluster.server.find(JOBSETS, PATH)
        assert held is not None
        assert held["status"]["restarts"] == 1


def test_pod_that_is_deleted_before_it_starts_ends_without_times() -> None:
    with _cluster(start=600.0) as cluster:
        first, _ = cluster.pods()
        cluster.stop("delete_pod", index=0)
        while (pod := cluster.server.find(collection_of(PODS), Key(NAMESPACE, first["metadata"]["name"]))) is not None:
            if pod["status"]["phase"] == "Failed":
                break
            cluster.rest(0.05)
        assert pod is not None
        terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (terminated["exitCode"], terminated["finishedAt"]) == (137, None)


def test_jobset_deleted_in_the_foreground_goes_after_its_pods() -> None:
    with _cluster(term="ignores", grace=20) as cluster:
        cluster.delete()
        cluster.rest(15.0)
        held = cluster.server.find(JOBSETS, PATH)
        assert held is not None
        assert "deletionTimestamp" in held["metadata"]
        assert len(cluster.pods()) == 2
        cluster.rest(30.0)
        assert cluster.pods() == []
        assert cluster.server.find(JOBSETS, PATH) is None
        assert not cluster.server.storage.objects.get(collection_of(JOBS))


def test_jobset_of_another_version_is_not_deleted() -> None:
    with _cluster() as cluster, pytest.raises(ConflictError):
        cluster.delete(resourceVersion="1")


def test_history_without_stops_has_no_new_pods_and_runtimes() -> None:
    drawn = [draw(seed) for seed in range(300)]
    stopped = [one for one in drawn if any("pods" in action.how for action in one.actions)]
    assert STOPPED * 0.7 < len(stopped) / len(drawn) < STOPPED * 1.3
    for one in drawn:
        assert one in stopped or len(one.runtimes) == 3
    assert {one.theme for one in drawn if one.theme == STOPS} == {STOPS}
    assert all(
        PODS_NOTE not in train_job("a", {"runtime": "torch", "nodes": 1, "seconds": 1, "codes": [0]}) for _ in "x"
    )
