"""Grants that a run in the lab does not use, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.grants.comparison import Grant


@dataclass(frozen=True)
class Reason:
    """Why a grant is there although no run used it; `resource` may be `*`."""

    why: str
    verb: str
    resource: str

    def covers(self, grant: Grant) -> bool:
        """Return whether it is this grant's reason."""
        return grant.verb == self.verb and self.resource in {"*", grant.resource}


SELDOM: Final = (
    Reason("asked of API servers that do not stream their lists (before Kubernetes 1.32)", "list", "*"),
    Reason("only where the API server runs OwnerReferencesPermissionEnforcement", "update", "trainjobs/finalizers"),
)
