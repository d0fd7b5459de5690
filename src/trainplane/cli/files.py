"""Files that commands read: anybody's, so never more of one than is looked at."""

from __future__ import annotations

import sys
from pathlib import Path


def read_text(name: str) -> str:
    """Return the text of a file, or with - of standard input, cut where no more is read of any.

    Whoever parses it says that it is too long.
    """
    from trainplane.lint.yaml_lines import MOST_LETTERS  # noqa: PLC0415 heavy

    if name == "-":
        return sys.stdin.read(MOST_LETTERS + 1)
    with Path(name).open(encoding="utf-8") as file:
        return file.read(MOST_LETTERS + 1)
