"""How kept lines are shown: with or without their time, and with whose they are where they are of several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.hub.logarchive.lines import NOTE
from trainplane.kube.containerlogs import STAMP

if TYPE_CHECKING:
    from trainplane.hub.apiserver.logquery import LogQuery, Rank

_BEGINNING: Final = re.compile(rb"^(?:" + re.escape(NOTE) + rb")?", re.MULTILINE)
_STAMPED: Final = re.compile(_BEGINNING.pattern + rb"(?:" + STAMP + rb")?", re.MULTILINE)


class Form:
    """How the lines of a query are shown. Blocks are turned as a whole: a log has many more lines than blocks."""

    def __init__(self, query: LogQuery) -> None:
        self._dropped = _BEGINNING if query.timestamps else _STAMPED
        self._marks = query.rank is None

    def show(self, rank: Rank, data: bytes) -> bytes:
        """Return kept lines of a rank as text; they end with a newline, and so does it."""
        mark = f"[{rank}] ".encode().replace(b"\\", rb"\\") if self._marks else b""
        return self._dropped.sub(mark, data[:-1]) + b"\n"
