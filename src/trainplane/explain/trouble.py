"""What a class of trouble is: a name, what it means, what to do; `catalogue` has them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Certainty: TypeAlias = Literal["certain", "likely", "unknown"]
Part: TypeAlias = Literal["cause", "unclear", "consequence", "stopped"]
"""A cause by itself; what may be one or follow from another; what follows from another's end; who was told to stop."""


@dataclass(frozen=True, slots=True)
class TroubleClass:
    """One class of trouble."""

    name: str
    says: str
    """What happened, as it follows the name of a step or of a TrainJob."""
    remedy: str
    """What to do."""
    group: str
    """The heading of its part of the page."""
    heals: bool = False
    """Whether the same may succeed when it is tried again with nothing changed."""
    disrupts: bool = False
    """Whether a pod was stopped from outside: the restart that follows does not count."""
    part: Part = "cause"
    certainty: Certainty = "certain"
    """How sure this can be, at best."""
