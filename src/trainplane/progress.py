"""Progress of a training, in one line of its loop, to where `client.get_job(name).progress` has it.

    from trainplane import progress

    for step, batch in enumerate(batches, 1):
        loss = train(batch)
        progress.report(step, of=len(batches), loss=loss)

Call it as often as you like and from every rank: the first one reports, every five seconds at most, and at the end.
Percentage and remaining time follow from the steps. A rank that calls it no more, for much longer than it used to take,
has its stacks printed, and `trainplane explain` says where it stands. It never raises, and does nothing outside a
TrainJob. Frameworks that call back need no line in the loop: `for_transformers`, `for_lightning` and `for_keras` make
the callback to hand to their trainers.

The standard library is enough, Python 3.8 will do: the file is shipped with code whose image has not got trainplane.
"""

from __future__ import annotations

import logging
import os
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trainplane.client.reporting import update_trainjob_status
from trainplane.client.standing import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["for_keras", "for_lightning", "for_transformers", "report"]

_RANKS = (
    *("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID", "DMLC_TASK_ID", "PADDLE_TRAINER_ID"),
    "JOB_COMPLETION_INDEX",
)
"""Variables that number the processes of a training, the finest first; a Job's pods all have the last."""
_log = logging.getLogger(__name__)


class Pace:
    """How fast steps are made: what remains follows from those that this process has seen."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None

    def remaining(self, step: float, of: float) -> int | None:
        """Return how many seconds are left; None until that can be told."""
        now = self._clock()
        if self._first is None or step < self._first[1]:
            self._first = (now, step)
        began, at = self._first
        if step <= at or now <= began:
            return None
        return max(0, round((of - step) * (now - began) / (step - at)))


_pace = Pace()
_watch = Watch()


def report(step: float | None = None, *, of: float | None = None, **metrics: Any) -> bool:
    """Report how far the training is.

    Args:
        step: how many steps are done, or epochs, or tokens.
        of: how many there are.
        **metrics: figures by name, such as `loss=0.3`; also tensors of one value.

    Returns:
        Whether it was reported now. Never raises.
    """
    _got_on(is_last=step is not None and step == of)
    try:
        if not is_first():
            return False
        percent = seconds = None
        if step is not None and of:
            percent, seconds = int(100 * step / of), _pace.remaining(step, of)
        figures = {name: _plain(value) for name, value in metrics.items() if value is not None}
        if step is not None:
            figures = {"step": _plain(step), **figures}
        return update_trainjob_status(percent, seconds, figures)
    except Exception as error:  # noqa: BLE001 whatever it is, training goes on
        _log.warning("progress was not reported", extra={"error": repr(error)})
        return False


def _got_on(*, is_last: bool = False) -> None:
    """Take in that this rank, whichever it is, got on."""
    try:
        _watch.came(is_last=is_last)
    except Exception as error:  # noqa: BLE001 a stream without a file, say: training goes on
        _log.debug("where this process stands will not be printed", extra={"error": repr(error)})


def _report_named(step: float, of: float | None, figures: Mapping[str, Any]) -> bool:
    """Report figures whose names somebody else chose: they may be any, and those of our own arguments, too."""
    return report(step, of=of, **{name: value for name, value in figures.items() if name not in {"step", "of"}})


def is_first() -> bool:
    """Return whether this process is the first of its training, by what its framework or Kubernetes says."""
    for name in _RANKS:
        rank = os.environ.get(name)
        if rank is not None:
            return rank.strip() in {"0", ""}
    return True


def _plain(value: Any) -> str:
    """Return a figure as a short text: six digits of a number, of a tensor's one value too."""
    if hasattr(value, "item"):
        value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def for_transformers() -> Any:
    """Return a callback for Hugging Face's Trainer: `Trainer(…, callbacks=[progress.for_transformers()])`.

    Since version 5, Transformers reports by itself inside a TrainJob; two that do are one report.
    """
    base: Any = import_module("transformers").TrainerCallback

    class ProgressCallback(base):  # type: ignore[misc] # a class that only its users have
        """Reports at each log and at the end."""

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002 its interface
            _got_on()
            figures = {name: value for name, value in (logs or {}).items() if isinstance(value, (int, float))}
            if state.is_world_process_zero:
                _report_named(state.global_step, state.max_steps, figures)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 its interface
            if state.is_world_process_zero:
                report(state.global_step, of=state.max_steps)
            _got_on(is_last=True)

    return ProgressCallback()


def for_lightning() -> Any:
    """Return a callback for Lightning: `Trainer(…, callbacks=[progress.for_lightning()])`."""
    try:
        base: Any = import_module("lightning.pytorch.callbacks").Callback
    except ImportError:
        base = import_module("pytorch_lightning.callbacks").Callback  # its older name

    class ProgressCallback(base):  # type: ignore[misc] # a class that only its users have
        """Reports after batches and at the end."""

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            _got_on()
            if trainer.is_global_zero:
                _report_named(trainer.global_step, _steps_of(trainer), dict(trainer.callback_metrics))

        def on_train_end(self, trainer: Any, *_: Any) -> None:
            if trainer.is_global_zero:
                _report_named(trainer.global_step, _steps_of(trainer), dict(trainer.callback_metrics))
            _got_on(is_last=True)

    return ProgressCallback()


def _steps_of(trainer: Any) -> float | None:
    """Return how many steps a Lightning training has; None where it does not know."""
    steps = trainer.estimated_stepping_batches
    return steps if 0 < steps < float("inf") else None


def for_keras() -> Any:
    """Return a callback for Keras: `model.fit(…, callbacks=[progress.for_keras()])`."""
    base: Any = import_module("keras.callbacks").Callback

    class ProgressCallback(base):  # type: ignore[misc] # a class that only its users have
        """Reports after batches and epochs; its steps are batches of all epochs."""

        def __init__(self) -> None:
            super().__init__()
            self._epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002 its interface
            self._epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            steps = self.params.get("steps")
            if steps:
                done = self._epoch * steps + batch + 1
                _report_named(done, steps * self.params["epochs"], logs or {})

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            steps = self.params.get("steps") or 1
            _report_named((epoch + 1) * steps, steps * self.params["epochs"], logs or {})

    return ProgressCallback()
