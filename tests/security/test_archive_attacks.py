"""Attacks on the hub's kept logs, on the real process: by pods, by their authors, by neighbours, by a full disk."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.security.hub_process import PATIENCE, hub_process
from tests.security.volumes import RETENTION, TEAMS, Damage, build, fill, job_uid, mounted
from tests.unit.hub.hubstage import reference
from tests.unit.hub.kubelet import SECOND, START
from tests.unit.hub.test_archive_old import leave
from trainplane.hub.logarchive.archive import Archive
from trainplane.kube.resource import PODS
from trainplane.kube.testing.clock import FakeClock
from trainplane.resources import JOB_SETS, JOBS, NAMESPACES, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.security.hub_process import HubProcess

Tree = dict[str, Any]

MIB = 1 << 20
LATE = "2026-12-01T00:00:00Z"


def used(folder: Path) -> int:
    """Return the bytes that files below a folder take."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def has(folder: Path, text: bytes) -> bool:
    """Return whether any file of lines has a text."""
    found = False
    for path in folder.rglob("node.*"):
        with contextlib.suppress(FileNotFoundError):
            found |= text in path.read_bytes()
    return found


# -- one pod against the server -----------------------------------------------------------------------------------


@pytest.mark.attack("author of a pod beside a TrainJob", "a hub server that never starts again")
async def test_brick_the_hub_by_the_number_of_a_pod(tmp_path: Path) -> None:
    async with hub_process(tmp_path) as hub:
        hub.put_namespace("red")
        hub.put_job("red", "x", "red-x")
        owner = hub.put_owners("red", "x", "red-x")
        for number, index in enumerate(("²", "9" * 400, "\u0661")):
            annotations = {"batch.kubernetes.io/job-completion-index": index}
            labels = {"jobset.sigs.k8s.io/jobset-name": "x"}
            hub.put_pod("red", f"bad-{number}", "x", owner, metadata={"annotations": annotations, "labels": labels})
        logs = hub.put_pod("red", "good", "x", owner)
        hub.print(logs, "honest", 3)
        assert len(await hub.until_log("red", "x", 3)) == 3
        await hub.restart()
        assert await hub.pods("red", "x") == ["good"]
        assert len(await hub.until_log("red", "x", 3)) == 3


# -- lines in another's job ---------------------------------------------------------------------------------------


def forgeries(hub: HubProcess) -> dict[str, Tree | None]:
    """Return the owners that forged pods name, with what their author can put beside them."""
    hub.put_job("red", "y", "red-y")
    hub.put_namespace("blue")
    hub.put_job("blue", "z", "blue-z")
    of_set = reference(JOB_SETS, "set", "set")
    for resource, name, owners in ((JOBS, "mine", []), (JOB_SETS, "set", []), (JOBS, "of-set", [of_set])):
        hub.server.put(
            resource, {"metadata": {"name": name, "namespace": "red", "uid": name, "ownerReferences": owners}}
        )
    return {
        "no-owner": None,
        "a-job-that-is-not-there": reference(JOBS, "none", "none"),
        "another-job-of-that-name": reference(JOBS, "x-node-0", "jobs-of-before"),
        "the-uid-of-the-job-with-another-name": reference(JOBS, "none", "jobs-red-x"),
        "a-job-of-its-own": reference(JOBS, "mine", "mine"),
        "a-job-whose-jobset-is-no-trainjobs": reference(JOBS, "of-set", "of-set"),
        "a-job-of-another-trainjob": hub.put_owners("red", "y", "red-y"),
        "a-job-of-another-namespace": hub.put_owners("blue", "z", "blue-z"),
        "the-jobset-itself": reference(JOB_SETS, "x", "jobsets-red-x"),
    }


@pytest.mark.attack("author of a pod that no TrainJob made", "lines in a TrainJob's log, by a label")
async def test_put_lines_into_a_job_by_a_label(tmp_path: Path) -> None:
    async with hub_process(tmp_path) as hub:
        hub.put_namespace("red")
        hub.put_job("red", "x", "red-x")
        owner = hub.put_owners("red", "x", "red-x")
        names = forgeries(hub)
        for name, forged in names.items():
            hub.print(hub.put_pod("red", name, "x", forged, created=LATE), f"forged by {name}", 5)
        hub.print(hub.put_pod("red", "honest", "x", owner), "honest", 3)
        hub.print(hub.put_pod("red", "of-y", "y", names["a-job-of-another-trainjob"]), "of y", 3)
        assert await hub.until_log("red", "x", 3) == [f"honest {number}" for number in range(3)]
        refused = {*names} - {"a-job-of-another-trainjob"}
        await hub.until("forged pods to be refused", lambda: len(hub.said("pod is refused")) >= len(refused))
        assert {line["pod"].partition("/")[2] for line in hub.said("pod is refused")} == refused
        assert await hub.until_log("red", "y", 3) == [f"of y {number}" for number in range(3)]
        assert await hub.pods("red", "x") == ["honest"]
        assert "forged" not in (await hub.get("red", "x/log?rank=all"))[1]
        files = [path for path in hub.data.rglob("*") if path.is_file()]
        assert [path for path in files if b"forged" in path.read_bytes()] == []


@pytest.mark.attack("tenant of another namespace", "that a job seems to be on a cluster of theirs")
async def test_move_a_job_by_a_workload_of_another_namespace(tmp_path: Path) -> None:
    async with hub_process(tmp_path) as hub:
        hub.put_namespace("red")
        hub.put_job("red", "x", "red-x", cluster="worker1")
        hub.put_workload("mallory", "evil", "red-x", "evil", LATE)
        hub.put_workload("red", "trainjob-x", "red-x", "worker1", "2026-11-15T05:00:00Z")
        async with asyncio.timeout(PATIENCE):
            text = ""
            while '"cluster":"worker1"' not in text:
                text = (await hub.get("red", "x"))[1]
                assert '"cluster":"evil"' not in text


# -- a neighbour's room -------------------------------------------------------------------------------------------


@pytest.mark.attack("author of TrainJobs that print without end", "room that other namespaces' logs have")
async def test_push_out_the_logs_of_another_namespace(tmp_path: Path) -> None:
    async with hub_process(tmp_path, "--keep-job-bytes=1536Ki", "--keep-total-bytes=2Mi") as hub:
        for team, job in (("blue", "x"), ("red", "x"), ("red", "y")):
            hub.put_namespace(team)
            hub.put_job(team, job, f"{team}-{job}")
        quiet = hub.put_pod("blue", "quiet", "x", hub.put_owners("blue", "x", "blue-x"))
        hub.print(quiet, "mine", 100)
        mine = await hub.until_log("blue", "x", 100)
        quiet.end()
        hub.put_pod("blue", "quiet", "x", hub.put_owners("blue", "x", "blue-x"), state="terminated")
        hub.put_job("blue", "x", "blue-x", condition="Complete")
        for job in ("x", "y"):
            loud = hub.put_pod("red", f"loud-{job}", job, hub.put_owners("red", job, f"red-{job}"))
            for number in range(400):
                loud.write(START + number * SECOND, b"%s %05d " % (job.encode(), number) + b"x" * 4000)
            last = b" %s 00399 x" % job.encode()
            await hub.until("all that is loud", lambda last=last: has(hub.data, last))  # type: ignore[misc]
        await hub.restart()
        assert len(await hub.until_log("red", "y", 100)) >= 100
        assert await hub.until_log("blue", "x", 100) == mine
        assert used(hub.data) <= 2 * MIB


@pytest.mark.attack("author of a TrainJob whose container starts over and over", "the whole volume")
async def test_fill_the_volume_by_restarts(tmp_path: Path) -> None:
    async with hub_process(tmp_path, "--keep-job-bytes=1Mi", "--keep-total-bytes=4Mi") as hub:
        hub.put_namespace("red")
        hub.put_job("red", "x", "red-x")
        owner = hub.put_owners("red", "x", "red-x")
        logs = hub.put_pod("red", "again", "x", owner)
        for run in range(30):
            for number in range(25):
                logs.write(START + (run * 100 + number) * SECOND, b"%03d/%02d " % (run, number) + b"x" * 4000)
            await hub.until(f"run {run}", lambda run=run: has(hub.data, b" %03d/24 x" % run))  # type: ignore[misc]
            logs.restart()
            hub.put_pod("red", "again", "x", owner, restarts=run + 1)
            assert used(hub.data / "jobs") <= 1 * MIB + 2 * 4096, "more than the job may have, with the folder itself"
        logs.write(START + 10_000 * SECOND, b"the last run")
        assert await hub.until_log("red", "x", 1) == ["the last run"]


# -- those who were there before ----------------------------------------------------------------------------------


@pytest.mark.attack("the next tenant of a namespace's name", "the former tenant's logs")
async def test_read_the_logs_of_a_former_tenant(tmp_path: Path) -> None:
    async with hub_process(tmp_path) as hub:
        hub.put_namespace("team", "ns-before")
        hub.put_job("team", "x", "before")
        logs = hub.put_pod("team", "p", "x", hub.put_owners("team", "x", "before"))
        hub.print(logs, "secret of before", 3)
        await hub.until_log("team", "x", 3)
        for resource, name in ((PODS, "p"), (TRAIN_JOBS, "x"), (JOBS, "x-node-0"), (JOB_SETS, "x")):
            hub.server.remove(resource, name, "team")
        assert len(await hub.until_log("team", "x", 3)) == 3, "its owner may still look"
        hub.server.remove(NAMESPACES, "team")
        assert (await hub.get("team", "x/log"))[0] == 404
        hub.put_namespace("team", "ns-after")
        for path in ("x/log", "x/log?follow=true", "x/log?rank=all", "x/pods", "x/events", "x"):
            status, text = await hub.get("team", path)
            assert (status, "secret" in text) == (404, False), path
        hub.put_job("team", "x", "after")
        hub.print(hub.put_pod("team", "q", "x", hub.put_owners("team", "x", "after")), "mine", 2)
        assert await hub.until_log("team", "x", 2) == ["mine 0", "mine 1"]
        await hub.restart()
        assert await hub.until_log("team", "x", 2) == ["mine 0", "mine 1"]
        assert "secret" not in (await hub.get("team", "x/log?rank=all&previous=true"))[1]


@pytest.mark.attack("reader of the hub view, or of its volume", "secrets in the arguments and variables of pods")
async def test_find_the_secrets_of_a_pod_in_the_view_or_on_the_volume(tmp_path: Path) -> None:
    async with hub_process(tmp_path) as hub:
        hub.put_namespace("red")
        hub.put_job("red", "x", "red-x")
        owner = hub.put_owners("red", "x", "red-x")
        secrets = {
            "command": ["train", "--token=classified"],
            "args": ["classified " * 50_000],
            "env": [{"name": "TOKEN", "value": "classified"}],
        }
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": "classified"}
        logs = hub.put_pod("red", "p", "x", owner, container=secrets, metadata={"annotations": annotations})
        hub.print(logs, "line", 3)
        await hub.until_log("red", "x", 3)
        assert await hub.pods("red", "x") == ["p"]
        assert "classified" not in (await hub.get("red", "x/pods"))[1]
        files = [path for path in hub.data.rglob("*") if path.is_file()]
        assert [path for path in files if b"classified" in path.read_bytes()] == []
        assert used(hub.data) < 64 << 10


# -- what is on the volume ----------------------------------------------------------------------------------------


@pytest.mark.attack("a bad disk, a restore by hand", "a hub server that never starts again")
@pytest.mark.parametrize("seed", range(5))
async def test_brick_the_hub_by_a_damaged_volume(tmp_path: Path, seed: int) -> None:
    outside = tmp_path / "outside" / "secret"
    outside.parent.mkdir()
    outside.write_bytes(b"2026-01-01T00:00:00Z classified\n")
    async with hub_process(tmp_path, start=False) as hub:
        good = build(hub.data)
        damage = Damage(hub.data, Random(seed), outside)  # noqa: S311 cases that can be repeated
        for _ in range(6):
            damage.do()
        for team, jobs in TEAMS.items():
            hub.put_namespace(team)
            for number in range(jobs):
                hub.put_job(team, f"job-{number}", job_uid(team, number))
        await hub.start()
        for log, lines in good.items():
            team, _, which = log.job.rpartition("-job-")
            _, text = await hub.get(team, f"job-{which}/log?rank=all")
            for line in text.splitlines():
                if line.startswith("[node-"):
                    assert "[trainplane] " in line or log.job in line
            assert "classified" not in text
            assert lines
        assert hub.said("what is kept cannot be read and is set aside")


@pytest.fixture
def small_volume(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a volume of 2 MiB."""
    with mounted(tmp_path / "data", "2m") as folder:
        yield folder


@pytest.mark.attack("whoever prints", "a hub server that ends when its disk is full, and never starts again")
async def test_fill_the_disk_under_the_server(tmp_path: Path, small_volume: Path) -> None:
    for number in range(12):
        leave(small_volume, uid=f"gone-{number}")
    fill(small_volume / "ballast")
    async with hub_process(tmp_path) as hub:  # the TrainJobs are gone from the hub, and each record has to say so
        hub.put_namespace("green")
        hub.put_job("green", "x", "green-x")
        logs = hub.put_pod("green", "p", "x", hub.put_owners("green", "x", "green-x"))
        for number in range(40):
            logs.write(START + number * SECOND, b"%02d " % number + b"x" * 2000)
        assert len(await hub.until_log("green", "x", 40)) == 40
        await hub.restart()
        assert len(await hub.until_log("green", "x", 40)) == 40
    archive = Archive(small_volume, RETENTION, FakeClock())
    assert archive.set_aside.count == 0
    archive.close()
    shutil.rmtree(small_volume / "jobs")
