"""The count itself: a load test whose count cannot find a lost job, or one that ran twice, would prove nothing."""

from __future__ import annotations

from typing import Any

from tests.fleet import objects
from tests.fleet.load.evidence import FINALIZER, Evidence, counted

Tree = dict[str, Any]


def _pod(job: str, index: int, *, run: str = "first", phase: str = "Succeeded") -> Tree:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": job,
        "jobset.sigs.k8s.io/jobset-uid": run,
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    return {"metadata": {"labels": labels}, "status": {"phase": phase}}


def test_a_job_whose_nodes_all_succeeded_once_is_neither_lost_nor_twice() -> None:
    evidence = Evidence.gather({"worker1": [_pod("a", 0), _pod("a", 1)], "worker2": []})
    assert evidence.lost(["a"], nodes=2) == []
    assert evidence.twice(["a"]) == []
    assert evidence.workers() == {"worker1": 1}
    assert evidence.pods == 2


def test_a_job_without_a_pod_is_lost() -> None:
    assert Evidence.gather({"worker1": []}).lost(["a"], nodes=1) == ["a"]


def test_a_job_is_lost_when_one_of_its_nodes_never_succeeded() -> None:
    pods = [_pod("a", 0), _pod("a", 1, phase="Running"), _pod("b", 0), _pod("b", 1)]
    assert Evidence.gather({"worker1": pods}).lost(["a", "b"], nodes=2) == ["a"]


def test_nodes_that_succeeded_in_place_of_each_other_do_not_make_up_for_one() -> None:
    assert Evidence.gather({"worker1": [_pod("a", 0), _pod("a", 0)]}).lost(["a"], nodes=2) == ["a"]


def test_a_job_on_two_workers_ran_twice() -> None:
    evidence = Evidence.gather({"worker1": [_pod("a", 0)], "worker2": [_pod("a", 0, run="second")]})
    assert evidence.twice(["a"]) == ["a"]


def test_a_job_that_was_begun_again_on_its_worker_ran_twice_though_one_run_was_cut_short() -> None:
    pods = [_pod("a", 0, phase="Running"), _pod("a", 0, run="second")]
    assert Evidence.gather({"worker1": pods}).twice(["a"]) == ["a"]


def test_pods_of_a_counted_runtime_carry_the_finalizer_and_keep_their_annotations() -> None:
    (job,) = counted(objects.runtime("load", lasts="1s"))["spec"]["template"]["spec"]["replicatedJobs"]
    meta = job["template"]["spec"]["template"]["metadata"]
    assert meta["finalizers"] == [FINALIZER]
    assert list(meta["annotations"].values()) == ["1s"]
