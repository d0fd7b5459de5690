"""An archive that the release before left: records without digests, lines without checksums, whole pods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from tests.unit.hub.hubstage import HubStage
from tests.unit.hub.kept import NAMESPACE_UID, numbered, parsed, pod
from trainplane.hub.apiserver import logs
from trainplane.hub.apiserver.logquery import LogQuery
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.records import PodRecord, decode, encode
from trainplane.hub.logarchive.retention import Retention
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

NAME = "x-node-0-0-abcde"


def leave(data: Path, *, uid: str = "job-1", ended: bool = True, index: str = "0") -> Path:
    """Write what the release before wrote of a job with one pod; return the pod's folder."""
    folder = data / "jobs" / uid / f"uid-{NAME}"
    folder.mkdir(parents=True)
    job = {"uid": uid, "namespace": "team", "name": "x", "seen": 1.0, "finished": None, "deleted": None}
    (folder.parent / "job.json").write_text(json.dumps(job))
    tree = pod(NAME, annotations={"secret": "S" * 5000})
    tree["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = index
    (folder / "pod.json").write_text(json.dumps({"cluster": "worker1", "pod": tree}))
    lines = numbered(300)
    first = b"\n".join(lines[:200]) + b"\n"
    (folder / "node.0.000000000000.log").write_bytes(first)
    (folder / f"node.0.{len(first):012d}.log").write_bytes(
        b"\n".join(lines[200:]) + b"\n" + b"2026-11-15T05:11:08.1Z ha"
    )
    if ended:
        (folder / "node.0.end").write_text("ended")
    return folder


def test_everything_of_it_is_there(tmp_path: Path) -> None:
    leave(tmp_path)
    archive = Archive(tmp_path, Retention(), FakeClock())
    (job,) = archive
    (kept,) = job.pods.values()
    journal = kept.runs["node", 0]
    assert (journal.ended, kept.cluster, kept.name) == ("ended", "worker1", NAME)
    assert journal.read(0)[0].split(b"\n")[:200] == numbered(200)
    assert [line for _, line in journal.backward()] == numbered(300)[::-1]
    assert archive.set_aside.count == 0
    assert archive.latest("team", "x", NAMESPACE_UID) is None, "whose namespace it was, nobody knows"
    archive.close()


def test_lines_go_on_after_those_that_are_there(tmp_path: Path) -> None:
    leave(tmp_path, ended=False)
    for turn in range(3):
        archive = Archive(tmp_path, Retention(), FakeClock())
        job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
        kept = archive.put_pod(job, "worker1", parsed(pod(NAME)))
        journal = kept.journal("node", 0)
        assert [line for _, line in journal.backward()] == numbered(300 + 10 * turn)[::-1]
        archive.append(job, journal, numbered(10, 300 + 10 * turn))
        assert archive.latest("team", "x", NAMESPACE_UID) is job
        archive.close()
    assert b"SSSSS" not in (tmp_path / "jobs" / "job-1" / f"uid-{NAME}" / "pod.json").read_bytes()


def test_the_pod_that_kept_the_former_release_from_starting_is_set_aside(tmp_path: Path) -> None:
    leave(tmp_path, index="²")
    archive = Archive(tmp_path, Retention(), FakeClock())
    (job,) = archive
    assert (job.pods, archive.set_aside.count, len(list(archive.set_aside))) == ({}, 1, 1)
    archive.close()


async def test_its_namespace_is_noted_once_its_trainjob_is_seen(tmp_path: Path) -> None:
    folder = leave(tmp_path / "data")
    leave(tmp_path / "data", uid="job-0")
    async with HubStage(tmp_path) as stage:
        stage.put_job()
        await stage.until(lambda: (job := stage.archive.job("job-1")) and job.record.namespace_uid)
        assert len((await stage.get("x/log")).text.splitlines()) == 300
        await stage.archive.flush()
        record = msgspec.json.decode((folder.parent / "job.json").read_bytes())
        assert (record["version"], record["record"]["namespace_uid"]) == (2, NAMESPACE_UID)
        former = stage.archive.job("job-0")
        assert former is not None
        assert (former.record.namespace_uid, former.record.deleted is None) == ("", False)


async def test_pods_that_the_hub_sees_at_once_are_in_their_own_clusters_order(tmp_path: Path) -> None:
    """And so are those of an older release, whose records say nothing."""
    clock = FakeClock()
    archive = Archive(tmp_path / "data", Retention(), clock)
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    for name, created in (("b-new", "05:02:00"), ("a-old", "05:01:00")):
        tree = pod(f"x-node-0-0-{name}", created=f"2026-11-15T{created}Z")
        kept = archive.put_pod(job, "worker1", parsed(tree))
        archive.append(job, kept.journal("node", 0), numbered(1, text=name))
        await clock.advance(0.001)
    assert b"".join(logs.read(job, LogQuery(), 0)) == b"b-new 0\n"
    archive.close()
    for path in (tmp_path / "data/jobs/job-1").glob("*/pod.json"):
        record = decode(path.read_bytes(), PodRecord)
        older = msgspec.defstruct("PodRecord", [("cluster", str), ("pod", msgspec.Raw), ("job", str)])
        path.write_bytes(encode(older(record.cluster, record.pod, record.job)))
    archive = Archive(tmp_path / "data", Retention(), clock)
    found = archive.job("job-1")
    assert found is not None
    assert archive.set_aside.count == 0
    assert b"".join(logs.read(found, LogQuery(), 0)) == b"b-new 0\n"
    archive.close()
