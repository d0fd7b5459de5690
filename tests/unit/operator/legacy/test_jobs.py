"""The shell of jobs of older kinds: what is decided is done, once, by whoever leads, and told."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tests.unit.operator.legacy.world import JOBS, KEY, World, controlled, job, pods
from tests.unit.operator.objects import NAMESPACE
from tests.unit.operator.world import Crash, CrashError
from trainplane.kube.controller import DONE, RequeueAfter, Terminal
from trainplane.kube.errors import ConflictError, ForbiddenError
from trainplane.kube.lease import LeadershipLostError
from trainplane.legacy.decision import Decision, Observed, Ref
from trainplane.lifecycle.events import EventContent
from trainplane.operator.errors import MakingError
from trainplane.render.plan import CreateOnce
from trainplane.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES
from trainplane.resources import JOBS as BATCH_JOBS

Tree = dict[str, Any]

CREATED = {"type": "Created", "status": "True", "reason": "PyTorchJobCreated", "lastUpdateTime": "2026-01-01T00:00:00Z"}


def wanting(*objects: Tree) -> Any:
    """Return who decides that what is missing of some objects is made."""

    def decide(seen: Observed) -> Decision:
        there = {tree["metadata"]["name"] for tree in (*seen.pods, *seen.services)}
        return Decision(create=tuple(tree for tree in objects if tree["metadata"]["name"] not in there))

    return decide


async def test_what_is_decided_is_made_once() -> None:
    world = World(wanting(*pods(3), controlled(SERVICES, "job-worker-0-svc")))
    world.put(JOBS, job())
    assert await world.settle() == DONE
    assert world.names(PODS) == ["job-worker-0", "job-worker-1", "job-worker-2"]
    assert len(world.client.writes) == 4
    assert [tree["metadata"]["name"] for tree in world.looks[-1].pods] == world.names(PODS)


async def test_services_come_before_pods() -> None:
    world = World(wanting(*pods(1), controlled(SERVICES, "svc")))
    world.put(JOBS, job())
    await world.settle()
    assert world.client.writes == ["create services svc", "create pods job-worker-0"]


async def test_nothing_is_decided_until_the_mirror_shows_what_was_made() -> None:
    world = World(wanting(*pods(2)))
    world.put(JOBS, job())
    await world.look()
    assert await world.look(PODS) == RequeueAfter(1.0)
    assert len(world.looks) == 1


async def test_an_object_that_the_mirror_missed_is_found() -> None:
    world = World(wanting(*pods(1)))
    world.put(JOBS, job())
    world.put(PODS, pods(1)[0])
    await world.look(PODS)
    assert world.client.writes == ["create pods job-worker-0"]  # answered with AlreadyExists, and it is the job's own
    assert [reason for reason, _ in world.news] == ["SuccessfulCreatePod"]  # who made it ended before it could tell


@pytest.mark.parametrize("owner", ["nobody", "another"])
async def test_a_pod_of_another_is_left_alone_and_told_of(owner: str) -> None:
    world = World(wanting(*pods(1)))
    world.put(JOBS, job())
    foreign = controlled(PODS, "job-worker-0", uid="uid-another", by="another")
    if owner == "nobody":
        del foreign["metadata"]["ownerReferences"]
    world.put(PODS, foreign)
    world.sync()
    with pytest.raises(MakingError, match="is not controlled by this PyTorchJob"):
        await world.reconciler.reconcile(KEY)
    [(reason, message)] = world.news
    assert reason == "FailedCreatePod"
    assert "delete it, or give the PyTorchJob another name" in message
    assert world.looks[-1].pods == ()


async def test_a_pod_of_an_earlier_job_of_the_name_is_waited_for() -> None:
    world = World(wanting(*pods(1)))
    world.put(JOBS, job(uid="uid-new"))
    world.put(PODS, pods(1)[0])
    assert await world.look() == RequeueAfter(1.0)
    assert not world.news


async def test_a_pod_with_the_uid_in_another_namespace_is_none_of_the_jobs() -> None:
    world = World()
    world.put(JOBS, job())
    elsewhere = pods(1)[0]
    elsewhere["metadata"]["namespace"] = "attacker"
    world.put(PODS, elsewhere)
    await world.look()
    assert world.looks[-1].pods == ()


async def test_a_batch_job_that_owns_itself_does_no_harm() -> None:
    world = World()
    world.put(JOBS, job())
    circle = controlled(BATCH_JOBS, "circle")
    circle["metadata"]["ownerReferences"][0] |= {"kind": "Job", "apiVersion": "batch/v1", "name": "circle"}
    world.put(BATCH_JOBS, circle)
    world.sync()
    [store, *_] = world.mirrors.others
    assert store.resource == BATCH_JOBS
    entry = store.entry(KEY._replace(name="circle"))
    assert entry is not None
    assert world.mirrors._job_of(NAMESPACE, entry) is None


async def test_a_quota_that_is_used_up_is_met_by_few_requests() -> None:
    world = World(wanting(*pods(1000)))
    world.put(JOBS, job())
    world.client.refuse["create pods"] = deque([ForbiddenError("exceeded quota: pods")] * 1000)
    world.sync()
    with pytest.raises(MakingError, match="exceeded quota"):
        await world.reconciler.reconcile(KEY)
    assert len(world.client.writes) == 1
    assert world.news[0][0] == "FailedCreatePod"


async def test_the_status_is_written_although_something_could_not_be_made() -> None:
    world = World(lambda _: Decision(create=pods(1), status={"conditions": [CREATED]}))
    world.put(JOBS, job())
    world.client.refuse["create pods"] = deque([ForbiddenError("exceeded quota: pods")])
    world.sync()
    with pytest.raises(MakingError):
        await world.reconciler.reconcile(KEY)
    assert (world.find(JOBS, "job") or {})["status"] == {"conditions": [CREATED]}


async def test_the_status_becomes_what_was_decided_in_one_write() -> None:
    before = {"conditions": [], "replicaStatuses": {"Worker": {"active": 1}}, "startTime": "2026-01-01T00:00:00Z"}
    after = {"conditions": [CREATED], "replicaStatuses": {"Worker": {"failed": 1}}}
    world = World(lambda _: Decision(status=after))
    world.put(JOBS, job(status=before))
    assert await world.settle() == DONE
    assert (world.find(JOBS, "job") or {})["status"] == after
    assert world.client.writes == ["patch pytorchjobs/status job"]


async def test_a_status_that_somebody_else_wrote_meanwhile_is_not_lost() -> None:
    told = EventContent("Normal", "PyTorchJobCreated", "created")
    world = World(lambda _: Decision(status={"conditions": [CREATED]}, events=(told,)))
    world.put(JOBS, job())
    world.client.refuse["patch pytorchjobs"] = deque([ConflictError("not the version that was read")])
    assert await world.look() == RequeueAfter(1.0)
    assert not world.news


async def test_news_is_told_with_the_write_that_it_is_about() -> None:
    told = EventContent("Normal", "PyTorchJobCreated", "created")
    world = World(lambda _: Decision(status={"conditions": [CREATED]}, events=(told,)))
    world.put(JOBS, job())
    await world.look()
    assert world.news == [("PyTorchJobCreated", "created")]


async def test_a_deleted_pod_counts_as_on_its_way_out_before_the_mirror_shows_it() -> None:
    def decide(seen: Observed) -> Decision:
        staying = [pod for pod in seen.pods if not pod["metadata"].get("deletionTimestamp")]
        refs = (Ref("v1", "Pod", one["metadata"]["name"], one["metadata"]["uid"]) for one in staying)
        return Decision(delete=tuple(refs))

    world = World(decide)
    world.put(JOBS, job())
    world.put(PODS, pods(1)[0])
    await world.look()
    await world.look(PODS)
    assert world.client.writes == ["delete pods job-worker-0"]
    assert world.looks[-1].pods[0]["metadata"]["deletionTimestamp"]


async def test_a_name_does_not_take_over_what_another_made() -> None:
    ours = {**controlled(CONFIG_MAPS, "app-config"), "data": {"hostfile": "ours"}}
    world = World(lambda _: Decision(apply=(ours,)))
    world.put(JOBS, job())
    world.put(CONFIG_MAPS, {**CONFIG_MAP, "data": {"password": "theirs"}})
    world.sync()
    with pytest.raises(MakingError, match="is not controlled by this PyTorchJob"):
        await world.reconciler.reconcile(KEY)
    assert not world.client.writes
    assert (world.find(CONFIG_MAPS, "app-config") or {})["data"] == {"password": "theirs"}


CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app-config", "namespace": NAMESPACE}}


async def test_what_is_applied_is_applied_again_only_when_it_changes() -> None:
    content = {"hostfile": "a"}
    world = World(lambda _: Decision(apply=({**controlled(CONFIG_MAPS, "job-config"), "data": dict(content)},)))
    world.put(JOBS, job())
    await world.settle()
    await world.look()
    assert world.client.writes == ["apply configmaps job-config"]
    content["hostfile"] = "b"
    await world.look()
    assert (world.find(CONFIG_MAPS, "job-config") or {})["data"] == {"hostfile": "b"}


async def test_what_was_applied_and_deleted_by_somebody_comes_back_with_the_next_pods() -> None:
    decided = [Decision(apply=({**controlled(CONFIG_MAPS, "job-config"), "data": {"hostfile": "a"}},))]
    world = World(lambda _: decided[0])
    world.put(JOBS, job())
    await world.settle()
    world.delete(CONFIG_MAPS, "job-config")
    decided[0] = Decision(apply=decided[0].apply, create=pods(1))
    await world.look()
    await world.look()
    assert world.find(CONFIG_MAPS, "job-config") is not None


async def test_keys_are_drawn_once() -> None:
    drawn = []

    def draw() -> Tree:
        drawn.append("key")
        return {"data": {"id": "a2V5"}}

    world = World(lambda _: Decision(once=(CreateOnce("v1", "Secret", "job-ssh", draw, ("id",)),)))
    world.put(JOBS, job())
    await world.settle()
    await world.restart().settle()
    secret = world.find(SECRETS, "job-ssh") or {}
    assert secret["metadata"]["ownerReferences"][0]["kind"] == "PyTorchJob"
    assert drawn == ["key"]


async def test_a_job_whose_time_to_live_is_over_is_deleted_and_counted() -> None:
    world = World(lambda _: Decision(expired=True))
    world.put(JOBS, job())
    await world.look()
    assert world.find(JOBS, "job") is None
    await world.look()
    assert world.count("deleted") == 1


async def test_time_alone_brings_another_look() -> None:
    world = World(lambda _: Decision(again=12.5))
    world.put(JOBS, job())
    assert await world.look() == RequeueAfter(12.5)


async def test_jobs_are_counted_when_their_status_first_says_so() -> None:
    status: Tree = {"conditions": [CREATED]}
    world = World(lambda _: Decision(status=dict(status)))
    world.put(JOBS, job())
    await world.settle()
    assert world.count("created") == 1
    status["conditions"] = [CREATED, {**CREATED, "type": "Failed"}]
    await world.settle()
    fresh = world.restart()
    await fresh.settle()
    assert (world.count("created"), world.count("failed")) == (1, 1)
    assert fresh.count("created") == 0  # one that was taken over


async def test_what_goes_on_is_told_once() -> None:
    trouble = EventContent("Warning", "ImagePullBackOff", "pod job-worker-0 waits: no such image")
    decided = [Decision(events=(trouble,))]
    world = World(lambda _: decided[0])
    world.put(JOBS, job())
    await world.look()
    await world.look()
    assert [note.count for note in world.recorder._notes.values()] == [1]
    decided[0] = Decision()
    await world.look()
    decided[0] = Decision(events=(trouble,))
    await world.look()
    assert [note.count for note in world.recorder._notes.values()] == [2]


async def test_only_who_leads_writes() -> None:
    world = World(wanting(*pods(1)), leads=False)
    world.put(JOBS, job())
    world.sync()
    with pytest.raises(LeadershipLostError):
        await world.reconciler.reconcile(KEY)
    assert not world.client.writes


async def test_what_cannot_be_read_is_given_up_and_told() -> None:
    world = World()
    broken = job()
    broken["metadata"]["labels"] = ["no", "labels"]
    world.put(JOBS, broken)
    assert isinstance(await world.look(), Terminal)
    assert world.news[0][0] == "NotUnderstood"


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize("at", range(5))
async def test_dying_at_any_write_changes_nothing_in_the_end(at: int, acted: bool) -> None:
    wanted = wanting(*pods(3), controlled(SERVICES, "svc"))

    def decide(seen: Observed) -> Decision:
        made = wanted(seen)
        return made if made.create else Decision(status={"conditions": [CREATED]})

    world = World(decide)
    world.put(JOBS, job())
    world.client.crash = Crash(at, acted=acted)
    with pytest.raises(CrashError):
        await world.settle()
    fresh = world.restart()
    await fresh.settle()
    assert fresh.names(PODS) == ["job-worker-0", "job-worker-1", "job-worker-2"]
    assert fresh.names(SERVICES) == ["svc"]
    assert (fresh.find(JOBS, "job") or {})["status"] == {"conditions": [CREATED]}


async def test_news_of_a_job_that_takes_long_to_look_at_waits_longer() -> None:
    world = World()

    def decide(seen: Observed) -> Decision:
        del seen
        world.clock._elapsed += 0.4
        return Decision()

    world.put(JOBS, job())
    await world.look()
    assert world.reconciler.patience(KEY) == 0.2
    world.decide = decide
    await world.look()
    assert world.reconciler.patience(KEY) == pytest.approx(2.0)
