"""`python -m tests.security.fuzz`: fuzz, or replay what a run found.

python -m tests.security.fuzz                         every target, a short run
python -m tests.security.fuzz reviews --cases 50000   one target
python -m tests.security.fuzz --replay build/fuzz/reviews-0123abcd
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.security.fuzz import campaign
from tests.security.fuzz.targets.table import TARGETS
from tests.size import FULL

if TYPE_CHECKING:
    from tests.security.fuzz.worker import Report

SHORT = 0.01
"""The part of a full run that a short one is."""


def main(arguments: list[str] | None = None) -> int:
    """Run; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.security.fuzz")
    parser.add_argument("targets", nargs="*", help=f"which: {', '.join(TARGETS)}; all without a name")
    parser.add_argument("--cases", type=int, help="cases of each target; without it, a part of a full run")
    parser.add_argument("--scale", type=float, default=1.0 if FULL else SHORT)
    parser.add_argument("--seed", type=int, default=campaign.seed_of_run(), help="default: FUZZ_SEED, or tests/day.py")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", type=Path, help="a JSON file to write what became of the cases to")
    parser.add_argument("--replay", type=Path, help="an input that a run kept: run it alone, with its traceback")
    options = parser.parse_args(arguments)
    if options.replay:
        return replay(options.replay)
    chosen = {name: TARGETS[name] for name in options.targets or TARGETS}
    counts = {name: options.cases or int(target.cases * options.scale) for name, target in chosen.items()}
    _say(f"seed {options.seed}, {sum(counts.values()):,} cases")
    reports = campaign.run(chosen, counts, options.seed, processes=options.processes, say=_say)
    for report in reports.values():
        _say(_summary(report))
    if options.report:
        options.report.write_text(
            json.dumps({"seed": options.seed, "targets": [_row(one) for one in reports.values()]})
        )
    return int(any(report.findings for report in reports.values()))


def _summary(report: Report) -> str:
    each = report.seconds / max(1, report.cases) * 1e6
    outcomes = sorted(report.outcomes.items(), key=lambda outcome: -outcome[1])
    shown = ", ".join(f"{outcome} {count}" for outcome, count in outcomes)
    cost = f"{each:.0f} us each, slowest {report.slowest:.3f} s, grew {report.growth_mb:.1f} MB"
    return f"{report.target}: {cost}: {shown}"


def _row(report: Report) -> dict[str, object]:
    return {
        "target": report.target,
        "cases": report.cases,
        "seconds": report.seconds,
        "slowest": report.slowest,
        "growth_mb": report.growth_mb,
        "crashes": report.count("crash"),
        "hangs": report.count("hang"),
        "bombs": report.count("memory"),
        "outcomes": report.outcomes,
        "findings": [str(finding) for finding in report.findings],
    }


def replay(path: Path) -> int:
    """Run one kept input; whatever it raises is shown as Python shows it."""
    name = max((name for name in TARGETS if path.name.startswith(name)), key=len)
    target = TARGETS[name]()
    try:
        _say(f"{name}: {target.run(path.read_bytes())}")
    finally:
        target.close()
    return 0


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 for a person


if __name__ == "__main__":
    sys.exit(main())
