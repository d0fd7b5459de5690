"""`python -m docs.promises [--check]`: write docs/promises.md from the table of promises, or say it is stale."""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from docs.emitted import emit
from tests.seeds.documents.promises import HOLDS, ROOT, SAYS_NOTHING, Promise, promises, runs_in_full_only

PAGE = Path(__file__).parent / "promises.md"
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
    return emit(PAGE, write_page, "tests/seeds/promises.txt", arguments)


if __name__ == "__main__":
    sys.exit(main())
