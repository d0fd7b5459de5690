"""`make grants`: our roles beside what the suites before it asked of real API servers under those roles.

A grant that no run used is a hole, or `seldom` says why a run does not need it. A request that was denied is a
role that lacks something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import audit
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.grants.comparison import denied, grants, requests, unused
from tests.grants.seldom import SELDOM

if TYPE_CHECKING:
    from tests.grants.comparison import Grant, Request
    from tests.suite import SuiteReport

AUDIT = REPOSITORY / "build" / "audit"
SUITES = ("e2e", "fleet", "integration", "legacy", "security", "sdk")
ROLES = tuple(
    REPOSITORY / "manifests" / name
    for name in ("base/rbac/roles.yaml", "hub/rbac.yaml", "hub/legacy-rbac.yaml", "legacy/rbac.yaml")
)


@pytest.fixture(scope="module")
def asked() -> set[Request]:
    missing = [suite for suite in SUITES if not any((AUDIT / suite).glob("*.log"))]
    assert not missing, f"these ran no cluster yet: make {' '.join(missing)}"
    return {request for log in AUDIT.rglob("*.log") for request in requests(audit.read(log))}


@pytest.fixture(scope="module")
def granted() -> set[Grant]:
    return grants(documents(*ROLES))


def test_nothing_was_denied(granted: set[Grant], asked: set[Request], report: SuiteReport) -> None:
    refused = denied(granted, asked)
    report.figure("denials", len(refused))
    assert refused == []


def test_every_grant_was_used_or_says_why_not(granted: set[Grant], asked: set[Request], report: SuiteReport) -> None:
    idle = unused(granted, asked)
    unexplained = [grant for grant in idle if not any(reason.covers(grant) for reason in SELDOM)]
    report.figure("grants", len(granted))
    report.figure("grants_seldom_used", len(idle) - len(unexplained))
    report.figure("unused_grants", len(unexplained))
    assert [str(grant) for grant in unexplained] == []


def test_every_reason_is_of_a_grant(granted: set[Grant]) -> None:
    assert [reason for reason in SELDOM if not any(map(reason.covers, granted))] == []
