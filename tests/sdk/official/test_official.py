"""The official SDK, unmodified, on the reference and on ours: each row of docs/official-sdk.md, from one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tests.sdk.official.probes_runtimes
import tests.sdk.official.probes_status
import tests.sdk.official.probes_training  # noqa: F401 each brings its probes
from tests.sdk.official import cells, page
from tests.sdk.official.probe import PROBES
from tests.sdk.official.sdk import PATIENCE

if TYPE_CHECKING:
    from tests.sdk.official.conftest import Observations
    from tests.sdk.official.side import Name, Side
    from tests.suite import SuiteReport


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PROBES)
def test_probe(name: str, observations: Observations, report: SuiteReport) -> None:
    seen = {side: future.result(PATIENCE) for side, future in observations[name].items()}
    rows = PROBES[name].rows
    found = list(zip(rows, seen["reference"], seen["ours"], strict=True))
    for row, theirs, ours in found:
        report.row(official_sdk=row.what, contract=row.contract, reference=theirs, ours=ours)
    assert [(row.what, theirs, ours) for row, theirs, ours in found] == [
        (row.what, row.reference, row.ours) for row in rows
    ]


@pytest.mark.timeout(600)
def test_mpi_runs_a_function_on_every_host_and_its_launcher_is_node_0(both: dict[Name, Side]) -> None:
    """On ours alone: where pods are root, as the lab's are, ssh refuses the reference's keys."""
    ours = both["ours"]
    packages = ours.sdk.begin(
        "client.get_runtime_packages(client.get_runtime('mpi'))", namespace=ours.elsewhere().namespace
    )
    done = ours.sdk.run(cells.MPI)
    assert any(line == "2 processes on 2 hosts" for line in done["lines"]), done
    pods = dict(done["seen"])
    assert "-launcher-" in pods.pop("node-0")
    assert pods.keys() <= {"node-1", "node-2"}  # a JobSet that is done removes its workers
    looked = packages.result(PATIENCE)
    assert looked.error is None, looked.error
    assert looked.printed.count("Python: 3.") == 1


def test_the_page_shows_this_run(report: SuiteReport) -> None:
    seen = [page.line(row) for row in report.rows if "official_sdk" in row]
    assert [line for line in page.lines() if line in set(seen)] == seen, "python -m tests.sdk.official.page writes it"
    known = sum(len(probe.rows) for probe in PROBES.values())
    assert len(page.lines()) == known, "the page has rows that no probe brings"
