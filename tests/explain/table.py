"""`python -m tests.explain.table`: write docs/explain.md from the report of the last `make explain FULL=1`."""

from __future__ import annotations

import json
from typing import Any, Final

from lab.paths import REPOSITORY
from tests.explain.peers import PEERS
from tests.suite import REPORTS

PAGE: Final = REPOSITORY / "docs" / "explain.md"
HEAD: Final = """\
# Failures, and who names them

<!-- written by `python -m tests.explain.table` from the report of `make explain FULL=1` -->

Each was made with real pods on a real node, and explained by a user who may read pods and events of one namespace and
nothing of nodes, from a bundle. The same failures were made on a cluster with the reference's controller (v2.3.0), and
the same user asked there: `kubectl describe` (TrainJob, JobSet, Jobs, pods and their events), the TrainJob's status,
and the official SDK 0.5.0 (job, events, logs of all steps). They name a failure if one object, event or log that they
show has its telling fact and says whose it is ([the rule](../tests/explain/peers.py)); a remedy is not asked for, none
has one.
*Until its pods go*: what is over was asked about again a minute after its pods were gone."""
COLUMNS: Final = ("failure", "class", "explain says", "kubectl describe", "reference's status", "official SDK")


def write_page(report: dict[str, Any]) -> str:
    """Return the page."""
    figures = report["figures"]
    compared = {row["compared"]: row for row in report["rows"] if "compared" in row}
    lines = [_line(row, compared.get(row["failure"], {})) for row in report["rows"] if "says" in row]
    return "\n\n".join((HEAD, _counted(figures), "\n".join((*_header(), *lines)))) + "\n"


def _counted(figures: dict[str, float]) -> str:
    count = {name: f"{value:g}" for name, value in figures.items()}
    return (
        f"Explain names {count['named_right']} of {count['failures']} right, {count['confidently_wrong']} confidently "
        f"wrong, and {count['named_right_when_gone']} of {count['gone']} when their pods are gone; four are logs of "
        f"GPUs, written after their documented formats: there is no GPU in the lab. Of {count['generated']} generated "
        f"faults {figures['generated_right']:.3f} are named right.\n\n"
        f"Of {count['compared']} that all were asked about, with pods and when they are gone: `kubectl describe` names "
        f"{count['kubectl_named_with_pods']} and {count['kubectl_named']}, the reference's status "
        f"{count['reference_named_with_pods']} and {count['reference_named']}, the official SDK "
        f"{count['official_sdk_named_with_pods']} and {count['official_sdk_named']}."
    )


def _header() -> tuple[str, str]:
    return f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)


def _line(row: dict[str, Any], compared: dict[str, Any]) -> str:
    named = f"{row['named']} ({row['certainty']})"
    peers = [_when(compared, peer) for peer in PEERS]
    return f"| {' | '.join((row['failure'], named, _cell(row['says']), *peers))} |"


def _when(compared: dict[str, Any], peer: str) -> str:
    """Return when somebody names a failure."""
    if not compared:
        return "not asked"
    if compared[f"{peer}_when_gone"]:
        return "yes"
    return "until its pods go" if compared[peer] else "no"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")[:220]


if __name__ == "__main__":
    PAGE.write_text(write_page(json.loads((REPORTS / "explain.json").read_text())))
