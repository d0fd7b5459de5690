"""How much may be copied into a plan.

What a TrainJob says once, its runtime may want in each of many jobs: the variables of `spec.trainer` go into every job
that is labelled as trainer. Two objects that the API server lets in can so come to one a thousand times as large, which
it would not. Whatever is copied into a plan is counted, and the end comes before the copy, not after it.
"""

from __future__ import annotations

from typing import Any, Final

from trainplane.api.bounds import MOST_LETTERS, MOST_VALUES
from trainplane.render.errors import TooLargeError
from trainplane.render.findings import Finding

MOST_COPIED: Final = 2 * MOST_VALUES
"""Values: as many again as the TrainJob and its runtime may have themselves."""


class Growth:
    """Counts what is copied into one plan."""

    __slots__ = ("_letters", "_values")

    def __init__(self) -> None:
        self._values = MOST_COPIED
        self._letters = MOST_LETTERS

    def copy(self, tree: Any) -> Any:
        """Return a copy that shares no object and no list with its original.

        Raises:
            TooLargeError: the plan has grown too large.
        """
        if isinstance(tree, dict):
            self._letters -= sum(map(len, tree))
            self._take(1 + len(tree))
            return {key: self.copy(value) for key, value in tree.items()}
        if isinstance(tree, list):
            self._take(1 + len(tree))
            return [self.copy(value) for value in tree]
        if isinstance(tree, str):
            self._letters -= len(tree)
        return tree

    def _take(self, values: int) -> None:
        self._values -= values
        if self._values < 0 or self._letters < 0:
            raise TooLargeError(
                Finding(
                    "spec",
                    f"comes to a JobSet of more than {MOST_COPIED} values or {MOST_LETTERS} bytes, which no API server "
                    "takes: what the TrainJob says of its trainer, initializers and metadata goes into each job that "
                    "the runtime has for it. Say less, or use a runtime with fewer such jobs",
                )
            )
