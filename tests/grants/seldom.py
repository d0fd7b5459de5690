"""Grants that a run in the lab does not use, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deploy import legacy_rbac

if TYPE_CHECKING:
    from tests.grants.comparison import Grant


OPERATOR: Final = "kubeflow-system:kubeflow-trainer-controller-manager"
HUB: Final = "trainplane-hub:trainplane-hub"
FRONT: Final = "trainplane-hub:trainplane-hub-front"
ANY: Final = "*"


@dataclass(frozen=True)
class Reason:
    """Why grants are there although CI's run does not use them."""

    why: str
    account: str
    verbs: tuple[str, ...]
    resources: tuple[str, ...]

    def covers(self, grant: Grant) -> bool:
        """Return whether it is this grant's reason."""
        return (
            self.account in {ANY, grant.account}
            and grant.verb in self.verbs
            and (self.resources == (ANY,) or grant.resource in self.resources)
        )


_OWN_CERTIFICATE: Final = "the lab hands certificates out; under the chart's names `make install-e2e` compares them"
_ON_THE_HUB: Final = "for TrainJobs that run on the hub itself; the lab's run on workers"
_WEBHOOKS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

SELDOM: Final = (
    Reason("asked of API servers that do not stream lists, or have just started", ANY, ("list",), (ANY,)),
    Reason("where OwnerReferencesPermissionEnforcement is on", OPERATOR, ("update",), ("trainjobs/finalizers",)),
    Reason("gangs: `make e2e FULL=1`", OPERATOR, ("create", "patch"), ("podgroups",)),
    Reason("the reference's finalizer", OPERATOR, ("patch",), ("trainingruntimes", "clustertrainingruntimes")),
    Reason("one replica needs no Lease; `make install-e2e` has two", OPERATOR, ("get", "update"), ("leases",)),
    Reason(_OWN_CERTIFICATE, OPERATOR, ("get", "patch"), _WEBHOOKS),
    Reason(_OWN_CERTIFICATE, OPERATOR, ("get", "watch", "update"), ("secrets",)),
    Reason("metrics over TLS: in `make install-e2e`", OPERATOR, ("create",), ("tokenreviews", "subjectaccessreviews")),
    Reason(_OWN_CERTIFICATE, HUB, ("create", "get", "watch", "update"), ("secrets",)),
    Reason(_OWN_CERTIFICATE, HUB, ("get", "patch"), ("apiservices",)),
    Reason("fronts: `make integration FULL=1`", HUB, ("create",), ("tokenreviews",)),
    Reason(_ON_THE_HUB, HUB, ("get",), ("pods", "pods/log", "jobs", "jobsets")),
    Reason("until they are mirrored", HUB, ("get",), ("multikueueclusters", "multikueueconfigs")),
    Reason("a TrainJob with a runtime of its namespace that waits", HUB, ("get",), ("trainingruntimes",)),
    Reason("fronts: `make integration FULL=1`", FRONT, ("create", "get", "patch", "update", "watch"), (ANY,)),
    Reason(_OWN_CERTIFICATE, OPERATOR, ("get", "patch"), ("customresourcedefinitions",)),
    *(
        Reason(why, OPERATOR, (verb,), grant.resources)
        for grant in legacy_rbac.OPERATOR
        for verb, why in grant.seldom.items()
    ),
)
