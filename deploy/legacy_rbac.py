"""What the operator may do beside `rbac` where an admin has it serve older kinds: one line for each thing, as there.

A right is granted where a kind that needs it is served, and nowhere else: an operator that serves none of them has none
of these rights. ConfigMaps and Secrets of MPIJobs are made with the rights that MPI of TrainJobs takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deploy.rbac import TRAINER, Grant
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import KINDS, MPI, Kind

if TYPE_CHECKING:
    from deploy.rbac import Scope

_UNSTREAMED: Final = {"list": "where the API server does not stream lists"}
_TAKEN: Final = {"get": "the name is taken: whose is it?"}
_OWNERS: Final = {"update": "where the API server runs OwnerReferencesPermissionEnforcement, as OpenShift's does"}


@dataclass(frozen=True)
class Need:
    """What serving any of some kinds takes."""

    kinds: tuple[str, ...]
    """Their plurals, as `legacy.kinds` has them."""
    grants: tuple[Grant, ...]
    gang: str = ""
    """Only where this gang scheduler is named by `legacy.gangSchedulerName`."""


def _of_jobs(kind: Kind) -> Need:
    """Return what is asked of the jobs themselves."""
    group, plural = names.GROUP, kind.plural
    return Need((plural,), (
        Grant(f"{kind.name}s are mirrored", "jobs", group, (plural,), ("watch",), seldom={
            **_UNSTREAMED, "get": "one newer than its mirror", "delete": "ttlSecondsAfterFinished is over"}),
        Grant(f"The status is what is written of a {kind.name}", "jobs", group, (f"{plural}/status",), ("patch",)),
        Grant(f"What is made for a {kind.name} names it as its owner and keeps it until it is gone", "jobs", group,
              (f"{plural}/finalizers",), (), seldom=_OWNERS),
    ))  # fmt: skip


def _gang(name: str, group: str) -> Need:
    return Need(_JOBS, (
        Grant(f"Gangs of {name}", "jobs", group, ("podgroups",), (),
              seldom=dict.fromkeys(("list", "watch", "get", "create", "patch", "delete"), "where jobs are gangs")),
    ), gang=name)  # fmt: skip


_JOBS: Final = tuple(kind.plural for kind in KINDS.values())
_OLDER: Final = (
    names.V2ALPHA1_TRAIN_JOBS,
    names.V2ALPHA1_TRAINING_RUNTIMES,
    names.V2ALPHA1_CLUSTER_TRAINING_RUNTIMES,
)

NEEDS: Final = (
    *map(_of_jobs, KINDS.values()),
    Need(_JOBS, (
        Grant("Pods are made for each job, and made anew; TrainJobs' pods are watched already", "jobs", "", ("pods",),
              ("create",), seldom={**_TAKEN, "delete": "the job is suspended, scaled down or over, or starts anew"}),
        Grant("Each pod of a job has a Service, by whose name the others find it", "jobs", "", ("services",),
              ("watch", "create"),
              seldom={**_UNSTREAMED, **_TAKEN, "patch": "the Service of all workers of an MPIJob",
                      "delete": "the job is suspended, scaled down or over"}),
    )),
    Need(tuple(kind.plural for kind in KINDS.values() if kind.elastic), (
        Grant("Autoscalers of elastic jobs", "jobs", "autoscaling", ("horizontalpodautoscalers",), ("watch",),
              seldom={**_UNSTREAMED, **_TAKEN, **dict.fromkeys(("create", "patch"), "elasticPolicy.metrics"),
                      "delete": "the job is suspended"}),
    )),
    Need((MPI.plural,), (
        Grant("The launcher is a Job", "jobs", "batch", ("jobs",), ("watch", "create"),
              seldom={**_UNSTREAMED, **_TAKEN, "delete": "the job is to begin anew, or over"}),
        Grant("The API server must trust who converts MPIJobs", "cluster", "apiextensions.k8s.io",
              ("customresourcedefinitions",), ("get", "patch"), names=(f"{MPI.plural}.{names.GROUP}",),
              when="certificates"),
    )),
    Need(_JOBS, (
        Grant("The API server must trust our certificate", "cluster", "admissionregistration.k8s.io",
              ("mutatingwebhookconfigurations",), ("get", "patch"), names=(names.DEFAULTER,), when="certificates"),
        Grant("The API server must trust our certificate", "cluster", "admissionregistration.k8s.io",
              ("validatingwebhookconfigurations",), ("get", "patch"), names=(names.VALIDATOR,), when="certificates"),
    )),
    _gang("volcano", "scheduling.volcano.sh"),
    _gang("scheduler-plugins", "scheduling.x-k8s.io"),
    Need(_OLDER[:1], (
        Grant("TrainJobs of v2alpha1 are mirrored", "jobs", names.GROUP, _OLDER[:1], ("watch",), seldom=_UNSTREAMED),
        Grant("Their status is what is written of them", "jobs", names.GROUP, (f"{_OLDER[0]}/status",), ("patch",)),
        Grant("What they become names them as its owner", "jobs", names.GROUP, (f"{_OLDER[0]}/finalizers",), (),
              seldom=_OWNERS),
        Grant("They become TrainJobs", "jobs", TRAINER, ("trainjobs",), ("create", "patch"), seldom=_TAKEN),
    )),
    Need(_OLDER[:2], (
        Grant("Runtimes of v2alpha1 are mirrored", "jobs", names.GROUP, _OLDER[1:2], ("watch",), seldom=_UNSTREAMED),
        Grant("Their status is what is written of them", "jobs", names.GROUP, (f"{_OLDER[1]}/status",), ("patch",)),
        Grant("What they become names them as its owner", "jobs", names.GROUP, (f"{_OLDER[1]}/finalizers",), (),
              seldom=_OWNERS),
        Grant("They, and TrainJobs without a runtime, become TrainingRuntimes", "jobs", TRAINER,
              ("trainingruntimes",), ("create", "patch"), seldom=_TAKEN),
    )),
    Need(_OLDER[2:], (
        Grant("Runtimes of v2alpha1 for all namespaces are mirrored", "cluster", names.GROUP, _OLDER[2:], ("watch",),
              seldom=_UNSTREAMED),
        Grant("Their status is what is written of them", "cluster", names.GROUP, (f"{_OLDER[2]}/status",),
              ("patch",)),
        Grant("What they become names them as its owner", "cluster", names.GROUP, (f"{_OLDER[2]}/finalizers",), (),
              seldom=_OWNERS),
        Grant("They become ClusterTrainingRuntimes", "cluster", TRAINER, ("clustertrainingruntimes",),
              ("create", "patch"), seldom=_TAKEN),
    )),
)  # fmt: skip
"""All that older kinds take; what is not here, nor in `rbac`, the operator cannot do."""

OPERATOR: Final = tuple(grant for need in NEEDS for grant in need.grants)
"""The grants alone, for whoever compares them with what was asked for."""


def rules(need: Need, scope: Scope, when: str = "") -> list[dict[str, Any]]:
    """Return the rules of a need in a scope that need a setting, or none."""
    return [grant.rule() for grant in need.grants if (grant.scope, grant.when) == (scope, when)]
