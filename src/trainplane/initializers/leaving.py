"""How a step ends: at once, without the interpreter's own end.

The libraries of buckets and of the hub have threads of their own, which may still let go of Python's objects when the
last answer is there. Before Python 3.14 such a thread is torn down in the middle of Rust's code, which aborts the
process: a step that had done all would fail with 134, two times in sixty on a busy machine. Nothing is left to do then:
files are closed and on the disk, and whoever runs a step sees its code and what it printed.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End this process with a code; what it printed is out, unless nobody reads it."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
