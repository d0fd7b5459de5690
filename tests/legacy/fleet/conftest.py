"""Teams on the fleet of these tests."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.fleet.team import MakeTeam, Team, make_team

if TYPE_CHECKING:
    from lab.fleet import Fleet


@pytest.fixture
def team(fleet: Fleet) -> MakeTeam:
    """Return a function that makes a team on the fleet, which ends with it."""

    def make(*, quotas: dict[str, dict[str, str]] | None = None, **others: Any) -> Team:
        return make_team(fleet, f"team-{uuid.uuid4().hex[:8]}", quotas=quotas or {}, **others)

    return make
