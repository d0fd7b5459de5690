"""What the pods of a local job add to its status: the first fault and the timeline, as on a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.unit.client.reading.documents import condition, ended, pod, train_job
from trainplane.api import document
from trainplane.api.trainjob import TrainJob, TrainJobStatus
from trainplane.client.backends.local.witness import PER_ATTEMPT, Witness

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 15, 6, tzinfo=UTC)
STAMP = "2026-11-15T05:00:30.000000Z"


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "log")


def job(status: TrainJobStatus | None = None, **spec: Any) -> TrainJob:
    return msgspec.structs.replace(document.view(train_job(spec=spec), TrainJob), status=status or TrainJobStatus())


def printed(witness: Witness, step: str, *lines: str) -> None:
    with witness.log.open("a") as file:
        file.writelines(f"{STAMP} {step} {line}\n" for line in lines)


def of_attempt(number: int) -> dict[str, str]:
    return {"jobset.sigs.k8s.io/restart-attempt": str(number)}


def test_a_fault_is_kept_with_the_lines_of_its_step(witness: Witness) -> None:
    printed(witness, "node-1", "Traceback (most recent call last):", "KeyError: 'x'")
    printed(witness, "node-0", "fine")
    pods = {"node-0": pod(0), "node-1": pod(1, "Failed", state=ended(1))}
    after = witness.testify(job(), TrainJobStatus(), pods, 2, NOW)
    fault = after.first_fault
    assert fault is not None
    assert (fault.cause, fault.index, fault.log[-1]) == ("PythonError", 1, "KeyError: 'x'")


def test_it_outlives_its_pods_until_the_next_attempt_has_one(witness: Witness) -> None:
    first = witness.testify(job(), TrainJobStatus(), {"node-0": pod(0, "Failed", state=ended(1))}, 1, NOW)
    fresh = {"node-0": pod(0, labels=of_attempt(1))}
    second = witness.testify(job(first), first, fresh, 1, NOW)
    assert second.first_fault == first.first_fault
    (restarted,) = (one for one in second.timeline if one.stage == "Restarted")
    assert (restarted.number, restarted.reason) == (1, "ExitCode in node 0")
    broken = {"node-0": pod(0, "Failed", state=ended(137, reason="OOMKilled"), labels=of_attempt(1))}
    third = witness.testify(job(second), second, broken, 1, NOW)
    assert third.first_fault is not None
    assert (third.first_fault.cause, third.first_fault.restart) == ("OutOfMemory", 1)


def test_a_job_that_is_held_has_none_and_one_that_is_over_keeps_its_own(witness: Witness) -> None:
    pods = {"node-0": pod(0, "Failed", state=ended(143))}
    assert witness.testify(job(suspend=True), TrainJobStatus(), pods, 1, NOW).first_fault is None
    over = document.view(train_job(conditions=[condition("Complete")])["status"], TrainJobStatus)
    assert witness.testify(job(over), over, pods, 1, NOW) == over


def test_not_every_pod_of_many_is_judged(witness: Witness) -> None:
    pods = {f"node-{rank}": pod(rank, "Failed", state=ended(1)) for rank in range(50)}
    witness.testify(job(), TrainJobStatus(), pods, 50, NOW)
    assert len(witness._judged) == PER_ATTEMPT


def test_stages_are_told_once(witness: Witness) -> None:
    times = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-15T05:00:01Z"}
    pods = {"node-0": pod(0, status={"conditions": [times, {**times, "type": "Ready"}]})}
    after = witness.testify(job(), TrainJobStatus(), pods, 1, NOW)
    assert [one.stage for one in after.timeline] == ["Scheduled", "Pulled", "Running"]
    assert witness.testify(job(after), after, pods, 1, NOW + timedelta(minutes=1)) == after
