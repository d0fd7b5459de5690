"""`python -m docs.executed [--check]`: write docs/executed.md from docs/executed.txt, or say that it is stale.

Each command and each YAML that a page shows is here with the test that tries it, or with the reason why none does. A
block that has neither fails, as does a line of the table for a block that is gone: so nothing new is forgotten.
"""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import itertools
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docs.emitted import emit, table
from tests.fenced import Fence, fences
from tests.seeds.documents.promises import runs_in_full_only

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "executed.md"
TABLE = ROOT / "docs" / "executed.txt"
LANGUAGES = frozenset({"sh", "console", "yaml", "python", "toml"})
"""Of what a reader types or applies. Others show what a program prints, or a drawing."""
RUNS, ALIKE, JUDGED, NOT_RUN = VERDICTS = ("runs", "runs alike", "judged", "not run")
_HEAD = """\
# Executed

<!-- written by docs/executed.py from docs/executed.txt: change that, then run `make manifests` -->

Each command and each YAML of these pages, and what tries it. *Runs*: a test reads the block from the page and does what
it says. *Runs alike*: a test does the same in words of its own, so it would not see a mistake of the page. *Judged*: a
test has the block judged by what would take it (admission, a schema, the command's options), and runs nothing. A block
that is not here fails a test of ours.
"""


@dataclass(frozen=True)
class Entry:
    """A line of the table: a page's blocks and what tries them."""

    page: str
    blocks: str
    verdict: str
    proof: str

    def covers(self, block: Fence) -> bool:
        """Return whether a block of the page is meant."""
        language, _, numbers = self.blocks.partition(" ")
        return block.language == language and (not numbers or block.number in _numbers(numbers))


def entries() -> list[Entry]:
    """Return the table."""
    lines = TABLE.read_text().splitlines()
    return [Entry(*line.split(" | ", 3)) for line in lines if line and not line.startswith("#")]


def pages() -> list[Path]:
    """Return the pages of the site, and README.md."""
    folders = ("*.md", "docs/**/*.md", "examples/**/*.md", "tests/security/fuzz/*.md")
    return sorted(path for folder in folders for path in ROOT.glob(folder))


def shown(page: Path) -> list[Fence]:
    """Return the blocks of a page that a reader types or applies."""
    return [block for block in fences(page) if block.language in LANGUAGES]


def problems(listed: list[Entry]) -> Iterator[str]:
    """Yield what is wrong with a table: a block that it leaves out or has twice, and a line for no block."""
    known = {str(page.relative_to(ROOT)): shown(page) for page in pages()}
    for name, there in known.items():
        for block in there:
            count = sum(one.page == name and one.covers(block) for one in listed)
            if count != 1:
                yield f"{name}: block {block.language} {block.number} stands {count} times in {TABLE.name}"
    for one in listed:
        if one.verdict not in VERDICTS:
            yield f"{one.page} {one.blocks}: {one.verdict!r} is none of {', '.join(VERDICTS)}"
        if not any(one.covers(block) for block in known.get(one.page, [])):
            yield f"{one.page} {one.blocks}: there is no such block"


def counts(listed: list[Entry]) -> Counter[str]:
    """Return how many blocks have each verdict."""
    found: Counter[str] = Counter()
    for page in pages():
        mine = [one for one in listed if one.page == str(page.relative_to(ROOT))]
        found.update(one.verdict for block in shown(page) for one in mine if one.covers(block))
    return found


def executed_pages(listed: list[Entry]) -> tuple[list[str], list[str]]:
    """Return the pages all whose blocks are tried by a test, and the others that have blocks."""
    every = {one.page for one in listed}
    left = {one.page for one in listed if one.verdict == NOT_RUN}
    return sorted(every - left), sorted(left)


def write_page() -> str:
    """Return the page.

    Raises:
        ValueError: a block is left out, or the table has a line too many.
    """
    listed = entries()
    wrong = list(problems(listed))
    if wrong:
        raise ValueError("\n".join(wrong))
    found, (whole, rest) = counts(listed), executed_pages(listed)
    told = ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS)
    parts = [_HEAD, f"{sum(found.values())} blocks on {len(whole) + len(rest)} pages: {told}.", "## Not run"]
    parts.append(
        table(("page", "blocks", "why"), [(_link(one), one.blocks, one.proof) for one in listed if _left(one)])
    )
    parts.append("## Tried")
    for page, group in itertools.groupby((one for one in listed if not _left(one)), key=lambda one: one.page):
        rows = [(one.blocks, one.verdict, f"`{one.proof}`{_when(one)}") for one in group]
        parts += [f"### {page}", table(("blocks", "verdict", "test"), rows)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _left(entry: Entry) -> bool:
    return entry.verdict == NOT_RUN


def _link(entry: Entry) -> str:
    below = entry.page.removeprefix("docs/")
    return f"[{entry.page}]({below if below != entry.page else f'../{entry.page}'})" if below != "README.md" else below


def _when(entry: Entry) -> str:
    return ", `FULL=1`" if runs_in_full_only(entry.proof) else ""


def _numbers(text: str) -> set[int]:
    """Return the numbers of `1-3,5`."""
    ends = [part.partition("-") for part in text.split(",")]
    return {number for low, _, high in ends for number in range(int(low), int(high or low) + 1)}


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale or a block is left out."""
    try:
        return emit(PAGE, write_page, TABLE.name, arguments)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
