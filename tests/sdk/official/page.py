"""The table of docs/official-sdk.md, from the rows of a run: `python -m tests.sdk.official.page` writes it anew."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from lab.paths import REPOSITORY
from tests.suite import REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = REPOSITORY / "docs/official-sdk.md"
REPORT = REPORTS / "sdk.json"
_TABLE = re.compile(r"^\| contract \|.*?\n\n", re.MULTILINE | re.DOTALL)
_HEAD = "| contract | what a user does, or asks | reference v2.3.0 | ours |\n|---|---|---|---|\n"


def line(row: dict[str, Any]) -> str:
    """Return a row as the page has it; what is better on ours stands out."""
    ours = row["ours"] if row["ours"] == row["reference"] else f"**{row['ours']}**"
    return f"| {row['contract']} | {row['official_sdk']} | {row['reference']} | {ours} |"


def lines() -> list[str]:
    """Return the rows of the page."""
    found = _TABLE.search(PAGE.read_text())
    assert found, f"{PAGE.name} has no table"
    return found[0].removeprefix(_HEAD).splitlines()[:-1]


def write(rows: Iterable[dict[str, Any]]) -> None:
    """Put the table of these rows into the page."""
    table = _HEAD + "".join(f"{line(row)}\n" for row in rows if "official_sdk" in row) + "\n"
    PAGE.write_text(_TABLE.sub(lambda _: table, PAGE.read_text(), count=1))


if __name__ == "__main__":
    write(json.loads(REPORT.read_text())["rows"])
