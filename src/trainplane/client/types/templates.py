"""A TrainJob that is not submitted yet: what an optimiser fills in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainplane.client.types.initializers import Initializer
    from trainplane.client.types.runtimes import Runtime
    from trainplane.client.types.trainers import Trainer


@dataclass
class TrainJobTemplate:
    """The arguments of `train`; `client.train(**template)` submits it."""

    trainer: Trainer
    runtime: str | Runtime | None = None
    """A runtime or its name; torch-distributed if you do not say."""
    initializer: Initializer | None = None

    def keys(self) -> list[str]:
        """Return the names of the arguments, as a mapping does."""
        return ["trainer", "runtime", "initializer"]

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)
