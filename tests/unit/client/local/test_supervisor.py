"""The supervisor with containers that end when a test says so."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.client.backends.local import runtimes
from trainplane.client.backends.local.folder import JobFolder
from trainplane.client.backends.local.keys import draw_keys, make_kept
from trainplane.client.backends.local.rendering import render
from trainplane.client.backends.local.runner import Exit, Launch, Timing, WaitingError
from trainplane.client.backends.local.supervisor import Supervisor, name_steps
from trainplane.client.errors import EngineError, InvalidError
from trainplane.render.plan import CreateOnce
from trainplane.render.plugins.mpi import make_keys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from pathlib import Path

    from trainplane.api.podindex import PodIndex
    from trainplane.client.backends.local.pods import LocalJobSet
    from trainplane.lifecycle.events import EventContent

Tree = dict[str, Any]


class FakeContainer:
    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.output = asyncio.StreamReader()
        self.record = {"id": launch.identity}
        self.ready = False
        self._exit: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    def end(self, code: int = 0, reason: str = "", printed: str = "") -> None:
        self.output.feed_data(printed.encode())
        self.output.feed_eof()
        self._exit.set_result(Exit(code, reason))

    async def wait(self) -> Exit:
        return await self._exit

    async def stop(self, grace_seconds: float) -> None:
        self.grace = grace_seconds
        if not self._exit.done():
            self.end(143)

    async def is_ready(self, probe: Tree) -> bool:
        return self.ready and bool(probe)


class FakeRunner:
    def __init__(self) -> None:
        self.containers: list[FakeContainer] = []
        self.prepared = 0
        self.cleaned = 0
        self.refuses: list[Exception] = []

    def judge(self, plan: LocalJobSet) -> Sequence[EventContent]:
        self.plan = plan
        return ()

    async def prepare(self, plan: LocalJobSet) -> None:
        self.plan = plan
        self.prepared += 1

    def address(self, place: PodIndex) -> str:
        return f"10.0.0.{place.completion_index}"

    def translate(self, text: str) -> str:
        return text

    async def start(self, launch: Launch) -> FakeContainer:
        if self.refuses:
            raise self.refuses.pop()
        self.containers.append(FakeContainer(launch))
        return self.containers[-1]

    async def clean(self) -> None:
        self.cleaned += 1

    def end(self, records: Iterable[Tree]) -> None:
        raise NotImplementedError


class Stage:
    """A supervisor at work, and what a test does to it."""

    def __init__(self, path: Path, job: Tree, runtime: Tree) -> None:
        self.folder, self.lock = JobFolder.create(
            path / "jobs/a", {"trainjob": job, "runtime": runtime, "objects": {"items": []}}
        )
        self.runner = FakeRunner()
        timing = Timing(restart_delay=0.001, image_delay=0.001, probe_period=0.001)
        self.task = asyncio.ensure_future(Supervisor(self.folder, self.runner, {}, timing).run())

    async def until(self, seen: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not seen():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.001)

    async def containers(self, count: int) -> list[FakeContainer]:
        await self.until(lambda: len(self.runner.containers) == count)
        return self.runner.containers

    def change(self, **spec: Any) -> None:
        job = self.folder.read("trainjob") or {}
        self.folder.write("trainjob", {**job, "spec": {**job["spec"], **spec}})
        self.folder.ring()

    @property
    def conditions(self) -> dict[str, str]:
        return {one["type"]: one["reason"] for one in (self.folder.read("status") or {}).get("conditions", ())}

    @property
    def phases(self) -> list[str]:
        return [pod["status"]["phase"] for pod in self.folder.read_pods()]

    def reasons(self, kind: str = "TrainJob") -> list[str]:
        return [one["reason"] for one in self.folder.read_events() if one["involvedObject"]["kind"] == kind]


def job(nodes: int = 2, **spec: Any) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a", "uid": "u", "creationTimestamp": "2020-11-15T05:00:00.000000Z"},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"numNodes": nodes, "command": ["run"]},
            **spec,
        },
    }


def runtime(*, jobset: Tree | None = None, batch: Tree | None = None, container: Tree | None = None) -> Tree:
    document = runtimes.load("torch-distributed", [])
    spec = document["spec"]["template"]["spec"]
    node = spec["replicatedJobs"][0]["template"]["spec"]
    if jobset or batch:  # a runtime that says nothing else about failures
        del spec["failurePolicy"], node["podFailurePolicy"], node["template"]["spec"]["restartPolicy"]
    spec |= jobset or {}
    node |= batch or {}
    node["template"]["spec"]["containers"][0] |= container or {}
    return document


@pytest.fixture
async def stages(tmp_path: Path) -> AsyncIterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(document: Tree | None = None, **changes: Any) -> Stage:
        made.append(Stage(tmp_path, document or job(), runtime(**changes)))
        return made[-1]

    yield make
    for stage in made:
        stage.task.cancel()
        await asyncio.gather(stage.task, return_exceptions=True)
        os.close(stage.lock)


async def test_nodes_run_to_their_end(stages: Callable[..., Stage]) -> None:
    stage = stages()
    first, second = await stage.containers(2)
    await stage.until(lambda: stage.phases == ["Running"] * 2)
    assert first.launch.variables["PET_NODE_RANK"] == "0"
    assert second.launch.pod["status"]["podIP"] == "10.0.0.1"
    assert set(stage.folder.read("records") or {}) == {first.launch.identity, second.launch.identity}
    first.end(printed="one\n")
    second.end(printed="two")
    await stage.task
    assert stage.conditions == {"Complete": "AllJobsCompleted"}
    assert [line.split(" ", 1)[1] for line in stage.folder.log.read_text().splitlines()] == ["node-0 one", "node-1 two"]
    assert (stage.runner.prepared, stage.runner.cleaned, stage.folder.read("records")) == (1, 1, {})
    assert stage.reasons() == ["JobSetCreated", "Started", "Completed"]


async def test_the_others_end_when_one_fails(stages: Callable[..., Stage]) -> None:
    stage = stages()
    _, second = await stage.containers(2)
    second.end(7, printed="why")
    await stage.task
    assert stage.conditions == {"Failed": "FailedJobs"}
    ends = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in stage.folder.read_pods()]
    assert [end["exitCode"] for end in ends] == [143, 7]
    assert ends[0]["finishedAt"] > ends[1]["finishedAt"]


async def test_an_end_that_a_runtime_calls_final_is_not_tried_again(stages: Callable[..., Stage]) -> None:
    policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3, 4]}}]}
    stage = stages(job(1), batch={"backoffLimit": 5, "podFailurePolicy": policy})
    (first,) = await stage.containers(1)
    first.end(1)
    _, second = await stage.containers(2)
    second.end(3)
    await stage.task
    assert stage.conditions == {"Failed": "FailedJobs"}


async def test_a_container_starts_again_in_its_pod(stages: Callable[..., Stage]) -> None:
    stage = stages(job(1), batch={"backoffLimit": 1})
    (first,) = await stage.containers(1)
    first.end(1)
    _, second = await stage.containers(2)
    second.end()
    await stage.task
    (pod,) = stage.folder.read_pods()
    status = pod["status"]["containerStatuses"][0]
    assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)
    assert stage.conditions == {"Complete": "AllJobsCompleted"}
    assert "BackOff" in stage.reasons("Pod")


async def test_a_pod_that_never_restarts_is_made_anew(stages: Callable[..., Stage]) -> None:
    document = runtime()["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    document["spec"]["restartPolicy"] = "Never"
    stage = stages(job(1), batch={"backoffLimit": 1, "template": document})
    (first,) = await stage.containers(1)
    first.end(1)
    _, second = await stage.containers(2)
    assert first.launch.identity != second.launch.identity
    second.end()
    await stage.task
    assert stage.conditions == {"Complete": "AllJobsCompleted"}


async def test_all_begin_anew_as_often_as_they_may(stages: Callable[..., Stage]) -> None:
    stage = stages(jobset={"failurePolicy": {"maxRestarts": 1}})
    first, _ = await stage.containers(2)
    first.end(1)
    containers = await stage.containers(4)
    assert {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in stage.folder.read_pods()} == {
        "1"
    }
    assert stage.runner.prepared == 2
    containers[2].end(1)
    await stage.task
    assert stage.conditions == {"Failed": "ReachedMaxRestarts"}
    assert "Restarting" in stage.reasons()


async def test_suspend_resume_scale_and_delete(stages: Callable[..., Stage]) -> None:
    stage = stages(job(suspend=True))
    await stage.until(lambda: stage.conditions == {"Suspended": "Suspended"})
    assert stage.phases == []
    stage.change(suspend=False)
    await stage.containers(2)
    await stage.until(lambda: stage.conditions == {})
    stage.change(trainer={"numNodes": 3, "command": ["run"]})
    await stage.containers(5)
    await stage.until(lambda: len(stage.phases) == 3)
    stage.change(suspend=True)
    await stage.until(lambda: stage.phases == [] and "Suspended" in stage.conditions)
    document = stage.folder.read("trainjob") or {}
    document["metadata"]["deletionTimestamp"] = "now"
    stage.folder.write("trainjob", document)
    stage.folder.ring()
    await stage.task
    assert not stage.folder.path.exists()
    assert stage.runner.cleaned == 1


async def test_a_job_past_its_deadline_fails(stages: Callable[..., Stage]) -> None:
    stage = stages(job(activeDeadlineSeconds=1))
    await stage.task
    assert stage.conditions == {"Failed": "DeadlineExceeded"}
    assert stage.runner.containers == []


async def test_a_pod_past_its_own_time_fails(stages: Callable[..., Stage]) -> None:
    stage = stages(job(1), batch={"activeDeadlineSeconds": 0.01, "backoffLimit": 5})
    await stage.task
    (pod,) = stage.folder.read_pods()
    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert stage.conditions == {"Failed": "FailedJobs"}


async def test_an_image_that_is_missing_is_waited_for(stages: Callable[..., Stage]) -> None:
    stage = stages(job(1))
    stage.runner.refuses = [WaitingError("ErrImageNeverPull", "image i is not on this machine")]
    (first,) = await stage.containers(1)
    first.end()
    await stage.task
    failed = next(event for event in stage.folder.read_events() if event["reason"] == "Failed")
    assert failed["message"] == "ErrImageNeverPull: image i is not on this machine"


async def test_what_cannot_start_fails_with_its_reason(stages: Callable[..., Stage]) -> None:
    stage = stages(job(1))
    stage.runner.refuses = [EngineError("no such device")]
    await stage.task
    (pod,) = stage.folder.read_pods()
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == "no such device"
    assert stage.conditions == {"Failed": "FailedJobs"}


async def test_a_pod_is_ready_when_its_probe_says_so(stages: Callable[..., Stage]) -> None:
    stage = stages(job(1), container={"readinessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 0.001}})
    (first,) = await stage.containers(1)
    await stage.until(lambda: stage.phases == ["Running"])
    assert "Started" not in stage.reasons()
    first.ready = True
    await stage.until(lambda: "Started" in stage.reasons())


def test_steps_are_called_as_on_a_cluster() -> None:
    made = render(job(), runtime()).plan
    assert list(name_steps(made, job()).values()) == ["node-0", "node-1"]


def test_what_has_no_effect_is_told() -> None:
    document = runtime()
    pod = document["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod |= {"nodeSelector": {"a": "b"}, "serviceAccountName": "s"}
    pod["containers"][0]["livenessProbe"] = {"exec": {"command": ["x"]}}
    queued = job()
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    told = [news.message.split(" has ")[0] for news in render(queued, document).ignored]
    assert told == [
        "nodeSelector of job node", "serviceAccountName of job node", "livenessProbe of container node", "queue q",
    ]  # fmt: skip


@pytest.fixture
def plain_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the operator's library away."""
    for name in ("cryptography", *(name for name in sys.modules if name.startswith("cryptography."))):
        monkeypatch.setitem(sys.modules, name, None)


def test_keys_are_drawn_without_the_operators_library(plain_install: None) -> None:
    kept = make_kept(CreateOnce("v1", "Secret", "keys", make_keys))
    assert set(kept["data"]) == {"ssh-privatekey", "ssh-publickey"}
    assert draw_keys() != kept["data"]


def test_what_is_no_pair_of_keys_is_never_one(plain_install: None) -> None:
    def draw() -> Tree:
        import cryptography  # noqa: PLC0415 it is not there

        return {"data": {"curve.cert": cryptography.__name__}}

    with pytest.raises(InvalidError, match=r"needs Secret a-flux-curve-cert, which .*: `pip install cryptography`"):
        make_kept(CreateOnce("v1", "Secret", "a-flux-curve-cert", draw))


def test_what_can_be_drawn_is_as_the_plugin_draws_it() -> None:
    there = make_kept(CreateOnce("v1", "Secret", "keys", lambda: {"data": {"x": "eA=="}}))
    assert there["data"] == {"x": "eA=="}
