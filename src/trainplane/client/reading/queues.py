"""Why a TrainJob is queued: the answer of the hub's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.client.types.descriptions import Advice, QueueAnswer

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def read_answer(told: Tree) -> QueueAnswer:
    """Return the answer as types."""

    def advices(field: str) -> tuple[Advice, ...]:
        entries: list[dict[str, Any]] = told.get(field) or []
        return tuple(Advice(e.get("what", ""), e.get("do", ""), bool(e.get("now"))) for e in entries)

    return QueueAnswer(
        told.get("summary", ""), told.get("position"), told.get("pending"), advices("causes"), advices("suggestions")
    )
