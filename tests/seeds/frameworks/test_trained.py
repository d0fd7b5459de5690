"""The shipped runtimes train, with real wheels on real pods: the pages' examples, and torchtune on models made here.

Runtimes are the shipped files with the lab's images. That something was learned is read from the pods' logs: a loss
that fell, and the same weights on both nodes. `frameworks_trained` counts the runtimes that trained in this very run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e import test_frameworks as e2e
from tests.e2e.pages import documents
from tests.seeds.frameworks import tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.user import User
    from tests.suite import SuiteReport

PAGES: Final = {"deepspeed": "deepspeed", "mlx": "mlx", "paddle": "paddle"}
"""The page → the image of the lab, which is built with FULL=1 alone."""
TUNED: Final = ("torchtune-llama3.2-1b", "torchtune-llama3.2-3b", "torchtune-qwen2.5-1.5b")
AGAIN: Final = [framework for framework in e2e.FRAMEWORKS if framework != "mpi"]
"""What e2e trains is trained again: the count is of one run. Its MPI example adds numbers and trains nothing."""
FEWEST: Final = 11
"""How many runtimes must have trained at full size."""

_LOSS: Final = re.compile(r"(?:process|node) (\d)(?: of 2)?, step (\d+): loss=([\d.]+)")
_STEP: Final = re.compile(r"Step (\d+) \| loss:([\d.]+)")
_WEIGHTS: Final = re.compile(r"(?:process|node) (\d) of 2: (w=[\d.]+ b=[\d.]+)")


def _losses(lines: list[str]) -> dict[str, list[float]]:
    """Return what each rank printed of its loss, by rank, in the order of steps."""
    found = sorted((rank, int(step), float(loss)) for line in lines for rank, step, loss in _LOSS.findall(line))
    return {rank: [loss for other, _, loss in found if other == rank] for rank, _, _ in found}


def _trained(report: SuiteReport, runtime: str, **figures: Any) -> None:
    report.row(trained=runtime, **figures)
    report.figure("frameworks_trained", len(_counted(report)))


def _counted(report: SuiteReport) -> set[str]:
    """Return the runtimes that trained in this run: of this module, and those of e2e's own tests."""
    rows = (row.get("trained") or row.get("framework") for row in report.rows)
    return {name for name in rows if name}


def _wait_over(user: User, job: str, step: str) -> list[str]:
    """Wait until a TrainJob has succeeded; return what it printed, which a failure shows at once."""
    user.wait(f"{job} to be over", lambda: user.state(job) in {"Succeeded", "Failed"})
    lines = user.logs(job, step)
    assert user.state(job) == "Succeeded", "\n".join(lines)
    return lines


def _train(page: str, image_name: str, user: User, report: SuiteReport) -> None:
    runtime, job = documents(page, image_name)
    name, step = job["metadata"]["name"], runtime["spec"]["template"]["spec"]["replicatedJobs"][-1]["name"]
    user.apply(runtime, job)
    lines = _wait_over(user, name, step)
    told = "\n".join(lines)
    losses = _losses(lines)
    assert losses.keys() == {"0", "1"}, told
    assert all(first > 100 * last for first, last in losses.values()), told
    weights = {rank: values for line in lines for rank, values in _WEIGHTS.findall(line)}
    assert len(weights) == 2, told
    assert len(set(weights.values())) == 1, told
    assert [float(text[2:]) for text in weights["0"].split()] == pytest.approx([3, 1], abs=0.01)
    _trained(report, page, losses=losses["0"])


def test_plain_ml(user: User, report: SuiteReport) -> None:
    _train("plainml", "python", user, report)


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_a_page_s_example(page: str, user: User, report: SuiteReport, on_node: Callable[[str], None]) -> None:
    on_node(PAGES[page])
    _train(page, PAGES[page], user, report)


@pytest.mark.full
@pytest.mark.parametrize("runtime_name", TUNED)
def test_torchtune(
    runtime_name: str, user: User, report: SuiteReport, on_node: Callable[[str], None], tmp_path: Path
) -> None:
    """LoRA by two processes, on a claim that the runtime's two initializers filled: with a model made here."""
    on_node("torchtune")
    runtime, job = tiny_model.documents(runtime_name)
    name = job["metadata"]["name"]
    user.cluster.kubectl("apply", "--filename=-", stdin=tiny_model.volume(user.namespace, name, tmp_path))
    user.apply(runtime, job)
    lines = _wait_over(user, name, "node")
    losses = [float(loss) for line in lines for _, loss in _STEP.findall(line)]
    told = "\n".join(lines)
    assert len(losses) == tiny_model.STEPS, told
    assert losses[-1] < losses[0] - 0.3, told
    _trained(report, runtime_name, losses=losses)


@pytest.mark.full
@pytest.mark.parametrize("framework", AGAIN)
def test_what_e2e_trains(framework: str, user: User, report: SuiteReport) -> None:
    e2e.test_two_nodes_train(framework, user, report)


@pytest.mark.full
def test_what_e2e_trains_elastically(user: User, report: SuiteReport) -> None:
    e2e.test_training_goes_on_without_one_of_three_pods(user, report)


@pytest.mark.full
def test_enough_of_them_trained(report: SuiteReport) -> None:
    """Judge last: distinct runtimes that trained in this very run."""
    counted = _counted(report)
    report.figure("frameworks_trained", len(counted))
    assert len(counted) >= FEWEST, sorted(counted)
