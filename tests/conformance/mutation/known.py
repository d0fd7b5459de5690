"""Which case found a fault the last time that all were planted, and where: data, so that a hunt asks that one first.

    make mutation && python -m tests.conformance.mutation.known      writes anew what the last full run found

A hint and no more: a fault that its case no longer shows is looked for in all others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lab.paths import REPOSITORY
from tests.conformance.mutation.faults import FAULTS

DATA = Path(__file__).with_name("found_by.json")
REPORT = REPOSITORY / "build/reports/mutation.json"
FOUND_BY: dict[str, dict[str, str]] = json.loads(DATA.read_text())
"""By the id of the fault, the id of the `case`, and the `place` of the difference in it."""


def noted(known: dict[str, dict[str, str]], rows: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Return what is known of faults that are still planted, and what a run's report adds."""
    found = known | {row["fault"]: {key: row[key] for key in ("case", "place")} for row in rows if "case" in row}
    return {fault.id: found[fault.id] for fault in FAULTS if fault.id in found}


if __name__ == "__main__":
    rows = json.loads(Path(sys.argv[1] if sys.argv[1:] else REPORT).read_text())["rows"]
    DATA.write_text(json.dumps(noted(FOUND_BY, rows), indent=1, ensure_ascii=False) + "\n")
