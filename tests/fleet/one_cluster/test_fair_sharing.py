"""Fair shares: two teams that own nothing share what a third leaves, and who has more gives way. FULL=1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import kueue
from tests.fleet import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.fleet.one_cluster.team import Team

pytestmark = pytest.mark.full

_NOTHING = {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}
_JOBS = 8
"""As many as there is room for, one CPU each."""


@pytest.fixture(scope="module", autouse=True)
def fair(kueue_cluster: Cluster) -> Iterator[None]:
    """Let Kueue share fairly for a while."""
    before = kueue.reconfigure(
        kueue_cluster,
        fairSharing={"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
    )
    yield
    kueue.reconfigure(kueue_cluster, **before)


def _running(team: Team) -> int:
    return sum(team.admitted(f"job-{number}") for number in range(_JOBS))


@pytest.mark.scenario("I-fair", "two teams that borrow have equal shares: running jobs give way until they have")
def test_who_has_more_gives_way(team: Team) -> None:
    owner, early, late = (team.neighbour(name) for name in ("owner", "early", "late"))
    owner.open_queue({"cpu": str(_JOBS)}, cohortName=team.namespace)
    for borrower in (early, late):
        borrower.open_queue(_NOTHING, cohortName=team.namespace, preemption={"reclaimWithinCohort": "Any"})
    for number in range(_JOBS):
        early.submit(f"job-{number}", runtime=objects.HELD)
    early.wait_running(*(f"job-{number}" for number in range(_JOBS)))

    for number in range(_JOBS):
        late.submit(f"job-{number}", runtime=objects.HELD)
    team.wait("equal shares", lambda: (_running(early), _running(late)) == (_JOBS // 2, _JOBS // 2))
    stopped = [f"job-{number}" for number in range(_JOBS) if not early.admitted(f"job-{number}")]
    early.wait("those that gave way to have no pods", lambda: not any(early.pods(name) for name in stopped))
    assert all(early.suspended(name) for name in stopped)
    assert (_running(early), _running(late)) == (_JOBS // 2, _JOBS // 2), "and so it stays"
