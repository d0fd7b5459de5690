"""Disasters do what they say: what is set back, stopped, full or wrong is so, and nothing else."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.simulation.action import Action
from tests.simulation.apiserver import OTHERS_WRITES, TRAINJOBS, Record
from tests.simulation.history import History, draw
from tests.simulation.loop import START, VirtualLoop
from tests.simulation.process import Process
from tests.simulation.rare import DISASTERS
from trainplane.kube.errors import InternalServerError
from trainplane.kube.resource import Key

KEPT, LOST, BACK = (Key("team", name) for name in ("kept", "lost", "back"))


def _record() -> Record:
    return Record(now=lambda: START)


def _make(record: Record, key: Key, note: str = "") -> str:
    stored = record.put(TRAINJOBS, {"metadata": {"namespace": key.namespace, "name": key.name}, "note": note})
    return str(stored["metadata"]["uid"])


@pytest.mark.parametrize("bumped", [False, True])
def test_a_restore_undoes_what_came_after_the_backup_and_gives_no_uid_twice(bumped: bool) -> None:
    record = _record()
    uids = {_make(record, KEPT), _make(record, BACK)}
    before = dict(record.objects[TRAINJOBS])
    backup = record.backup()
    record.pass_hour()
    uids.add(_make(record, LOST))
    _make(record, KEPT, "changed")
    record.delete(TRAINJOBS, BACK)
    seen = record.revision
    record.restore(backup, bumped=bumped)
    assert record.objects[TRAINJOBS] == before
    assert record.revision > seen if bumped else record.revision == backup.revision < seen - OTHERS_WRITES
    assert record.compacted == record.revision
    assert _make(record, LOST) not in uids


def test_versions_are_given_a_second_time_and_uids_are_not() -> None:
    record = _record()
    _make(record, KEPT)
    backup = record.backup()
    uid = _make(record, LOST)
    lost = record.get(TRAINJOBS, LOST)
    record.restore(backup, bumped=False)
    assert _make(record, LOST) != uid
    assert record.get(TRAINJOBS, LOST)["metadata"]["resourceVersion"] == lost["metadata"]["resourceVersion"]


def test_what_is_full_can_be_read_and_deleted_and_not_written() -> None:
    record = _record()
    _make(record, KEPT)
    _make(record, LOST)
    record.is_full = True
    for key in (KEPT, BACK):
        with pytest.raises(InternalServerError, match="database space exceeded"):
            _make(record, key, "changed")
    assert _make(record, KEPT) == record.get(TRAINJOBS, KEPT)["metadata"]["uid"], "what changes nothing is not written"
    record.delete(TRAINJOBS, LOST)
    assert set(record.objects[TRAINJOBS]) == {KEPT}


def test_a_process_that_is_stopped_runs_late_and_the_others_in_time() -> None:
    loop = VirtualLoop(Random(1))
    asyncio.set_event_loop(loop)
    process, woken = Process(loop), []

    async def tick(name: str) -> None:
        for _ in range(3):
            await asyncio.sleep(10)
            woken.append((name, loop.time()))

    async def history() -> None:
        ticking = loop.create_task(tick("stopped"), context=process.context), loop.create_task(tick("other"))
        await asyncio.sleep(15)
        process.stop()
        await asyncio.sleep(100)
        assert not ticking[0].done()
        process.go_on()
        await asyncio.gather(*ticking)

    loop.run_until_complete(history())
    loop.close()
    asyncio.set_event_loop(None)
    assert [at for name, at in woken if name == "other"] == [10, 20, 30]
    assert [at for name, at in woken if name == "stopped"] == [10, 115, 125]


def test_clocks_are_apart_by_all_that_they_ever_were() -> None:
    actions = (
        Action(1.0, "jump", "r0", {"by": 30}),
        Action(2.0, "jump", "r0", {"by": 30}),
        Action(3.0, "skew", "r0", {"skew": 0}),
        Action(4.0, "jump", "all", {"by": -20}),
    )
    assert History(1, 2, actions).clocks_apart == 80
    assert History(1, 2, ()).clocks_apart == 0


def test_each_is_drawn() -> None:
    drawn = [draw(seed) for seed in range(300)]
    for kind in DISASTERS:
        having = [one for one in drawn if any(action.kind == kind for action in one.actions)]
        assert having
        assert {one.theme for one in having} == {kind}
