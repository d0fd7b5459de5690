"""Errors of the SDK and of the client below it arrive from another process as they were (hub-and-sdk 15)."""

from __future__ import annotations

import concurrent.futures
import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import trainplane.client
import trainplane.kube
from trainplane.client.errors import JobDeletedError, JobFailedError
from trainplane.client.types.jobs import Cause, TrainJob
from trainplane.client.types.runtimes import Runtime, RuntimeKind, RuntimeTrainer, TrainerType
from trainplane.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

pytestmark = pytest.mark.finding(
    "hub-and-sdk",
    15,
    "errors did not pickle, jobs left things to the next, watchers fetched all pods, and other small things",
)
RUNTIME = Runtime("r", RuntimeTrainer(TrainerType.CUSTOM_TRAINER, "torch", "i"), RuntimeKind.TRAINING_RUNTIME)
JOB = TrainJob("x", RUNTIME, [], 1, datetime(2026, 1, 1, tzinfo=UTC), "Failed")
CAUSE = Cause("OOMKilled", "it took too much", "node-0", 137)
INTERNAL = {"NotPlainError", "WaitingError"}
"""Raised and caught in one process, a function apart."""


def classes(package: ModuleType) -> Iterator[type[Exception]]:
    """Yield all errors that are defined below a package."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for _, member in inspect.getmembers(module, inspect.isclass):
            if issubclass(member, Exception) and member.__module__ == found.name and member.__name__ not in INTERNAL:
                yield member


def example(kind: type[Exception]) -> Exception:
    """Return one, made as it is made."""
    if issubclass(kind, JobFailedError):
        return kind(JOB, CAUSE)
    if issubclass(kind, JobDeletedError):
        return kind("abc")
    if issubclass(kind, ApiError):
        return kind("no such pod", code=418, reason="Teapot", details={"causes": [{"field": "a"}]}, retry_after=2.0)
    return kind("what is wrong")


ALL = sorted(
    {*classes(trainplane.client), *classes(trainplane.kube)}, key=lambda kind: (kind.__module__, kind.__name__)
)


def test_there_are_many() -> None:
    assert len(ALL) > 35


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_error_travels(kind: type[Exception]) -> None:
    error = example(kind)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        arrived = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 ours
        assert type(arrived) is kind
        assert str(arrived) == str(error)
        assert vars(arrived) == vars(error)
    assert str(copy.copy(error)) == str(error)


def fail() -> None:
    """Fail in a process of a pool."""
    raise JobFailedError(JOB, CAUSE)


def test_a_pool_of_processes_survives_a_failed_job() -> None:
    spawn: Any = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        with pytest.raises(JobFailedError) as caught:
            pool.submit(fail).result(timeout=60)
        assert (caught.value.job, caught.value.cause) == (JOB, CAUSE)
        assert pool.submit(int, "3").result(timeout=60) == 3
