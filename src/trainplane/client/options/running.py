"""Options about how a TrainJob runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trainplane.client.errors import InvalidError
from trainplane.client.options.option import Option
from trainplane.client.types.trainers import CustomTrainerContainer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.tree import Tree


@dataclass
class TrainerCommand(Option):
    """What the nodes run, in place of the image's or the runtime's own."""

    command: Sequence[str]
    """The program and its first words. No shell reads them."""

    def __post_init__(self) -> None:
        _check_words(self.command, "command")

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set `spec.trainer.command`."""
        _check_trainer(self, trainer)
        _trainer_of(job)["command"] = list(self.command)


@dataclass
class TrainerArgs(Option):
    """What stands behind the nodes' command, in place of the image's or the runtime's own."""

    args: Sequence[str]
    """The words. No shell reads them."""

    def __post_init__(self) -> None:
        _check_words(self.args, "args")

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set `spec.trainer.args`."""
        _check_trainer(self, trainer)
        _trainer_of(job)["args"] = list(self.args)


@dataclass
class ActiveDeadlineSeconds(Option):
    """How long the TrainJob may run before it is stopped and counts as failed. It cannot be changed later."""

    seconds: int
    """From 1 on."""

    def __post_init__(self) -> None:
        _check_count(self.seconds, "seconds")

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set `spec.activeDeadlineSeconds`."""
        del trainer
        job.setdefault("spec", {})["activeDeadlineSeconds"] = self.seconds


@dataclass
class NumProcPerNode(Option):
    """How many processes each node runs."""

    number: int | Literal["auto"]
    """From 1 on; `auto` leaves it to the runtime, which mostly means one for each GPU."""

    def __post_init__(self) -> None:
        if self.number != "auto":
            _check_count(self.number, "number")

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set `spec.trainer.numProcPerNode`."""
        del trainer
        if self.number != "auto":
            _trainer_of(job)["numProcPerNode"] = self.number


@dataclass
class Suspend(Option):
    """Submit the TrainJob without starting it; `resume_job` does that."""

    def apply(self, job: Tree, trainer: Any) -> None:
        """Set `spec.suspend`."""
        del trainer
        job.setdefault("spec", {})["suspend"] = True


def _trainer_of(job: Tree) -> Tree:
    trainer: Tree = job.setdefault("spec", {}).setdefault("trainer", {})
    return trainer


def _check_trainer(option: Option, trainer: Any) -> None:
    if trainer is not None and not isinstance(trainer, CustomTrainerContainer):
        raise InvalidError(
            f"the option {type(option).__name__} goes with a CustomTrainerContainer or without a trainer: a "
            f"{type(trainer).__name__} has a command of its own"
        )


def _check_words(words: Any, field: str) -> None:
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InvalidError(f"{field} must be a list of texts, and is {words!r}")


def _check_count(number: Any, field: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidError(f"{field} must be a number from 1 on, and is {number!r}")
