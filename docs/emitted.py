"""Pages that are written from something else: each is a command, `python -m docs.NAME [--check]`, that ends here."""  # noqa: INP001 beside the pages, no package

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def emit(default: Path, write_page: Callable[[], str], source: str, arguments: list[str] | None) -> int:
    """Write a page, or with --check only look; return 1 if it is stale then. `source` is what it is written from."""
    parser = argparse.ArgumentParser(description=f"Write docs/{default.name} from {source}.")
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if the page is stale")
    parser.add_argument("page", nargs="?", type=Path, default=default)
    given = parser.parse_args(arguments)
    wanted = write_page()
    if given.page.exists() and given.page.read_text() == wanted:
        return 0
    if given.check:
        sys.stderr.write(f"{given.page} is stale: run `make manifests` and commit it\n")
        return 1
    given.page.write_text(wanted)
    return 0


def table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown; cells are Markdown already."""
    lines = [headers, ("---",) * len(headers), *rows]
    return "\n".join("| " + " | ".join(one.replace("\n\n", " ") for one in line) + " |" for line in lines)


def cell(text: str) -> str:
    """Return a text as one line that may stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")
