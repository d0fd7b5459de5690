"""Good news of one object goes out together; bad news never waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trainplane.kube.eventmerger import MOST_STEPS, EventMerger
from trainplane.kube.events import EventRecorder, ObjectReference
from trainplane.kube.testing.clock import FakeClock

JOB = ObjectReference("trainer.kubeflow.org/v1alpha1", "TrainJob", "job", "team", "1")


class Scene:
    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        self.recorder = EventRecorder(None, self.clock, "test")  # type: ignore[arg-type]  # nothing is written here
        self.merger = EventMerger(self.recorder, self.clock, **settings)

    def tell(self, reason: str, message: str = "", *, job: ObjectReference = JOB, type_: Any = "Normal") -> None:
        self.merger.record(job, type_, reason, message or reason.lower())

    async def wait(self, seconds: float) -> None:
        task = asyncio.create_task(self.merger.run())
        await self.clock.advance(seconds)
        task.cancel()

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(note.reason, note.message) for note in self.recorder._notes.values()]


async def test_steps_that_follow_each_other_are_one_event_with_its_own_times() -> None:
    scene = Scene(seconds=10.0)
    began = scene.clock.now()
    scene.tell("Created")
    await scene.wait(3)
    scene.tell("Started", "pods are ready")
    assert scene.told == []
    await scene.wait(10)
    assert scene.told == [("Started", "created; 3 s later: pods are ready")]
    (note,) = scene.recorder._notes.values()
    assert note.first == began
    assert note.last > began


async def test_the_last_step_ends_the_wait() -> None:
    scene = Scene(last=frozenset({"Completed"}))
    scene.tell("Created")
    scene.tell("Completed")
    assert scene.told == [("Completed", "created; completed")]


async def test_what_went_wrong_does_not_wait_nor_what_came_before_it() -> None:
    scene = Scene()
    scene.tell("Created")
    scene.tell("Failed", type_="Warning")
    assert scene.told == [("Created", "created"), ("Failed", "failed")]


async def test_what_waits_at_the_end_is_told() -> None:
    scene = Scene()
    scene.tell("Created")
    scene.merger.flush()
    assert scene.told == [("Created", "created")]


async def test_some_steps_may_wait_longer_and_the_shortest_wait_counts() -> None:
    scene = Scene(seconds=10.0, longer={"Created": 30.0})
    scene.tell("Created")
    await scene.wait(20)
    assert scene.told == []
    scene.tell("Started")
    await scene.wait(5)
    assert scene.told == []
    await scene.wait(6)
    assert scene.told == [("Started", "created; 20 s later: started")]


@pytest.mark.parametrize("steps", [MOST_STEPS, 100])
async def test_one_object_does_not_make_others_wait_nor_fill_the_memory(steps: int) -> None:
    scene = Scene(most=2)
    for number in range(steps):
        scene.tell(f"Step{number}")
    assert len(scene.told) == steps // MOST_STEPS
    for number in range(3):
        scene.tell("Created", job=ObjectReference("v1", "Pod", f"other-{number}"))
    assert len(scene.merger._courses) <= 2


async def test_zero_seconds_merge_nothing() -> None:
    scene = Scene(seconds=0.0)
    scene.tell("Created")
    scene.tell("Started")
    assert scene.told == [("Created", "created"), ("Started", "started")]
