"""Runtimes that TrainJobs in Kueue's queues use: who uses them, and what the webhooks then say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.operator.objects import NAMESPACE, condition, runtime, train_job
from tests.unit.operator.world import PIPELINE, World
from trainplane.api import names
from trainplane.kube.admission import AdmissionRequest, GroupVersionKind, UserInfo, Verdict
from trainplane.operator.webhooks import VALIDATE_CLUSTER_TRAINING_RUNTIME, VALIDATE_TRAINING_RUNTIME, Webhooks
from trainplane.resources import TRAIN_JOBS

Tree = dict[str, Any]

CLUSTER = names.CLUSTER_TRAINING_RUNTIME
NAMESPACED = names.TRAINING_RUNTIME
NAME = runtime()["metadata"]["name"]
QUEUE = {names.LABEL_QUEUE: "queue"}


def job(name: str, *, labels: Tree | None = None, namespace: str = NAMESPACE, kind: str = CLUSTER) -> Tree:
    tree = train_job(name)
    tree["metadata"] |= {"labels": QUEUE if labels is None else labels, "namespace": namespace}
    tree["spec"]["runtimeRef"] = {"apiGroup": names.GROUP, "kind": kind, "name": NAME}
    return tree


def world(*jobs: Tree) -> World:
    made = World().with_runtime()
    for one in jobs:
        made.put(TRAIN_JOBS, one)
    made.sync()
    return made


async def ask(
    world: World, operation: str, new: Tree | None, old: Tree, *, kind: str = CLUSTER, user: str = "admin"
) -> Verdict:
    webhooks = Webhooks(world.client, world.runtimes, world.snapshots, PIPELINE, world.clock)
    path = VALIDATE_CLUSTER_TRAINING_RUNTIME if kind == CLUSTER else VALIDATE_TRAINING_RUNTIME
    request = AdmissionRequest(
        uid="1",
        operation=operation,  # type: ignore[arg-type] # one of the words
        kind=GroupVersionKind(kind=kind),
        name=NAME,
        namespace="" if kind == CLUSTER else NAMESPACE,
        user_info=UserInfo(username=user),
        object=msgspec.Raw(msgspec.json.encode(new)),
        old_object=msgspec.Raw(msgspec.json.encode(old)),
    )
    answer = webhooks.routes()[path](request)
    return answer if isinstance(answer, Verdict) else await answer


def edited() -> Tree:
    tree = runtime()
    tree["spec"]["mlPolicy"] = {"numNodes": 9, "torch": {}}
    return tree


class TestUsers:
    def test_unfinished_jobs_in_queues_in_order(self) -> None:
        ended = [
            job(f"ended-{kind}") | {"status": {"conditions": [condition(kind)]}} for kind in ("Complete", "Failed")
        ]
        seen = world(job("b"), job("a"), job("c", namespace="other"), job("free", labels={}), *ended)
        assert seen.runtimes.users(CLUSTER, "", NAME) == ["other/c", f"{NAMESPACE}/a", f"{NAMESPACE}/b"]

    def test_a_namespaced_runtime_is_used_in_its_namespace_alone(self) -> None:
        seen = world(job("a", kind=NAMESPACED), job("b", kind=NAMESPACED, namespace="other"), job("c"))
        assert seen.runtimes.users(NAMESPACED, NAMESPACE, NAME) == [f"{NAMESPACE}/a"]
        assert seen.runtimes.users(NAMESPACED, "elsewhere", NAME) == []
        assert seen.runtimes.users(CLUSTER, "", NAME) == [f"{NAMESPACE}/c"]

    def test_a_condition_that_does_not_hold_ends_nothing(self) -> None:
        tree = job("a") | {"status": {"conditions": [{**condition("Failed"), "status": "False"}]}}
        assert world(tree).runtimes.users(CLUSTER, "", NAME) == [f"{NAMESPACE}/a"]


class TestAnswers:
    async def test_an_edit_in_use_is_refused_and_names_the_job(self) -> None:
        answer = await ask(world(job("a")), "UPDATE", edited(), runtime())
        assert not answer.allowed
        assert f"TrainJob {NAMESPACE}/a" in answer.message

    async def test_an_edit_of_what_nobody_queued_uses_passes(self) -> None:
        assert (await ask(world(job("a", labels={})), "UPDATE", edited(), runtime())).allowed

    async def test_an_edit_that_kueue_does_not_see_passes(self) -> None:
        labelled = runtime()
        labelled["metadata"]["labels"] = {"a": "b"}
        assert (await ask(world(job("a")), "UPDATE", labelled, runtime())).allowed

    @pytest.mark.parametrize("kind", [CLUSTER, NAMESPACED])
    async def test_a_deletion_in_use_is_refused(self, kind: str) -> None:
        answer = await ask(world(job("a", kind=kind)), "DELETE", None, runtime(), kind=kind)
        assert not answer.allowed
        assert "cannot be deleted" in answer.message
        assert (await ask(world(), "DELETE", None, runtime(), kind=kind)).allowed

    @pytest.mark.parametrize("kind", [CLUSTER, NAMESPACED])
    async def test_a_deletion_that_touches_no_queue_is_allowed_and_names_who_still_uses_it(self, kind: str) -> None:
        ended = job("done", kind=kind, labels={}) | {"status": {"conditions": [condition("Complete")]}}
        users = [job(name, kind=kind, labels={}) for name in ("a", "b", "c", "d")]
        answer = await ask(world(ended, *users), "DELETE", None, runtime(), kind=kind)
        assert answer.allowed
        (warning,) = answer.warnings
        assert f"used by TrainJobs {NAMESPACE}/a, {NAMESPACE}/b, {NAMESPACE}/c and 1 more" in warning
        assert (await ask(world(ended), "DELETE", None, runtime(), kind=kind)).warnings == ()

    @pytest.mark.parametrize(
        "user", ["system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager"]
    )
    async def test_a_namespace_that_goes_takes_its_runtimes_along(self, user: str) -> None:
        answer = await ask(world(job("a", kind=NAMESPACED)), "DELETE", None, runtime(), kind=NAMESPACED, user=user)
        assert answer.allowed

    async def test_a_create_asks_for_no_users(self) -> None:
        assert (await ask(world(job("a")), "CREATE", edited(), edited())).allowed
