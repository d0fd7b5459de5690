"""`python -m tests.initializers.speed.measured WHAT FOLDER`: the program, and as the last line its growth in KiB.

What it imports is loaded before, so the growth is that of its work alone.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from trainplane.initializers.leaving import leave


def peak_kib() -> int:
    """Return the most memory that this process ever had; unlike getrusage's, none of it is that of the parent."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    what, folder = sys.argv[1], Path(sys.argv[2])
    program: Any = import_module(f"trainplane.initializers.{'outputs.' if what == 'output' else ''}program")
    import_module("trainplane.initializers.schemes.s3")
    before = peak_kib()
    code = program.run(os.environ, folder, now=True) if what == "output" else program.run(what, os.environ, folder)
    sys.stdout.write(f"{peak_kib() - before}\n")
    leave(code)
