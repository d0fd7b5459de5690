"""What is seen of jobs becomes the right times: each counts from before its create was sent, and is taken once."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from benchmarks.life.drive import Lives, Plan, Seen

Tree = dict[str, Any]


def _seen(name: str, *, conditions: tuple[str, ...] = (), phase: str = "", job: str = "", owner: str = "") -> Seen:
    meta: Tree = {"name": name}
    if job:
        meta["labels"] = {"jobset.sigs.k8s.io/jobset-name": job}
    if owner:
        meta["ownerReferences"] = [{"name": owner, "kind": "TrainJob"}]
    status = {"phase": phase, "conditions": [{"type": kind, "status": "True"} for kind in conditions]}
    return msgspec.json.decode(json.dumps({"metadata": meta, "status": status}), type=Seen)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the moment that it is."""
    moment = [10.0]
    monkeypatch.setattr("benchmarks.life.drive.time.monotonic", lambda: moment[0])
    return moment


def _lives(**plan: Any) -> Lives:
    lives = Lives(Plan("ns", ["a", "b"], {}, pods=2, kueue=True, **{"complete": 2, **plan}))
    lives.sent |= {"a": 10.0, "b": 10.0}
    lives.created |= {"a": 11.0, "b": 12.0}
    return lives


def test_a_job_runs_when_the_last_of_its_pods_does(now: list[float]) -> None:
    lives = _lives()
    lives.see_pod(_seen("a-0", job="a", phase="Running"))
    lives.see_pod(_seen("a-0", job="a", phase="Running"))
    lives.see_pod(_seen("a-1", job="a", phase="Pending"))
    assert lives.running == {}
    now[0] = 13.0
    lives.see_pod(_seen("a-1", job="a", phase="Succeeded"))
    now[0] = 14.0
    lives.see_pod(_seen("a-0", job="a", phase="Succeeded"))
    assert lives.running == {"a": 13.0}


def test_a_life_is_timed_from_its_sending(now: list[float]) -> None:
    lives = _lives()
    now[0] = 15.0
    lives.see_workload(_seen("trainjob-a-1", conditions=("QuotaReserved",), owner="a"))
    assert lives.admitted == {}
    lives.see_workload(_seen("trainjob-a-1", conditions=("QuotaReserved", "Admitted"), owner="a"))
    now[0] = 20.0
    lives.see_job(_seen("a", conditions=("Complete",)))
    assert not lives.over.is_set()
    now[0] = 30.0
    lives.see_job(_seen("a", conditions=("Complete",)))
    lives.see_job(_seen("b", conditions=("Complete",)))
    assert lives.over.is_set()
    figures = lives.figures()
    assert (figures["created_p50_s"], figures["admitted_p99_s"], figures["complete_p50_s"]) == (2.0, 5.0, 20.0)
    assert (figures["seconds"], figures["jobs_per_s"], figures["creating_s"]) == (20.0, 0.1, 2.0)
    assert "running_p50_s" not in figures


def test_a_failure_ends_the_wait_and_is_told(now: list[float]) -> None:
    lives = _lives()
    lives.see_job(_seen("b", conditions=("Failed",)))
    assert lives.over.is_set()
    assert lives.figures()["failed"] == ["b"]


def test_pods_are_awaited_where_no_end_is(now: list[float]) -> None:
    lives = _lives(complete=0, running=1)
    lives.see_job(_seen("a"))
    assert not lives.over.is_set()
    for pod in ("a-0", "a-1"):
        lives.see_pod(_seen(pod, job="a", phase="Running"))
    assert lives.over.is_set()
