"""The hub server as its users meet it, over TLS, before fake clusters."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import aiohttp
import msgspec
import pytest

from lab.pki import Authority
from tests.unit.hub.hubstage import ROOT, HubStage
from trainplane.kube.resource import PODS
from trainplane.kube.testing.faults import Refuse
from trainplane.resources import EVENTS

if TYPE_CHECKING:
    from pathlib import Path


# -- who is let in ------------------------------------------------------------------------------------------------


async def test_only_the_api_server_is_answered(stage: HubStage) -> None:
    stage.put_job()
    assert (await stage.get("x")).status == 200
    stranger = await stage.get("x", common_name=None)
    assert stranger.status == 401
    assert msgspec.json.decode(stranger.body)["reason"] == "Unauthorized"
    assert (await stage.get("x", common_name="ana")).status == 401
    assert (await stage.get(ROOT, common_name=None)).status == 401
    assert not [user for user, _ in stage.rules.asked if user.name != "ana"]


async def test_a_certificate_of_another_authority_ends_the_handshake(stage: HubStage, tmp_path: Path) -> None:
    other = Authority.create(tmp_path / "other", "other").issue("client", "front-proxy")
    context = ssl.create_default_context(cafile=str(tmp_path / "pki/ca.crt"))
    context.load_cert_chain(other.certificate, other.key)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{stage.port}", connector=connector) as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(ROOT)


async def test_the_user_is_who_the_api_server_says_and_needs_the_right_to_each_part(stage: HubStage) -> None:
    stage.put_job()
    stage.rules.denied = {("ben", "log"), ("ben", "pods")}
    assert (await stage.get("x", user="ben")).status == 200
    refused = await stage.get("x/log", user="ben")
    assert refused.status == 403
    assert msgspec.json.decode(refused.body)["message"] == (
        'user "ben" cannot get trainjobs/log.hub.trainplane.dev "x" in the namespace "team"'
    )
    assert (await stage.get("x/pods", user="ben")).status == 403
    assert (await stage.get("x/pods", user="ana")).status == 200


async def test_probes_need_no_certificate(stage: HubStage) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await stage.get(path, common_name=None)).text == "ok"
    stage.unready = "not listed yet"
    assert (await stage.get("/readyz", common_name=None)).status == 503
    assert (await stage.get("/healthz", common_name=None)).status == 200


async def test_clients_find_out_what_there_is(stage: HubStage) -> None:
    found = msgspec.json.decode((await stage.get(ROOT)).body)
    assert {entry["name"] for entry in found["resources"]} == {
        "trainjobs",
        *(f"trainjobs/{part}" for part in ("pods", "events", "log", "queue")),
    }
    groups = msgspec.json.decode((await stage.get("/apis")).body)
    assert [group["name"] for group in groups["groups"]] == ["hub.trainplane.dev"]
    assert (await stage.get("/apis/hub.trainplane.dev")).status == 200
    for path in ("/openapi/v2", "/openapi/v3", f"/openapi/v3{ROOT}"):
        assert (await stage.get(path)).status == 200
    assert stage.rules.asked == []


@pytest.mark.parametrize(
    ("path", "method", "code"),
    [
        (f"{ROOT}/pods", "GET", 404),
        (f"{ROOT}/namespaces/team/trainjobs/x/exec", "GET", 404),
        (f"{ROOT}/namespaces//trainjobs", "GET", 404),
        ("/metrics", "GET", 404),
        (f"{ROOT}/namespaces/team/trainjobs/x", "DELETE", 405),
        (f"{ROOT}/namespaces/team/trainjobs?watch=true", "GET", 405),
        (f"{ROOT}/namespaces/team/trainjobs/none", "GET", 404),
        (f"{ROOT}/namespaces/team/trainjobs/none/log", "GET", 404),
        (f"{ROOT}/namespaces/team/trainjobs/x/log?rank=first", "GET", 400),
    ],
)
async def test_what_is_not_there_is_told_as_a_status(stage: HubStage, path: str, method: str, code: int) -> None:
    stage.put_job()
    answer = await stage.get(path, method=method)
    status = msgspec.json.decode(answer.body)
    assert (answer.status, status["kind"], status["code"]) == (code, "Status", code)


# -- a job --------------------------------------------------------------------------------------------------------


async def test_a_job_is_shown_with_its_cluster_and_pods(stage: HubStage) -> None:
    stage.put_job()
    stage.put_pod()
    await stage.until(lambda: stage.archive.job("job-1"))
    status = msgspec.json.decode((await stage.get("x")).body)["status"]
    assert (status["cluster"], status["state"], status["readyPods"], status["pods"]) == ("worker1", "Running", 1, 1)
    pods = msgspec.json.decode((await stage.get("x/pods")).body)
    assert [item["metadata"]["annotations"]["hub.trainplane.dev/cluster"] for item in pods["items"]] == ["worker1"]
    stage.worker.remove(PODS, "x-node-0-0-abcde", "team")
    await stage.until(lambda: not stage.collector.mirrors["worker1"].keys("team", "x"))
    again = msgspec.json.decode((await stage.get("x/pods")).body)
    assert [item["metadata"]["name"] for item in again["items"]] == ["x-node-0-0-abcde"]


async def test_pods_of_a_lost_worker_do_not_count_where_another_has_the_job(stage: HubStage) -> None:
    stage.put_job()
    stage.put_pod()
    await stage.until(lambda: stage.archive.job("job-1"))
    await stage.worker.stop()
    await stage.until(lambda: stage.collector.mirrors["worker1"].problem)
    unseen = msgspec.json.decode((await stage.get("x")).body)["status"]
    assert (unseen["readyPods"], unseen["pods"]) == (1, 1), "as last seen, and the problem says so"
    stage.put_job(cluster="worker2")
    await stage.until(lambda: stage.jobs.place(stage.jobs.by_uid("job-1") or {}).cluster == "worker2")
    moved = msgspec.json.decode((await stage.get("x")).body)["status"]
    assert (moved["cluster"], moved["readyPods"], moved["pods"]) == ("worker2", 0, 0)
    stage.worker.add_fault(refused := Refuse(code=500, plural="pods", times=None))
    await stage.worker.start()
    await stage.until(lambda: not stage.collector.mirrors["worker1"].problem)
    answering = msgspec.json.decode((await stage.get("x")).body)["status"]
    assert (answering["readyPods"], answering["pods"]) == (0, 0), "it answers, and its pods are not read yet"
    stage.worker.faults.remove(refused)

    def is_read() -> bool:
        stage.worker.watching.send_bookmarks()
        return stage.collector.mirrors["worker1"].is_current

    await stage.until(is_read)
    read = msgspec.json.decode((await stage.get("x")).body)["status"]
    assert (read["readyPods"], read["pods"]) == (1, 1), "it is still there"


async def test_jobs_are_listed_as_objects_and_as_a_table(stage: HubStage) -> None:
    stage.put_job("x", uid="job-1")
    stage.put_job("y", uid="job-2", cluster=None)
    path = f"{ROOT}/namespaces/team/trainjobs"
    listed = msgspec.json.decode((await stage.get(path)).body)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["x", "y"]
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    await stage.until(lambda: all((job := stage.jobs.get("team", name)) and stage.jobs.workload(job) for name in "xy"))
    table = msgspec.json.decode((await stage.get(path, Accept=accept)).body)
    assert [row["cells"][:3] for row in table["rows"]] == [["x", "worker1", "Starting"], ["y", "<none>", "Waiting"]]
    one = msgspec.json.decode((await stage.get("x", Accept=accept)).body)
    assert (one["kind"], len(one["rows"])) == ("Table", 1)
    everywhere = await stage.get(f"{ROOT}/trainjobs?fieldSelector=metadata.name%3Dy")
    assert [item["metadata"]["name"] for item in msgspec.json.decode(everywhere.body)["items"]] == ["y"]


async def test_events_of_hub_and_worker_are_one_list(stage: HubStage) -> None:
    stage.put_job()
    stage.put_pod()
    await stage.until(lambda: stage.archive.job("job-1"))
    for server, name, kind, about, time in (
        (stage.hub, "h", "TrainJob", "x", "2026-11-15T05:00:02Z"),
        (stage.worker, "w", "Pod", "x-node-0-0-abcde", "2026-11-15T05:00:01Z"),
        (stage.worker, "other", "Pod", "y-node-0-0-abcde", "2026-11-15T05:00:01Z"),
        (stage.worker, "l", "Job", "x-node-0", "2026-11-15T05:00:03Z"),
    ):
        metadata = {"name": name, "namespace": "team"}
        server.put(
            EVENTS, {"metadata": metadata, "involvedObject": {"kind": kind, "name": about}, "lastTimestamp": time}
        )
    answer = await stage.get("x/events")
    found = msgspec.json.decode(answer.body)["items"]
    assert [item["metadata"]["name"] for item in found] == ["w", "h", "l"]
    assert "Warning" not in answer.headers
    await stage.worker.stop()
    cut_off = await stage.get("x/events")
    assert [item["metadata"]["name"] for item in msgspec.json.decode(cut_off.body)["items"]] == ["h"]
    assert "events of worker worker1 are missing" in cut_off.headers["Warning"]
