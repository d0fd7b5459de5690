"""What a text in numProcPerNode becomes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.admission.objects import replicated_job, runtime, trainjob
from trainplane.admission.processes import convert_processes
from trainplane.api import tree as trees

GPUS = {"limits": {"nvidia.com/gpu": 2}}
CPUS = {"requests": {"cpu": "2500m"}, "limits": {"cpu": 8}}


def runtime_with(resources: Any = None, says: Any = None) -> Any:
    job = replicated_job()
    if resources is not None:
        job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return runtime(job, policy={"torch": {} if says is None else {"numProcPerNode": says}})


@pytest.mark.parametrize(
    ("text", "own", "beneath", "says", "becomes"),
    [
        ("4", None, None, None, 4),
        ("0", None, None, None, 0),
        ("-1", None, None, None, -1),
        ("auto", None, None, None, None),
        ("auto", GPUS, None, None, None),
        ("auto", None, CPUS, "auto", None),
        ("auto", GPUS, None, 1, 2),
        ("auto", None, CPUS, "gpu", 3),
        ("auto", None, None, 4, 1),
        ("cpu", CPUS, None, None, 3),
        ("cpu", None, CPUS, None, 3),
        ("cpu", {"limits": {"cpu": "8"}}, None, None, 8),
        ("cpu", GPUS, None, None, 1),
        ("cpu", None, None, None, 1),
        ("gpu", GPUS, None, None, 2),
        ("gpu", CPUS, GPUS, None, 2),
        ("gpu", None, {"requests": {"amd.com/gpu": "4"}}, 1, 4),
    ],
)
def test_texts(text: str, own: Any, beneath: Any, says: Any, becomes: int | None) -> None:
    trainer = {"image": "a", "numProcPerNode": text, **({"resourcesPerNode": own} if own else {})}
    turned, warning = convert_processes(trainjob(trainer=trainer), None, runtime_with(beneath, says))
    assert trees.get(turned, "spec", "trainer", "numProcPerNode") == becomes
    assert type(turned["spec"]["trainer"].get("numProcPerNode")) in {int, type(None)}
    assert turned["spec"]["trainer"]["image"] == "a"
    assert warning


def test_warnings_say_what_to_write() -> None:
    _, number = convert_processes(trainjob(trainer={"numProcPerNode": "4"}), None, None)
    _, word = convert_processes(trainjob(trainer={"numProcPerNode": "auto"}), None, None)
    assert number == "spec.trainer.numProcPerNode: '4' was stored as the number 4; write: numProcPerNode: 4"
    assert word == "spec.trainer.numProcPerNode: auto was left out, which means the same; leave it out"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("gpu", None),
        ("gpu", CPUS),
        ("many", None),
        ("", None),
        ("04", None),
        ("+4", None),
        ("4 ", None),
        ("2147483648", None),
        ("Auto", None),
        ("cpu", {"requests": {"cpu": "text"}}),
    ],
)
def test_what_is_no_count_stays(text: str, own: Any) -> None:
    trainer = {"numProcPerNode": text, **({"resourcesPerNode": own} if own else {})}
    job = trainjob(trainer=trainer)
    assert convert_processes(job, None, runtime_with()) == (job, None)


@pytest.mark.parametrize("word", ["cpu", "gpu"])
def test_without_a_runtime_a_word_that_needs_it_stays(word: str) -> None:
    job = trainjob(trainer={"numProcPerNode": word})
    assert convert_processes(job, None, None) == (job, None)


def test_own_resources_need_no_runtime() -> None:
    job = trainjob(trainer={"numProcPerNode": "gpu", "resourcesPerNode": GPUS})
    turned, _ = convert_processes(job, None, None)
    assert turned["spec"]["trainer"]["numProcPerNode"] == 2


@pytest.mark.parametrize(("stored", "becomes"), [({"numProcPerNode": 8}, 8), ({}, None)])
def test_a_word_that_was_turned_once_is_not_counted_again(stored: Any, becomes: int | None) -> None:
    job = trainjob(trainer={"numProcPerNode": "gpu", "resourcesPerNode": GPUS})
    turned, warning = convert_processes(job, trainjob(trainer=stored), runtime_with())
    assert turned["spec"]["trainer"].get("numProcPerNode") == becomes
    assert warning


@pytest.mark.parametrize("stored", [trainjob(), trainjob(trainer={"numProcPerNode": "gpu"}), {"spec": None}])
def test_a_word_that_was_never_turned_is_counted(stored: Any) -> None:
    job = trainjob(trainer={"numProcPerNode": "gpu", "resourcesPerNode": GPUS})
    turned, _ = convert_processes(job, stored, None)
    assert turned["spec"]["trainer"]["numProcPerNode"] == 2


@pytest.mark.parametrize("trainer", [None, {}, {"numProcPerNode": 4}, {"numProcPerNode": None}, "text", [1]])
def test_what_is_no_text_is_left_alone(trainer: Any) -> None:
    job = trainjob(trainer=trainer)
    turned, warning = convert_processes(job, None, None)
    assert turned is job
    assert warning is None
