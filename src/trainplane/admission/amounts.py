"""Amounts of `resourcesPerNode` that are none, told before the schema does.

The schema refuses them too, by quoting a regular expression at whoever wrote `4GB`. Mutating webhooks run before it,
so theirs is the first word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import parse
from trainplane.render.findings import Finding, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_PLACE: Final = ("spec", "trainer", "resourcesPerNode")


def judge_amounts(job: Tree) -> Iterator[Finding]:
    """Yield a finding for each text that is no amount; what is of another type is the schema's to refuse."""
    for part in ("requests", "limits"):
        amounts = trees.get(job, *_PLACE, part)
        for name, amount in amounts.items() if isinstance(amounts, dict) else ():
            if isinstance(amount, str):
                try:
                    parse(amount)
                except QuantityError as error:
                    yield Finding(written((*_PLACE, part, name)), str(error))
