"""Ctrl-C without a traceback: whoever pressed it knows what happened, and was told how to come back.

It stays a KeyboardInterrupt, by which scripts and cells end and shells see why (no class of its own: Python would then
end with another code). Only how it is shown differs, if nobody catches it: Python asks `sys.excepthook`, IPython the
exception itself.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


def interrupted() -> KeyboardInterrupt:
    """Return what to raise; from now on Python shows nothing of it, and all else as before."""
    shown = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if sys.excepthook is show:
            sys.excepthook = shown
        if error is not made:
            shown(kind, error, trace)

    made = KeyboardInterrupt()
    vars(made)["_render_traceback_"] = list
    sys.excepthook = show
    return made
