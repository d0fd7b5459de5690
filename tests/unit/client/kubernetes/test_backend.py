"""The backend before a fake API server: what it asks, how often, and what it makes of the answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.kubernetes.stage import PATIENCE
from tests.unit.client.reading.documents import NAMESPACE, at, condition, ended, event, pod, runtime, train_job, waiting
from trainplane.client.backends.kubernetes import KubernetesBackend
from trainplane.client.errors import InvalidError, NotFoundError, RefusedError, UnreachableError
from trainplane.client.types.backends import KubernetesBackendConfig
from trainplane.kube.errors import ApiError
from trainplane.kube.errors import ForbiddenError as Forbidden
from trainplane.kube.errors import InvalidError as Invalid
from trainplane.kube.resource import Key
from trainplane.kube.testing.faults import Drop, Refuse
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, EVENTS, PODS, TRAIN_JOBS, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.client.kubernetes.stage import Stage

KIND = "trainplane.dev/runtime-kind"


def document(name: str = "a", **ref: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "torch", **ref}, "trainer": {"image": "x"}},
    }


def own(name: str, **others: Any) -> dict[str, Any]:
    tree = runtime(name, "TrainingRuntime", **others)
    tree["metadata"]["namespace"] = NAMESPACE
    return tree


class TestRuntimes:
    async def test_the_namespaces_come_before_the_clusters(self, stage: Stage) -> None:
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, runtime("both"))
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, runtime("shared"))
        stage.server.put(TRAINING_RUNTIMES, own("both"))
        found = {one.name: one.kind.value for one in await stage.backend.list_runtimes()}
        assert found == {"both": "TrainingRuntime", "shared": "ClusterTrainingRuntime"}
        assert len(stage.server.requests) == 2
        assert (await stage.backend.get_runtime("both")).kind.value == "TrainingRuntime"
        assert (await stage.backend.get_runtime("shared")).kind.value == "ClusterTrainingRuntime"

    async def test_one_that_is_broken_hides_no_other(self, stage: Stage) -> None:
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, runtime("good"))
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, {"metadata": {"name": "bad"}, "spec": {}})
        assert [one.name for one in await stage.backend.list_runtimes()] == ["good"]
        with pytest.raises(InvalidError, match="bad"):
            await stage.backend.get_runtime("bad")

    async def test_one_that_is_not_there(self, stage: Stage) -> None:
        with pytest.raises(NotFoundError, match="no runtime nobody, neither of namespace team nor of the cluster"):
            await stage.backend.get_runtime("nobody")


class TestSubmit:
    @pytest.mark.parametrize("kind", ["TrainingRuntime", "ClusterTrainingRuntime"])
    async def test_is_one_request_for_the_kind_that_was_said(self, stage: Stage, kind: str) -> None:
        assert await stage.backend.submit(document(kind=kind)) == "a"
        assert len(stage.server.requests) == 1
        stored = stage.server.objects(TRAIN_JOBS)[Key(NAMESPACE, "a")]
        assert stored["spec"]["runtimeRef"] == {"name": "torch", "kind": kind}
        assert KIND not in (stored["metadata"].get("annotations") or {})

    async def test_leaves_the_kind_of_a_name_alone_to_the_operator(self, stage: Stage) -> None:
        await stage.backend.submit(document())
        (asked,) = stage.server.requests
        stored = stage.server.objects(TRAIN_JOBS)[Key(NAMESPACE, "a")]
        assert stored["metadata"]["annotations"][KIND] == "any"
        assert stored["spec"]["runtimeRef"]["kind"] == "ClusterTrainingRuntime"
        assert asked.query["fieldManager"] == "trainplane-sdk"

    @pytest.mark.parametrize("refusal", [Invalid("in some words"), Forbidden("in others")], ids=["422", "403"])
    async def test_names_the_namespaces_after_a_refusal_where_the_cluster_has_none(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch, refusal: ApiError
    ) -> None:
        kinds = _refusing(stage, monkeypatch, refusal, "ClusterTrainingRuntime")
        assert await stage.backend.submit(document()) == "a"
        assert kinds == ["ClusterTrainingRuntime", "TrainingRuntime"]

    async def test_tells_the_first_refusal_where_there_is_neither(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        words = 'there is no ClusterTrainingRuntime "torch"'
        _refusing(stage, monkeypatch, Invalid(words), "ClusterTrainingRuntime", "TrainingRuntime")
        with pytest.raises(RefusedError, match=words):
            await stage.backend.submit(document())

    async def test_does_not_ask_twice_where_the_cluster_has_the_runtime(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, runtime("torch", "ClusterTrainingRuntime"))
        kinds = _refusing(stage, monkeypatch, Invalid("spec.trainer: wrong"), "ClusterTrainingRuntime")
        with pytest.raises(RefusedError, match=r"TrainJob a cannot be created: spec\.trainer: wrong"):
            await stage.backend.submit(document())
        assert len(kinds) == 1

    async def test_does_not_ask_twice_for_a_kind_that_was_said(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kinds = _refusing(stage, monkeypatch, Invalid("no such"), "ClusterTrainingRuntime")
        with pytest.raises(RefusedError, match="no such"):
            await stage.backend.submit(document(kind="ClusterTrainingRuntime"))
        assert len(kinds) == 1

    async def test_a_name_that_is_taken(self, stage: Stage) -> None:
        stage.job()
        with pytest.raises(RefusedError, match="there is one of that name already"):
            await stage.backend.submit(document())

    async def test_a_lost_answer_is_looked_up(self, stage: Stage) -> None:
        stage.server.add_fault(Drop(verb="create", acted=True))
        assert await stage.backend.submit(document()) == "a"

    async def test_a_lost_request_is_not_taken_for_done(self, stage: Stage) -> None:
        stage.server.add_fault(Drop(verb="create", times=None))
        with pytest.raises(UnreachableError, match="TrainJob a cannot be created"):
            await stage.backend.submit(document())


def _refusing(stage: Stage, monkeypatch: pytest.MonkeyPatch, error: ApiError, *kinds: str) -> list[str]:
    """Let the server refuse TrainJobs with runtimes of these kinds; returns the kinds it is asked for."""
    asked: list[str] = []
    create = stage.client.create

    async def refuse(resource: Any, obj: Any, *arguments: Any, **others: Any) -> Any:
        asked.append(obj["spec"]["runtimeRef"]["kind"])
        if asked[-1] in kinds:
            raise error
        return await create(resource, obj, *arguments, **others)

    monkeypatch.setattr(stage.client, "create", refuse)
    return asked


class TestJobs:
    @pytest.mark.parametrize("count", [1, 50, 700])
    async def test_listing_is_two_requests_whatever_the_number(self, stage: Stage, count: int) -> None:
        for number in range(count):
            stage.job(name=f"job-{number}", metadata={"creationTimestamp": at(59 - number % 60)})
            stage.server.put(PODS, pod(job=f"job-{number}", made=at(59)))
        jobs = await stage.backend.list_jobs()
        assert len(jobs) == count
        assert len(stage.server.requests) == 2
        assert [job.creation_timestamp for job in jobs] == sorted(job.creation_timestamp for job in jobs)
        assert {job.status for job in jobs} == {"Running"}

    async def test_of_one_runtime(self, stage: Stage) -> None:
        stage.job()
        assert len(await stage.backend.list_jobs("torch-distributed")) == 1
        assert await stage.backend.list_jobs("other") == []

    async def test_one_whose_runtime_is_gone_is_read(self, stage: Stage) -> None:
        stage.job()
        stage.pod(env={"PET_NNODES": "1"})
        job = await stage.backend.get_job("a")
        assert (job.status, job.runtime.name, job.runtime.trainer.framework) == (
            "Running",
            "torch-distributed",
            "torch",
        )

    async def test_one_is_three_requests(self, stage: Stage) -> None:
        stage.job()
        stage.server.put(CLUSTER_TRAINING_RUNTIMES, runtime(policy={"numNodes": 4}))
        assert (await stage.backend.get_job("a")).num_nodes == 4
        assert len(stage.server.requests) == 3
        with pytest.raises(NotFoundError, match="no TrainJob b in namespace team"):
            await stage.backend.get_job("b")

    async def test_a_failure_that_pods_cannot_tell_is_looked_up_in_events(self, stage: Stage) -> None:
        stage.job(condition("Failed", "FailedJobs", "failed"))
        told = event("Job", "a-node-0", "FailedCreate", "exceeded quota", type="Warning")
        stage.server.put(EVENTS, told)
        cause = (await stage.backend.get_job("a")).cause
        assert cause is not None
        assert (cause.reason, cause.kind) == ("FailedCreate", "QuotaExceeded")
        assert cause.message.startswith("Job a-node-0: exceeded quota. ")

    async def test_a_failure_that_pods_tell_costs_no_more(self, stage: Stage) -> None:
        stage.job(condition("Failed", "FailedJobs", "failed"))
        stage.pod(0, "Failed", state=ended(3))
        cause = (await stage.backend.get_job("a")).cause
        assert cause is not None
        assert (cause.step, cause.exit_code) == ("node-0", 3)
        assert not stage.server.asked("list", "events")

    async def test_changes_and_deletes(self, stage: Stage) -> None:
        stage.job()
        await stage.backend.patch_job("a", {"spec": {"suspend": True}})
        assert stage.server.objects(TRAIN_JOBS)[Key(NAMESPACE, "a")]["spec"]["suspend"] is True
        await stage.backend.delete_job("a")
        assert not stage.server.objects(TRAIN_JOBS)
        for call in (stage.backend.delete_job("a"), stage.backend.patch_job("a", {})):
            with pytest.raises(NotFoundError, match="no TrainJob a"):
                await call

    async def test_events_of_the_job_alone(self, stage: Stage) -> None:
        stage.job()
        for tree in (
            event("Pod", "a-node-0-0-abcde", "Started", second=20),
            event("TrainJob", "a", "JobSetCreated", second=10),
            event("TrainJob", "b", "JobSetCreated", second=5),
        ):
            stage.server.put(EVENTS, tree)
        assert [one.reason for one in await stage.backend.list_events("a")] == ["JobSetCreated", "Started"]
        with pytest.raises(NotFoundError):
            await stage.backend.list_events("nobody")

    async def test_nobody_explains_a_queue_without_a_hub(self, stage: Stage) -> None:
        stage.job()
        assert await stage.backend.explain_queue("a") is None


class TestWatch:
    async def test_each_change_that_shows(self, stage: Stage) -> None:
        stage.job(nodes=1)
        async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
            assert (await anext(changes)).status == "Created"
            stage.pod(0, "Pending", state=waiting("ImagePullBackOff", "no image"))
            job = await anext(changes)
            assert job.cause is not None
            assert job.cause.reason == "ImagePullBackOff"
            stage.job(nodes=1, metadata={"resourceVersion": "", "generation": 7})  # nothing that shows
            stage.pod(0)
            assert (await anext(changes)).status == "Running"
            stage.job(condition("Complete"), nodes=1)
            assert (await anext(changes)).status == "Complete"
            stage.server.remove(TRAIN_JOBS, "a", NAMESPACE)
            with pytest.raises(StopAsyncIteration):
                await anext(changes)

    async def test_through_a_restart_of_the_api_server(self, stage: Stage) -> None:
        stage.job(nodes=1)
        async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
            assert (await anext(changes)).status == "Created"
            await stage.server.stop()
            stage.pod(0)
            await stage.server.start()
            assert (await anext(changes)).status == "Running"

    async def test_a_namesake_is_another_job(self, stage: Stage) -> None:
        stage.job(nodes=1)
        async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
            await anext(changes)
            stage.server.remove(TRAIN_JOBS, "a", NAMESPACE)
            stage.server.put(TRAIN_JOBS, train_job(metadata={"uid": "another"}))
            with pytest.raises(StopAsyncIteration):
                await anext(changes)

    async def test_what_is_not_there(self, stage: Stage) -> None:
        with pytest.raises(NotFoundError, match="no TrainJob a in namespace team"):
            await anext(stage.backend.watch_job("a"))

    async def test_refused_later_it_says_so(self, stage: Stage) -> None:
        stage.job()
        async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
            await anext(changes)
            stage.server.add_fault(Refuse(code=403, verb="watch", times=None))
            stage.server.watching.cut()
            with pytest.raises(RefusedError, match="cannot be watched"):
                await anext(changes)

    async def test_who_leaves_leaves_nothing_behind(self, stage: Stage) -> None:
        stage.job()
        async with aclosing(stage.backend.watch_job("a")) as changes:
            await anext(changes)
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert not {name for name in names if name.startswith("watch")}


class TestCluster:
    def test_a_cluster_that_cannot_be_found_is_the_users_to_name(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidError, match=r"^(?!no cluster can be used).*give LocalProcessBackendConfig\(\)$"):
            KubernetesBackend(KubernetesBackendConfig(config_file=str(tmp_path / "none")))

    @pytest.mark.parametrize("suspend", [True, False])
    async def test_a_queue_that_nobody_serves_is_said(
        self, stage: Stage, caplog: pytest.LogCaptureFixture, *, suspend: bool
    ) -> None:
        job = train_job("a", spec={"runtimeRef": {"name": "torch"}, "suspend": suspend})
        job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gold"}
        await stage.backend.submit(job)
        said = ["TrainJob a is in no queue and runs at once: Kueue did not take it into gold" in caplog.text]
        assert said == [not suspend]

    async def test_the_namespace_is_the_configurations(self, stage: Stage) -> None:
        config = stage.server.config(namespace="mine")
        backend = KubernetesBackend(KubernetesBackendConfig(client_configuration=config))
        assert (backend.namespace, backend.kind) == ("mine", "kubernetes")
        assert await backend.list_jobs() == []
        await backend.close()

    async def test_a_cluster_that_is_away(self, stage: Stage) -> None:
        stage.server.add_fault(Refuse(code=503, times=None))
        with pytest.raises(UnreachableError, match="TrainJobs cannot be listed"):
            await stage.backend.list_jobs()
