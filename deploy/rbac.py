"""What the operator may do: one line for each thing that its code asks of the API server, with the reason.

`tests/install` compares these lines with the API server's audit log of a run: none may be missing, and verbs that not
every run uses say when they are (`seldom`). Server-side apply needs `patch`, and `create` where there may be no object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

Scope = Literal["jobs", "secrets", "cluster", "election", "own", "hub"]
"""Where a grant holds.

- jobs: in every namespace with TrainJobs; or in those that an admin names.
- secrets: the same, bound apart, so that an admin may keep it to namespaces with MPI or Flux jobs or data caches.
- cluster: on objects without a namespace.
- election: in the namespace of the Lease, which is the operator's unless its settings say otherwise.
- own: in the operator's namespace alone.
- hub: of the hub view, whose roles `hub_rbac` has.
"""


@dataclass(frozen=True)
class Grant:
    """Verbs on resources, and why."""

    why: str
    scope: Scope
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only objects of these names; `{lease}` and `{secret}` are the settings'."""
    when: str = ""
    """Only with this setting: `certificates` (the operator makes its own), `metrics` (who reads them is asked),
    `progress` (pods report theirs)."""
    seldom: dict[str, str] = field(default_factory=dict)
    """Verbs that not every run uses, and when they are."""

    def rule(self) -> dict[str, Any]:
        """Return it as a rule of a role."""
        rule: dict[str, Any] = {"apiGroups": [self.group], "resources": list(self.resources)}
        if self.names:
            rule["resourceNames"] = list(self.names)
        return {**rule, "verbs": sorted({*self.verbs, *self.seldom})}


TRAINER: Final = "trainer.kubeflow.org"
_UNSTREAMED: Final = {"list": "where the API server does not stream lists"}
_OF_RUNTIMES: Final = {
    **_UNSTREAMED,
    "get": "a runtime newer than its mirror",
    "patch": "the finalizer of older releases is taken away",
}

OPERATOR: Final = (
    Grant("TrainJobs are mirrored", "jobs", TRAINER, ("trainjobs",), ("watch",),
          seldom={**_UNSTREAMED, "get": "before a JobSet is stopped or resumed"}),
    Grant("The status is what is written of a TrainJob", "jobs", TRAINER, ("trainjobs/status",), ("patch",)),
    Grant("One that waited for another (trainplane.dev/after) is let into its queue", "jobs", TRAINER, ("trainjobs",),
          (), seldom={"patch": "what it waited for is complete"}),
    Grant("What is made for a TrainJob names it as its owner and keeps it until it is gone", "jobs", TRAINER,
          ("trainjobs/finalizers",), (),
          seldom={"update": "where the API server runs OwnerReferencesPermissionEnforcement, as OpenShift's does"}),
    Grant("Runtimes of a namespace are mirrored", "jobs", TRAINER, ("trainingruntimes",), ("watch",),
          seldom=_OF_RUNTIMES),
    Grant("Runtimes for all namespaces are mirrored", "cluster", TRAINER, ("clustertrainingruntimes",), ("watch",),
          seldom=_OF_RUNTIMES),
    Grant("JobSets run the pods", "jobs", "jobset.x-k8s.io", ("jobsets",), ("watch", "create", "patch"),
          seldom={**_UNSTREAMED, "get": "before one is changed", "delete": "its TrainJob is past its deadline"}),
    Grant("Pods of JobSets are mirrored: how many are ready, and what went wrong first", "jobs", "", ("pods",),
          ("watch",), seldom={"list": f"{_UNSTREAMED['list']}; or a sender's last word is not mirrored yet"}),
    Grant("The telling lines of a container that failed are kept", "jobs", "", ("pods/log",), (),
          seldom={"get": "a container failed"}),
    Grant("A TrainJob's runtime is kept as it was at the beginning; pods know the status server by its authority",
          "jobs", "", ("configmaps",), ("create", "patch"), seldom={"get": "nobody remembers that runtime"}),
    Grant("A snapshot, hostfile or script that somebody deletes is back at once: metadata alone is read of ConfigMaps",
          "jobs", "", ("configmaps",), ("watch",), seldom=_UNSTREAMED),
    Grant("Events tell users what happens", "jobs", "", ("events",), ("create",),
          seldom={"patch": "one that happens again is counted"}),
    Grant("Gangs of Volcano", "jobs", "scheduling.volcano.sh", ("podgroups",), (),
          seldom=dict.fromkeys(("create", "patch"), "runtimes with podGroupPolicy.volcano")),
    Grant("A group that somebody deletes is back at once", "jobs", "scheduling.volcano.sh", ("podgroups",), ("watch",),
          seldom=_UNSTREAMED),
    Grant("Gangs of the coscheduling plugin", "jobs", "scheduling.x-k8s.io", ("podgroups",), (),
          seldom=dict.fromkeys(("create", "patch"), "runtimes with podGroupPolicy.coscheduling")),
    Grant("A group that somebody deletes is back at once", "jobs", "scheduling.x-k8s.io", ("podgroups",), ("watch",),
          seldom=_UNSTREAMED),
    Grant("The head of a data cache has a name of its own", "jobs", "", ("services",), (),
          seldom=dict.fromkeys(("create", "patch"), "runtimes with a data cache")),
    Grant("A cache's Service that somebody deletes is back at once: metadata alone is read of those with our label",
          "jobs", "", ("services",), ("watch",), seldom=_UNSTREAMED),
    Grant("SSH keys of MPI, certificates of Flux, keys of data caches: drawn once, and looked at before they are used",
          "secrets", "", ("secrets",), (), seldom=dict.fromkeys(("create", "get"), "MPI, Flux and data caches")),
    Grant("The API server must trust our certificate", "cluster", "admissionregistration.k8s.io",
          ("mutatingwebhookconfigurations",), ("get", "patch"), names=("defaulter.trainer.kubeflow.org",),
          when="certificates"),
    Grant("The API server must trust our certificate", "cluster", "admissionregistration.k8s.io",
          ("validatingwebhookconfigurations",), ("get", "patch"), names=("validator.trainer.kubeflow.org",),
          when="certificates"),
    Grant("Whose token is it that asks for metrics?", "cluster", "authentication.k8s.io", ("tokenreviews",),
          ("create",), when="metrics"),
    Grant("Whose token is it that a report of progress carries?", "cluster", "authentication.k8s.io",
          ("tokenreviews",), (), when="progress", seldom={"create": "a pod reports, once a minute"}),
    Grant("May they?", "cluster", "authorization.k8s.io", ("subjectaccessreviews",), ("create",), when="metrics"),
    Grant("One replica leads. The Lease comes with the installation: `create` cannot be held to a name", "election",
          "coordination.k8s.io", ("leases",), ("get", "update"), names=("{lease}",)),
    Grant("Replicas share a certificate. The Secret comes with the installation, too", "own", "", ("secrets",),
          ("get", "watch", "update"), names=("{secret}",), when="certificates", seldom=_UNSTREAMED),
)  # fmt: skip
"""All that the operator does; what is not here, it cannot do."""


def rules(scope: Scope, when: str = "") -> list[dict[str, Any]]:
    """Return the rules of a scope that need a setting, or none."""
    return [grant.rule() for grant in OPERATOR if (grant.scope, grant.when) == (scope, when)]
