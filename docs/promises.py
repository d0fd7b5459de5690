"""`python docs/promises.py [--check]`: write docs/promises.md from the table of promises, or say it is stale."""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.seeds.documents.promises import (  # noqa: E402 found from the checkout alone
    HOLDS,
    SAYS_NOTHING,
    Promise,
    promises,
    runs_in_full_only,
)

PAGE = ROOT / "docs" / "promises.md"
_DOCUMENTS = {
    "000": "TrainJobs by MultiKueue",
    "001": "Jobs of v1 by MultiKueue",
    "002": "The TrainJob resource",
    "003": "The guide to Trainer v2",
    "004": "The guide to runtimes",
}
_HEAD = """\
# What was promised, and what holds

<!-- written by docs/promises.py from tests/seeds/promises.txt: change the words there, then run `make manifests` -->

Trainplane began with five documents that users of Kubeflow Trainer read. Each example, command, table row, list entry
and sentence of theirs is here, in our own words and their order, with the test that would fail if it did not hold. The
documents are not ours to copy: `make seeds` reads them where they lie beside the clone, finds each statement by its
number and digest, and fails when one is missing here. What waits for an issue is tried as well, and fails the suite as
soon as it works.
"""


def write_page() -> str:
    """Return the page."""
    table = [one for one in promises() if one.verdict != SAYS_NOTHING]
    silent = sum(one.verdict == SAYS_NOTHING for one in promises())
    hold = sum(one.verdict == HOLDS for one in table)
    waiting = sorted({one.issue for one in table if one.issue})
    counts = ", ".join(f"{sum(one.issue == issue for one in table)} for issue {issue}" for issue in waiting)
    figures = f"{len(table)} statements: {hold} hold, {len(table) - hold} wait ({counts})."
    rest = f"{silent} more sentences promise nothing: headings, links, the page around the text."
    parts = [f"{_HEAD}\n{figures} {rest}"]
    for document, rows in itertools.groupby(table, key=lambda one: one.id.partition("-")[0]):
        lines = ["| | promise | verdict | shown by |", "|---|---|---|---|", *map(_line, rows)]
        parts.append(f"## {_DOCUMENTS[document]}\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _line(one: Promise) -> str:
    return f"| {one.id.partition('-')[2].replace('-', ' ')} | {one.words} | {one.verdict} | {_shown_by(one)} |"


def _shown_by(one: Promise) -> str:
    if one.untried:
        folder, word = one.untried
        return f"not tried: no `{word}` in `{folder.relative_to(ROOT)}`"
    return f"`{one.proof}`" + (" (`FULL=1`)" if runs_in_full_only(one.proof) else "")


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale."""
    parser = argparse.ArgumentParser(description="Write docs/promises.md from tests/seeds/promises.txt.")
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if the page is stale")
    parser.add_argument("page", nargs="?", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    wanted = write_page()
    if given.page.exists() and given.page.read_text() == wanted:
        return 0
    if given.check:
        sys.stderr.write(f"{given.page} is stale: run `make manifests` and commit it\n")
        return 1
    given.page.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
