"""Every framework's page has an example that trains, on real pods: what the page says is what is run here."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.pages import documents

if TYPE_CHECKING:
    from tests.e2e.user import User
    from tests.suite import SuiteReport

_INDEX = "batch.kubernetes.io/job-completion-index"

FRAMEWORKS = {
    "torch": ("torch", "step 1:", "of 2: w=3.00 b=1.00"),
    "mpi": ("torch", "step 1:", "4 processes on 2 hosts, sum 10"),
    "jax": ("frameworks", "step 1:", "of 2: w=3.00 b=1.00"),
    "xgboost": ("frameworks", "[0]", "of 2: rmse=0.0"),
    "tensorflow": ("frameworks", "step 1:", "of 2: w=3.00 b=1.00"),
}
"""The page → the lab's image, what the first step prints, what the end prints."""


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text[:19] + "+00:00")


def _steps_on_three(lines: list[str]) -> int:
    """Return how far training has come with all its nodes."""
    return max((int(match[1]) for line in lines if (match := re.match(r"step (\d+) on 3 nodes", line))), default=0)


def _first(user: User, job: str, step: str, beginning: str) -> dt.datetime:
    """Return when a pod of a step first printed this."""
    lines = user.kubectl("logs", f"--selector=job-name={job}-{step}-0", "--tail=-1", "--timestamps").stdout.splitlines()
    times = [_time(line) for line in lines if beginning in line]
    assert times, f"no line of {job} has {beginning!r}:\n" + "\n".join(lines)
    return min(times)


def _record(user: User, report: SuiteReport, framework: str, job: dict[str, Any], first: dt.datetime) -> None:
    created = _time(user.get("trainjob", job["metadata"]["name"])["metadata"]["creationTimestamp"])
    complete = user.condition(job["metadata"]["name"], "Complete")
    assert complete is not None
    report.row(
        framework=framework,
        nodes=job["spec"]["trainer"]["numNodes"],
        first_step_s=(first - created).total_seconds(),
        completion_s=(_time(complete["lastTransitionTime"]) - created).total_seconds(),
    )
    report.figure("frameworks_trained", report.figures.get("frameworks_trained", 0) + 1)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_two_nodes_train(framework: str, user: User, report: SuiteReport) -> None:
    image_name, beginning, end = FRAMEWORKS[framework]
    runtime, job = documents(framework, image_name)
    name, step = job["metadata"]["name"], runtime["spec"]["template"]["spec"]["replicatedJobs"][-1]["name"]
    user.apply(runtime, job)
    user.wait_state(name, "Succeeded")
    assert any(end in line for line in user.logs(name, step)), "\n".join(user.logs(name, step))
    _record(user, report, framework, job, _first(user, name, step, beginning))


def test_training_goes_on_without_one_of_three_pods(user: User, report: SuiteReport) -> None:
    runtime, job = documents("torch-elastic", "torch")
    folder = f"/tmp/checkpoints-{user.namespace}"
    checkpoints = {"name": "checkpoints", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
    pod = job["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    pod["template"]["spec"]["template"]["spec"]["volumes"] = [checkpoints]
    user.apply(runtime, job)
    name = job["metadata"]["name"]
    # With all three: training begins without one that comes late, and the pod that is lost must be one that trains.
    user.wait("some steps", lambda: _steps_on_three(user.logs(name, check=False)) >= 5)
    jobset, first = user.get("jobset", name)["metadata"]["uid"], _first(user, name, "node", "step 1 ")
    lost = next(pod for pod in user.pods(name) if pod["metadata"]["labels"][_INDEX] == "2")
    user.kubectl("delete", "pod", lost["metadata"]["name"], "--wait=false")
    user.wait_state(name, "Succeeded", via=["Pending", "Running", "Restarting"])

    lines = user.logs(name)  # of containers that were started again, what they printed since
    saved = max(int(match[1]) for line in lines if (match := re.search(r"begins after step (\d+)", line)))
    assert saved >= 5, "training began anew and not from its checkpoint:\n" + "\n".join(lines)
    steps = {int(match[1]) for line in lines if (match := re.match(r"step (\d+) on", line))}
    assert set(range(saved + 1, 61)) <= steps
    assert user.get("jobset", name)["metadata"]["uid"] == jobset
    assert lost["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in user.pods(name)}
    _record(user, report, "torch-elastic", job, first)


def test_the_table_can_be_read(report: SuiteReport, capsys: pytest.CaptureFixture[str]) -> None:
    """Print it last: what was trained, and how long it took."""
    rows = [row for row in report.rows if "framework" in row]
    assert len(rows) == len(FRAMEWORKS) + 1
    with capsys.disabled():
        print(f"\n{'framework':<16}{'nodes':>6}{'first step, s':>15}{'completion, s':>15}")  # noqa: T201 for readers
        for row in rows:
            print(f"{row['framework']:<16}{row['nodes']:>6}{row['first_step_s']:>15}{row['completion_s']:>15}")  # noqa: T201 the same
