"""Logs as the hub server's users meet them: read, followed, kept when pods and workers are gone."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from tests.unit.hub.hubstage import PATIENCE, ROOT, HubStage
from trainplane.hub.apiserver import api
from trainplane.hub.apiserver.following import Follow
from trainplane.hub.apiserver.readers import Readers, ReaderSettings
from trainplane.kube.resource import PODS, Key
from trainplane.kube.testing.faults import Refuse
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import pytest

    from trainplane.api.tree import Tree


def numbered(count: int) -> list[str]:
    return [f"line {number}" for number in range(count)]


async def test_a_log_is_read_and_stays_when_the_pod_and_even_the_job_are_gone(stage: HubStage) -> None:
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 20)
    assert await stage.until_log(20) == numbered(20)
    stage.print(logs, 5, 20)
    logs.end()
    stage.put_pod(state="terminated")
    stage.put_job(condition="Complete")
    assert await stage.until_log(25) == numbered(25)
    stage.worker.remove(PODS, "x-node-0-0-abcde", "team")
    await stage.until(lambda: not stage.collector.mirrors["worker1"].keys("team", "x"))
    assert (await stage.get("x/log")).text.splitlines() == numbered(25)
    assert (await stage.get("x/log?tailLines=2")).text.splitlines() == numbered(25)[-2:]
    stage.hub.remove(TRAIN_JOBS, "x", "team")
    await stage.until(lambda: stage.jobs.get("team", "x") is None)
    assert (await stage.get("x")).status == 404
    assert (await stage.get("x/log")).text.splitlines() == numbered(25)


async def test_a_job_without_pods_says_why_it_has_no_log(stage: HubStage) -> None:
    stage.put_job(cluster=None)
    answer = await stage.get("x/log")
    assert answer.status == 404
    message = msgspec.json.decode(answer.body)["message"]
    assert message.startswith("TrainJob team/x has had no pod yet (")
    assert message.endswith("; follow=true waits for it")


async def test_a_log_is_followed_from_before_there_is_one_to_the_end(stage: HubStage) -> None:
    stage.put_job(cluster=None)
    reading = asyncio.create_task(stage.get("x/log?follow=true"))
    await stage.until(lambda: stage.rules.asked)
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 10)
    await stage.until_log(10)
    stage.print(logs, 10, 10)
    logs.end()
    stage.put_pod(state="terminated")
    stage.put_job(condition="Complete")
    answer = await asyncio.wait_for(reading, PATIENCE)
    assert answer.text.splitlines() == numbered(20)


async def test_a_job_that_the_mirror_does_not_know_yet_is_followed_too(
    stage: HubStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, looks = stage.jobs.get, list[str]()

    def get_late(namespace: str, name: str, kind: str) -> Tree | None:
        looks.append(name)
        return known(namespace, name, kind) if len(looks) > 1 else None

    stage.put_job(cluster=None)
    await stage.until(lambda: known("team", "x"))
    monkeypatch.setattr(stage.jobs, "get", get_late)
    reading = asyncio.create_task(stage.get("x/log?follow=true"))
    await stage.until(lambda: looks)
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 10)
    await stage.until_log(10)
    logs.end()
    stage.put_pod(state="terminated")
    stage.put_job(condition="Complete")
    answer = await asyncio.wait_for(reading, PATIENCE)
    assert answer.text.splitlines() == numbered(10)


async def test_a_follower_ends_though_the_hub_hears_of_the_end_before_it_hears_of_the_pods(stage: HubStage) -> None:
    stage.put_job(condition="Complete")
    await stage.until(lambda: stage.jobs.get("team", "x"))
    logs = stage.put_pod(state="terminated")
    stage.print(logs, 10)
    logs.end()
    await stage.until_log(10)
    answer = await asyncio.wait_for(stage.get("x/log?follow=true"), PATIENCE)
    assert answer.text.splitlines() == numbered(10)


async def test_followers_share_one_stream_of_the_worker(stage: HubStage) -> None:
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 3)
    readings = [asyncio.create_task(stage.get("x/log?follow=true")) for _ in range(5)]
    await stage.until_log(3)
    assert logs.opened == 1
    logs.end()
    stage.put_pod(state="terminated")
    stage.put_job(condition="Complete")
    for answer in await asyncio.wait_for(asyncio.gather(*readings), PATIENCE):
        assert answer.text.splitlines() == numbered(3)


async def test_a_worker_that_is_cut_off_shows_as_a_pause_and_a_warning(stage: HubStage) -> None:
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 10)
    await stage.until_log(10)
    reading = asyncio.create_task(stage.get("x/log?follow=true"))
    await stage.worker.stop()
    stage.print(logs, 10, 10)
    await stage.until(lambda: stage.collector.mirrors["worker1"].problem)
    answer = await stage.get("x/log")
    assert answer.text.splitlines() == numbered(10)
    assert "worker worker1 cannot be reached" in answer.headers["Warning"]
    shown = msgspec.json.decode((await stage.get("x")).body)["status"]["problem"]
    assert "worker worker1 cannot be reached" in shown
    await stage.worker.start()
    assert await stage.until_log(20) == numbered(20)
    logs.end()
    stage.put_pod(state="terminated")
    stage.put_job(condition="Complete")
    assert (await asyncio.wait_for(reading, PATIENCE)).text.splitlines() == numbered(20)


async def test_a_hub_server_that_was_killed_goes_on_where_it_was(stage: HubStage) -> None:
    stage.put_job()
    logs = stage.put_pod()
    for turn in range(3):
        stage.print(logs, 30, turn * 60)
        await stage.until_log(turn * 60 + 30)
        await stage.stop()
        stage.print(logs, 30, turn * 60 + 30)
        await stage.start()
    assert await stage.until_log(180) == numbered(180)


async def test_a_pod_that_went_while_nobody_looked_is_at_its_end(stage: HubStage) -> None:
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 5)
    await stage.until_log(5)
    await stage.stop()
    stage.worker.remove(PODS, "x-node-0-0-abcde", "team")
    stage.put_job(condition="Complete")
    await stage.start()
    answer = await asyncio.wait_for(stage.get("x/log?follow=true"), PATIENCE)
    assert answer.text.splitlines() == numbered(5)


async def test_a_job_on_the_hub_itself_is_seen_alike(stage: HubStage) -> None:
    stage.put_job(local=True)
    logs = stage.put_pod(server=stage.hub)
    stage.print(logs, 5)
    assert await stage.until_log(5) == numbered(5)
    status = msgspec.json.decode((await stage.get("x")).body)["status"]
    assert (status["cluster"], status["placement"], status["state"]) == ("hub", "Local", "Running")


async def test_pods_of_others_are_not_taken_for_the_jobs(stage: HubStage) -> None:
    stage.put_job()
    stage.put_pod("y-other", job="y")
    stage.put_pod("x-here", server=stage.hub)
    stage.put_pod("x-old", of="job-0")
    await stage.until(lambda: any(asked.path.endswith("trainjobs/x") for asked in stage.worker.requests))
    stage.put_pod("x-mine")
    await stage.until(lambda: stage.archive.job("job-1"))
    pods = msgspec.json.decode((await stage.get("x/pods")).body)
    assert [item["metadata"]["name"] for item in pods["items"]] == ["x-mine"]


async def test_a_pod_that_is_there_before_the_hub_knows_where_its_job_is(stage: HubStage) -> None:
    stage.put_job(cluster=None)
    logs = stage.put_pod()
    stage.print(logs, 2)
    await stage.until(lambda: stage.collector.mirrors["worker1"].keys("team", "x"))
    assert stage.archive.job("job-1") is None
    stage.put_job(cluster="worker1")
    assert await stage.until_log(2) == numbered(2)


async def test_the_same_name_later_is_another_job(stage: HubStage) -> None:
    stage.put_job()
    stage.print(stage.put_pod("x-node-0-0-first"), 5)
    await stage.until_log(5)
    stage.hub.remove(TRAIN_JOBS, "x", "team")
    stage.worker.remove(PODS, "x-node-0-0-first", "team")
    await stage.until(lambda: stage.jobs.get("team", "x") is None)
    stage.put_job(uid="job-2")
    stage.print(stage.put_pod("x-node-0-0-later", of="job-2"), 2)
    await stage.until(lambda: stage.archive.job("job-2"))
    assert await stage.until_log(2) == numbered(2)


async def test_a_worker_that_comes_later_and_one_that_leaves(stage: HubStage) -> None:
    stage.workers.clients = {}
    await stage.until(lambda: "worker1" not in stage.collector.mirrors)
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 4)
    assert (await stage.get("x/log")).status == 404
    stage.workers.clients = {"worker1": stage.worker_client}
    assert await stage.until_log(4) == numbered(4)


async def test_a_worker_that_does_not_show_its_pods_says_what_is_missing(stage: HubStage) -> None:
    stage.workers.clients = {}
    await stage.until(lambda: "worker1" not in stage.collector.mirrors)
    stage.worker.add_fault(Refuse(code=403, plural="pods", times=None))
    stage.workers.clients = {"worker1": stage.worker_client}
    stage.put_job()
    await stage.until(lambda: "worker1" in stage.collector.mirrors and stage.collector.mirrors["worker1"].refusal)
    status = msgspec.json.decode((await stage.get("x")).body)["status"]
    assert status["problem"].startswith("worker worker1 does not let MultiKueue's user see pods: 403")
    assert "does not let MultiKueue's user see pods" in (await stage.get("x/log")).text


async def test_a_worker_that_does_not_give_logs_is_warned_of(stage: HubStage) -> None:
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 2)
    await stage.until_log(2)
    await stage.stop()
    stage.worker.add_fault(Refuse(code=403, verb="get", times=None))
    await stage.start()
    await stage.until(lambda: (job := stage.archive.job("job-1")) and stage.collector.problems(job))
    answer = await stage.get("x/log")
    assert answer.text.splitlines() == numbered(2)
    assert "lines may be missing for now: 403" in answer.headers["Warning"]


async def test_rotated_credentials_count(stage: HubStage) -> None:
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 4)
    await stage.until_log(4)
    async with stage.worker.client(clock=stage.clock) as renewed:
        stage.workers.clients = {"worker1": renewed}
        await stage.until(lambda: stage.collector.mirrors["worker1"].client is renewed)
        stage.worker.pods.containers[Key("team", "x-node-0-0-abcde"), "node"].breach("reset")
        stage.print(logs, 4, 4)
        assert await stage.until_log(8) == numbered(8)
        stage.workers.clients = {"worker1": stage.worker_client}
        await stage.until(lambda: stage.collector.mirrors["worker1"].client is stage.worker_client)
        stage.worker.pods.containers[Key("team", "x-node-0-0-abcde"), "node"].breach("reset")
        await stage.until(lambda: logs.opened >= 3)


async def test_rotated_credentials_count_at_once_where_somebody_says_so(tmp_path: Path) -> None:
    async with HubStage(tmp_path, interval=3600.0) as stage, stage.worker.client(clock=stage.clock) as renewed:
        for client in (renewed, stage.worker_client):
            stage.workers.clients = {"worker1": client}
            stage.collector.look_soon()
            await stage.until(lambda client=client: stage.collector.mirrors["worker1"].client is client)


async def test_pods_are_shown_as_last_seen_until_new_credentials_show_them(stage: HubStage) -> None:
    stage.put_job()
    stage.put_pod()
    await stage.until(lambda: stage.collector.mirrors["worker1"].accepted)
    refused = Refuse(code=403, plural="pods", times=None)
    stage.worker.add_fault(refused)
    async with stage.worker.client(clock=stage.clock) as first, stage.worker.client(clock=stage.clock) as second:
        for renewed in (first, second, stage.worker_client):
            stage.workers.clients = {"worker1": renewed}
            await stage.until(lambda client=renewed: stage.collector.mirrors["worker1"].client is client)
            await stage.until(lambda: stage.collector.mirrors["worker1"].refusal)
            status = msgspec.json.decode((await stage.get("x")).body)["status"]
            assert (status["state"], status["readyPods"]) == ("Running", 1)
            assert "does not let MultiKueue's user see pods" in status["problem"]
        stage.worker.faults.remove(refused)
        await stage.until(lambda: stage.collector.mirrors["worker1"].former is None)
        await stage.until(lambda: stage.collector.mirrors["worker1"].accepted)


async def test_all_ranks_and_earlier_runs(stage: HubStage) -> None:
    stage.put_job()
    for rank in range(3):
        logs = stage.put_pod(f"x-node-0-{rank}-abcde", index=rank)
        stage.print(logs, 2)
        logs.restart()
        stage.put_pod(f"x-node-0-{rank}-abcde", index=rank, restarts=1)
        stage.print(logs, 3, 100)
    await stage.until_log(9, "x/log?rank=all")
    found = (await stage.get("x/log?rank=all")).text.splitlines()
    assert found == [f"[node-{rank}] line {number}" for number in range(100, 103) for rank in range(3)]
    assert (await stage.get("x/log?rank=2&previous=true")).text.splitlines() == numbered(2)
    stamped = (await stage.get("x/log?timestamps=true&tailLines=1")).text
    assert stamped.endswith("Z line 102\n")


async def test_a_reader_that_leaves_is_let_go(stage: HubStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "GONE_SECONDS", 0.02)
    reading = 0
    text = Follow.text

    async def counted(follow: Follow) -> AsyncGenerator[bytes, None]:
        nonlocal reading
        reading += 1
        try:
            async with aclosing(text(follow)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            reading -= 1

    monkeypatch.setattr(Follow, "text", counted)
    stage.put_job()
    logs = stage.put_pod()
    stage.print(logs, 1)
    await stage.until_log(1)
    async with (
        stage.session() as session,
        session.get(f"{ROOT}/namespaces/team/trainjobs/x/log?follow=true", headers={"X-Remote-User": "ana"}) as answer,
    ):
        assert await answer.content.readline() == b"line 0\n"
        assert reading == 1
    await stage.until(lambda: reading == 0)


async def test_one_user_reads_only_so_many_logs_at_once(stage: HubStage) -> None:
    stage.server._api.readers = Readers(ReaderSettings(user=1))  # type: ignore[attr-defined] # the Api's
    stage.put_job()
    stage.print(stage.put_pod(), 2)
    await stage.until_log(2)
    path = f"{ROOT}/namespaces/team/trainjobs/x/log?follow=true"
    async with stage.session() as session:
        async with session.get(path, headers={"X-Remote-User": "ana"}) as following:
            assert await following.content.readline() == b"line 0\n"
            refused = await stage.get("x/log")
            assert (refused.status, msgspec.json.decode(refused.body)["reason"]) == (429, "TooManyRequests")
            assert 'user "ana" reads 1 logs already' in msgspec.json.decode(refused.body)["message"]
            assert (await stage.get("x/log", user="ben")).status == 200
            assert (await stage.get("x/pods")).status == 200
        async with asyncio.timeout(PATIENCE):
            while (await stage.get("x/log")).status == 429:
                pass


async def test_text_can_be_limited_to_its_first_bytes(stage: HubStage) -> None:
    stage.put_job(condition="Complete")
    logs = stage.put_pod()
    stage.print(logs, 10)
    await stage.until_log(10)
    assert (await stage.get("x/log?limitBytes=10")).text == "line 0\nlin"
    assert (await stage.get("x/log?limitBytes=10&follow=true&tailLines=2")).text == "line 8\nlin"
    assert (await stage.get("x/log?limitBytes=10000")).text.splitlines() == numbered(10)
