"""The operator's mirror of pods: what it keeps, and what is news."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.unit.operator.objects import NAMESPACE, Tree, pod
from trainplane.kube.resource import Key
from trainplane.operator.pods import NEWS_SECONDS, PodMirror, news, pod_store

if TYPE_CHECKING:
    from trainplane.kube.store import Change, Store

JOB = Key(NAMESPACE, "job")


def put(store: Store, tree: Tree, version: int = 1) -> Change:
    tree = {**tree, "metadata": {**tree["metadata"], "resourceVersion": str(version)}}
    header = store.read(msgspec.Raw(msgspec.json.encode(tree)))
    (change,) = store.put(header)
    return change


def test_no_secret_and_no_code_is_kept() -> None:
    store = pod_store()
    change = put(store, pod(jobset_uid="u"))
    assert change.new is not None
    assert b"hunter2" not in change.new.data
    assert b"secret-team" not in change.new.data
    assert len(change.new.data) < 750


def test_what_a_pod_writes_is_cut() -> None:
    store = pod_store()
    huge = pod(jobset_uid="u", exit_code=1)
    huge["status"]["message"] = "m" * 100_000
    shown = huge["status"]["containerStatuses"][0]
    shown["state"]["terminated"]["message"] = "x" * 100_000 + "the end"
    huge["status"]["containerStatuses"] = [{**shown, "name": f"c{number}"} for number in range(1000)]
    change = put(store, huge)
    assert change.new is not None
    assert len(change.new.data) < 32_000
    assert b"the end" in change.new.data


def test_a_pod_that_does_not_fit_is_kept_by_name_alone() -> None:
    store = pod_store()
    broken = pod(jobset_uid="u")
    broken["status"]["containerStatuses"] = "none"
    change = put(store, broken)
    assert PodMirror(store).of(JOB, "u") == []
    assert news(change) == (JOB, NEWS_SECONDS)


def test_pods_are_found_by_their_jobset_and_its_uid() -> None:
    store = pod_store()
    put(store, pod(0, jobset_uid="u"))
    put(store, pod(1, jobset_uid="another"), 2)
    mirror = PodMirror(store)
    assert [one.metadata.name for one in mirror.of(JOB, "u")] == ["job-node-0-0-a0"]
    assert mirror.of(Key("elsewhere", "job"), "u") == []


def test_what_is_not_kept_is_no_news() -> None:
    store = pod_store()
    put(store, pod(jobset_uid="u"))
    later = pod(jobset_uid="u")
    later["status"]["hostIP"] = "10.0.0.1"
    later["metadata"]["annotations"] = {"a": "b"}
    assert news(put(store, later, 2)) is None
    assert news(put(store, pod(jobset_uid="u", ready=False), 3)) == (JOB, NEWS_SECONDS)


def test_a_fault_does_not_wait() -> None:
    store = pod_store()
    assert news(put(store, pod(jobset_uid="u", exit_code=1))) == (JOB, 0.0)


def test_words_that_take_turns_are_one() -> None:
    for number, word in enumerate(("ErrImagePull", "ImagePullBackOff")):
        store = pod_store()
        waiting = pod(jobset_uid="u", phase="Pending")
        waiting["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": word}}
        put(store, waiting, number + 1)
        (seen,) = PodMirror(store).of(JOB, "u")
        assert seen.wait == "ImagePullBackOff"


def test_a_pod_that_broke_was_ready_when_its_containers_had_started_unless_they_had_to_answer() -> None:
    store = pod_store()
    broken, probed = pod(0, jobset_uid="u", exit_code=1), pod(1, jobset_uid="u", exit_code=1)
    for one in (broken, probed):
        one["status"]["containerStatuses"][0]["state"]["terminated"]["startedAt"] = "2026-01-01T00:00:07Z"
    probed["spec"]["containers"][0]["readinessProbe"] = {"httpGet": {"path": "/secret-hunter2", "port": 1}}
    put(store, broken)
    change = put(store, probed, 2)
    seen = sorted(PodMirror(store).of(JOB, "u"), key=lambda one: one.metadata.name)
    first, second = (one.times for one in seen)
    assert (first.ready, second.ready) == ("2026-01-01T00:00:07Z", "")
    assert change.new is not None
    assert b"hunter2" not in change.new.data


def test_container_that_could_not_start_has_no_start_time() -> None:
    store = pod_store()
    broken = pod(jobset_uid="u", exit_code=128, reason="StartError")
    broken["status"]["containerStatuses"][0]["state"]["terminated"]["startedAt"] = "1970-01-01T00:00:00Z"
    put(store, broken)
    (seen,) = PodMirror(store).of(JOB, "u")
    assert (seen.times.started, seen.times.ready, seen.times.waits) == ("", "", True)
