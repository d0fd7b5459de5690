"""One line in a loop, and callbacks by their frameworks' own protocols."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from trainplane import progress

Sent = tuple[Any, Any, Any]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    found: list[Sent] = []

    def send(*status: Any) -> bool:
        found.append(status)
        return True

    monkeypatch.setattr(progress, "update_trainjob_status", send)
    for name in progress._RANKS:
        monkeypatch.delenv(name, raising=False)
    return found


def test_three_lines(sent: list[Sent], monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 100, 2))
    monkeypatch.setattr(progress, "_pace", progress.Pace(lambda: float(next(times))))
    for step in (1, 2, 3):
        assert progress.report(step, of=10, loss=1 / 3, note="x", nothing=None)
    assert sent[0] == (10, None, {"step": "1", "loss": "0.333333", "note": "x"})
    assert sent[2][:2] == (30, 14)


def test_steps_that_begin_again_set_a_new_pace() -> None:
    now = [0.0]
    pace = progress.Pace(lambda: now[0])
    assert pace.remaining(50, 100) is None
    now[0] = 10.0
    assert pace.remaining(60, 100) == 40
    assert pace.remaining(0, 100) is None, "a second training in the same process"
    now[0] = 20.0
    assert pace.remaining(10, 100) == 90


@pytest.mark.parametrize("name", progress._RANKS)
def test_only_the_first_rank_reports(sent: list[Sent], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    assert not progress.report(1, of=2)
    monkeypatch.setenv(name, "0")
    assert progress.report(1, of=2)
    assert len(sent) == 1


class Tensor:
    def item(self) -> float:
        return 0.5


class Broken:
    def item(self) -> float:
        raise RuntimeError("on another device")


def test_it_never_raises(sent: list[Sent], monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.report(1, of=0, loss=Tensor())
    assert sent == [(None, None, {"step": "1", "loss": "0.5"})]
    assert not progress.report(1, of=2, loss=Broken())
    assert not progress.report("one", of="two")  # type: ignore[arg-type] # what people write
    assert not progress.report(float("nan"), of=2)
    assert not progress.report(float("inf"), of=2)


def _module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        path = ".".join(parts[:depth])
        if path not in sys.modules or depth == len(parts):
            monkeypatch.setitem(sys.modules, path, ModuleType(path))
    for key, value in content.items():
        setattr(sys.modules[name], key, value)


class Base:
    """What a framework's callback class is, as far as its documentation says."""

    params: dict[str, Any]


def test_transformers(sent: list[Sent], monkeypatch: pytest.MonkeyPatch) -> None:
    _module(monkeypatch, "transformers", TrainerCallback=Base)
    callback = progress.for_transformers()
    state = SimpleNamespace(global_step=5, max_steps=10, is_world_process_zero=True)
    callback.on_log(None, state, None, logs={"loss": 0.5, "step": 5, "text": "x"}, model=None)
    callback.on_train_end(None, SimpleNamespace(**{**vars(state), "global_step": 10}), None, model=None)
    callback.on_log(None, SimpleNamespace(**{**vars(state), "is_world_process_zero": False}), None, logs={})
    assert [(percent, metrics) for percent, _, metrics in sent] == [
        (50, {"step": "5", "loss": "0.5"}),
        (100, {"step": "10"}),
    ]


@pytest.mark.parametrize("name", ["lightning.pytorch.callbacks", "pytorch_lightning.callbacks"])
def test_lightning(sent: list[Sent], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "lightning.pytorch.callbacks", None)
    _module(monkeypatch, name, Callback=Base)
    callback = progress.for_lightning()
    trainer = SimpleNamespace(
        is_global_zero=True, global_step=3, estimated_stepping_batches=12, callback_metrics={"val_loss": Tensor()}
    )
    callback.on_train_batch_end(trainer, None, None, None, 2)
    trainer.estimated_stepping_batches = float("inf")
    callback.on_train_end(trainer, None)
    trainer.is_global_zero = False
    callback.on_train_batch_end(trainer, None, None, None, 2)
    assert [(percent, metrics["val_loss"]) for percent, _, metrics in sent] == [(25, "0.5"), (None, "0.5")]


def test_keras(sent: list[Sent], monkeypatch: pytest.MonkeyPatch) -> None:
    _module(monkeypatch, "keras.callbacks", Callback=Base)
    callback = progress.for_keras()
    callback.params = {"epochs": 2, "steps": 5}
    callback.on_epoch_begin(1)
    callback.on_train_batch_end(1, {"loss": 0.25})
    callback.on_epoch_end(1, {"loss": 0.2})
    callback.params = {"epochs": 2, "steps": None}
    callback.on_epoch_end(0, None)
    assert [percent for percent, _, _ in sent] == [70, 100, 50]
