"""All targets, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.security.fuzz.targets.archives import Archives, KeptPods
from tests.security.fuzz.targets.frontproxy import FrontProxies
from tests.security.fuzz.targets.kubeconfigs import Kubeconfigs
from tests.security.fuzz.targets.logs import LogQueries
from tests.security.fuzz.targets.quantities import Generations, Quantities
from tests.security.fuzz.targets.queues import Queues
from tests.security.fuzz.targets.readings import Readings
from tests.security.fuzz.targets.reviews import ReviewBytes, Reviews
from tests.security.fuzz.targets.snapshots import SnapshotTexts
from tests.security.fuzz.targets.views import Views
from tests.security.fuzz.targets.watches import Watches

if TYPE_CHECKING:
    from tests.security.fuzz.target import Target

TARGETS: Final[dict[str, type[Target]]] = {
    target.name: target
    for target in (
        *(Reviews, ReviewBytes, Kubeconfigs, LogQueries, Watches, Queues, KeptPods, Archives, SnapshotTexts),
        *(Quantities, Generations, FrontProxies, Readings, Views),
    )
}
