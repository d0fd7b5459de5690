"""Why a TrainJob is queued: the answer of the hub's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import tree as trees
from trainplane.client.types.descriptions import Advice, QueueAnswer

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def read_answer(told: Tree) -> QueueAnswer:
    """Return the answer as types."""

    def advices(field: str) -> tuple[Advice, ...]:
        return tuple(
            Advice(trees.text(entry, "what") or "", trees.text(entry, "do") or "", bool(entry.get("now")))
            for entry in trees.entries(told, field)
        )

    return QueueAnswer(
        trees.text(told, "summary") or "",
        trees.number(told, "position"),
        trees.number(told, "pending"),
        advices("causes"),
        advices("suggestions"),
    )
