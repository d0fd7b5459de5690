"""`python -m tests.explain.table`: write docs/explain.md from the report of the last `make explain`."""

from __future__ import annotations

import json
from typing import Any

from lab.paths import REPOSITORY
from tests.suite import REPORTS

_HEAD = """\
# Failures, and who names them

<!-- written by `python -m tests.explain.table` from the report of `make explain` -->

Each was made with real pods on a real node, and explained by a user who may read pods and events of one namespace and
nothing of nodes, from a bundle. *The status* is what the JobSet's condition says, which is what the reference's
TrainJob has, and what the official SDK shows as `Failed` or `Created` alone."""


def write_page(report: dict[str, Any]) -> str:
    """Return the page."""
    figures = report["figures"]
    rows = [row for row in report["rows"] if "says" in row]
    lines = [
        f"| {row['failure']} | {row['named']} ({row['certainty']}) | {_cell(row['says'])} | {_cell(row['reference'])} |"
        for row in rows
    ]
    table = "\n".join(["| failure | class | explain says | the status says |", "|---|---|---|---|", *lines])
    counted = (
        f"{figures['named_right']:g} of {figures['failures']:g} named right, {figures['confidently_wrong']:g} "
        f"confidently wrong; four of them are logs of GPUs, written after their documented formats: there is no GPU in "
        f"the lab. Of {figures['generated']:g} generated faults {figures['generated_right']:.3f} are named right."
    )
    return f"{_HEAD}\n\n{counted}\n\n{table}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")[:220]


if __name__ == "__main__":
    path = REPOSITORY / "docs" / "explain.md"
    path.write_text(write_page(json.loads((REPORTS / "explain.json").read_text())))
