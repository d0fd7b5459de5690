"""What a worker's operator tells of a TrainJob: shown on the hub, kept when the worker's copy is gone, and bounded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from trainplane.api import names
from trainplane.hub.logarchive import testimony
from trainplane.hub.logarchive.testimony import MOST_BYTES, NOTHING_TOLD, Testimony, read
from trainplane.kube.resource import Key
from trainplane.resources import TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from tests.unit.hub.hubstage import HubStage
    from trainplane.kube.testing.server import FakeServer

FAULT = {
    "cause": "PythonError",
    "step": "node",
    "index": 1,
    "pod": "x-node-0-1-abcde",
    "node": "gpu-7",
    "exitCode": 1,
    "log": ["KeyError: 'lr'"],
    "time": "2026-11-15T05:03:00Z",
}
STAGES = [{"stage": "Running", "time": "2026-11-15T05:01:00Z"}, {"stage": "Failed", "time": "2026-11-15T05:03:00Z"}]


def tell(server: FakeServer, *, workload: str = "trainjob-job-1", **status: Any) -> None:
    """Let a worker's operator write the status of MultiKueue's copy of TrainJob x."""
    labels = {names.LABEL_MULTIKUEUE_ORIGIN: "multikueue", names.PREBUILT_WORKLOAD: workload}
    metadata = {"name": "x", "namespace": "team", "uid": "copy-of-job-1", "labels": labels}
    server.put(TRAIN_JOBS, {"metadata": metadata, "status": status})


async def view(stage: HubStage) -> dict[str, Any]:
    answer = await stage.get("x")
    assert answer.status == 200
    shown: dict[str, Any] = msgspec.json.decode(answer.body)["status"]
    return shown


def kept(stage: HubStage, uid: str = "job-1") -> Testimony:
    job = stage.archive.job(uid)
    return NOTHING_TOLD if job is None else job.record.told


async def seen(stage: HubStage) -> None:
    """Wait until the hub has a pod of the job, and so keeps it."""
    stage.put_job()
    stage.put_pod()
    await stage.until(lambda: stage.archive.job("job-1") is not None)


async def test_the_view_shows_what_the_worker_tells(stage: HubStage) -> None:
    await seen(stage)
    assert not {"firstFault", "timeline"} & (await view(stage)).keys()
    tell(stage.worker, firstFault=FAULT, timeline=STAGES)
    await stage.until(lambda: kept(stage))
    shown = await view(stage)
    assert (shown["firstFault"], shown["timeline"]) == (FAULT, STAGES)


async def test_it_stays_when_the_copy_is_gone_and_the_hub_began_anew(stage: HubStage) -> None:
    await seen(stage)
    tell(stage.worker, firstFault=FAULT, timeline=STAGES)
    await stage.until(lambda: kept(stage))
    stage.worker.remove(TRAIN_JOBS, "x", "team")
    stage.put_job(condition="Failed")
    await stage.archive.flush()
    await stage.stop()
    await stage.start()
    assert (await view(stage))["firstFault"] == FAULT


async def test_it_is_kept_also_when_it_was_told_before_the_first_pod(stage: HubStage) -> None:
    stage.put_job()
    tell(stage.worker, firstFault=FAULT)
    while "firstFault" not in await view(stage):
        pass
    stage.put_pod()
    tell(stage.worker, firstFault=FAULT)  # for what made the pod put the copy anew, without a status
    await stage.until(lambda: kept(stage))


@pytest.mark.parametrize("case", ["another workload", "another worker", "no copy"])
async def test_who_does_not_run_it_is_not_believed(stage: HubStage, case: str) -> None:
    await seen(stage)
    if case == "another workload":
        tell(stage.worker, workload="trainjob-other", firstFault=FAULT)
    elif case == "another worker":
        stage.put_job(cluster="worker2")
        tell(stage.worker, firstFault=FAULT)
    else:
        metadata = {"name": "x", "namespace": "team", "uid": "by-hand"}
        stage.worker.put(TRAIN_JOBS, {"metadata": metadata, "status": {"firstFault": FAULT}})
    tell_other(stage)
    await stage.until(lambda: kept(stage, "job-2"))
    assert kept(stage) == NOTHING_TOLD
    assert "firstFault" not in await view(stage)


async def test_a_worker_that_was_evicted_while_the_job_failed_there_is_believed_once_it_has(stage: HubStage) -> None:
    await seen(stage)
    stage.put_job(cluster=None)
    tell(stage.worker, firstFault=FAULT)
    tell_other(stage)
    await stage.until(lambda: kept(stage, "job-2"))
    assert (kept(stage), (await view(stage))["cluster"]) == (NOTHING_TOLD, ""), "it waits, and may begin elsewhere"
    stage.put_job(cluster=None, condition="Failed")
    await stage.until(lambda: kept(stage))
    stage.worker.remove(TRAIN_JOBS, "x", "team")
    shown = await view(stage)
    assert (shown["cluster"], shown["firstFault"]) == ("worker1", FAULT)
    stage.hub.remove(WORKLOADS, "trainjob-job-1", "team")
    while (await view(stage))["cluster"]:
        pass


async def test_a_former_worker_is_not_believed_where_another_has_the_job(stage: HubStage) -> None:
    await seen(stage)
    stage.put_job(cluster="worker2")
    stage.put_job(cluster=None, condition="Failed")
    tell(stage.worker, firstFault=FAULT)
    tell_other(stage)
    await stage.until(lambda: kept(stage, "job-2"))
    shown = await view(stage)
    assert (kept(stage), shown["cluster"], "firstFault" in shown) == (NOTHING_TOLD, "worker2", False)


def tell_other(stage: HubStage) -> None:
    """Let the worker tell of another job, by which it is known that the watch has brought all before it."""
    stage.put_job("y", uid="job-2")
    stage.put_pod("y-node-0-0-abcde", of="job-2", job="y", uid="pod-2")
    labels = {names.LABEL_MULTIKUEUE_ORIGIN: "multikueue", names.PREBUILT_WORKLOAD: "trainjob-job-2"}
    metadata = {"name": "y", "namespace": "team", "uid": "copy-of-job-2", "labels": labels}
    stage.worker.put(TRAIN_JOBS, {"metadata": metadata, "status": {"firstFault": FAULT}})


async def test_a_job_of_the_hub_itself_tells_of_itself(stage: HubStage) -> None:
    metadata = {"name": "x", "namespace": "team", "uid": "job-1", "creationTimestamp": "2026-11-15T05:00:00Z"}
    stage.hub.put(TRAIN_JOBS, {"metadata": metadata, "spec": {}, "status": {"firstFault": FAULT}})
    assert (await view(stage))["firstFault"] == FAULT


async def test_a_megabyte_and_control_characters_become_a_few_clean_lines(stage: HubStage) -> None:
    await seen(stage)
    bad = "\x1b]0;owned\x07\x1b[2J\u202e token=hf_abcdefghijklmnop " + "A" * 1_000_000
    short = bad[:20_000]
    words = dict.fromkeys(("node", "reason", "cause", "step", "pod", "container"), short)
    fault = {**FAULT, **words, "message": bad, "log": [short] * 10}
    entry = {"stage": "Restarted", "time": "2026-11-15T05:01:00Z", "reason": short[:2000]}
    stages = [{**entry, "number": number} for number in range(99)]
    tell(stage.worker, firstFault=fault, timeline=stages)
    await stage.until(lambda: kept(stage))
    shown = await view(stage)
    text = json.dumps([shown["firstFault"], shown["timeline"]], ensure_ascii=False)
    assert len(text) < 8192
    assert text.isprintable()
    assert "hf_abcdefghijklmnop" not in text
    job = stage.archive.job("job-1")
    assert job is not None
    assert len(job.encode()) < 16384


async def test_more_than_an_api_server_takes_is_not_read(stage: HubStage) -> None:
    await seen(stage)
    tell(stage.worker, firstFault={**FAULT, "message": "A" * MOST_BYTES})
    tell_other(stage)
    await stage.until(lambda: kept(stage, "job-2"))
    assert kept(stage) == NOTHING_TOLD


async def test_progress_is_not_a_reason_to_clean_it_again(stage: HubStage, monkeypatch: pytest.MonkeyPatch) -> None:
    await seen(stage)
    tell(stage.worker, firstFault=FAULT)
    await stage.until(lambda: kept(stage))
    cleaned: list[Any] = []

    def noted(job: Any) -> Testimony:
        cleaned.append(job)
        return read(job)

    monkeypatch.setattr(testimony, "read", noted)
    copies = stage.collector.mirrors["worker1"].copies
    assert copies is not None
    before = copies._store.entry(Key("team", "x"))
    tell(stage.worker, firstFault=FAULT, trainerStatus={"progressPercentage": 4})
    await stage.until(lambda: copies._store.entry(Key("team", "x")) is not before)
    assert not [one for one in cleaned if one["status"].get("firstFault") and "metadata" not in one]
    stage.worker.remove(TRAIN_JOBS, "x", "team")
    await stage.until(lambda: not copies._read)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"firstFault": "x", "timeline": "y"}, id="texts"),
        pytest.param({"firstFault": {"cause": 3}, "timeline": [3, None]}, id="wrong types"),
        pytest.param({"firstFault": [], "timeline": {"a": 1}}, id="wrong shapes"),
    ],
)
def test_what_is_none_tells_nothing(status: Any) -> None:
    assert not read({"status": status})


async def test_a_copy_that_is_no_trainjob_does_not_end_the_mirror(stage: HubStage) -> None:
    await seen(stage)
    labels = {names.LABEL_MULTIKUEUE_ORIGIN: "multikueue"}
    metadata = {"name": "broken", "namespace": "team", "uid": "b", "labels": labels, "annotations": {"a": 3}}
    stage.worker.put(TRAIN_JOBS, {"metadata": metadata, "status": "none"})
    tell(stage.worker, firstFault=FAULT)
    await stage.until(lambda: kept(stage))
