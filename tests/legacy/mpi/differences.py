"""Where we want to differ from mpi-operator v0.8.2, each with its reason; whatever else differs is a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.legacy.mpi.cases import BEFORE
from tests.legacy.mpi.compare import ABSENT
from trainplane.api import tree as trees
from trainplane.legacy.mpi.job import MPIJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.legacy.mpi.compare import Difference

_LAUNCHER_REQUESTS = ("create Job", "update Job", "updatestatus Job", "delete Job")


@dataclass(frozen=True)
class Declared:
    """A difference that we want."""

    id: str
    what: str
    reason: str
    matches: Callable[[Difference], bool]


def explain(found: Difference) -> Declared | None:
    """Return what declares a difference."""
    return next((declared for declared in DECLARED if declared.matches(found)), None)


def _has_no_owner_in_template(found: Difference) -> bool:
    return found.path[-4:] == ("spec", "template", "metadata", "ownerReferences") and found.ours == ABSENT


def _keys_are_immutable(found: Difference) -> bool:
    return found.request.startswith("create Secret") and found.path[2:] == ("immutable",) and found.ours is True


def _mpich_is_told(found: Difference) -> bool:
    if found.path[-1] != "containers" or not isinstance(found.ours, list):
        return False
    first = found.ours[0]
    env = [one for one in first.get("env", ()) if one["name"] != "HYDRA_LAUNCHER_EXTRA_ARGS"]
    return len(env) < len(first["env"]) and [{**first, "env": env}, *found.ours[1:]] == found.reference


def _searches_the_domain(found: Difference) -> bool:
    domain = found.case.settings.cluster_domain
    if not domain or found.path[-2:] != ("dnsConfig", "searches"):
        return False
    return bool([one.removesuffix("cluster.local") + domain for one in found.reference] == found.ours)


def _tells_once(found: Difference) -> bool:
    """Return whether the news that we leave out is of a condition that stood before."""
    if found.path != ("events",):
        return False
    stood = {one["reason"] for one in trees.entries(found.case.job, "status", "conditions")}
    again = [one for one in found.reference if one not in found.ours]
    return sorted([*found.ours, *again]) == found.reference and all(one.split()[1] in stood for one in again)


def _is_suspended_launcher(found: Difference) -> bool:
    """Return whether it is the launcher's Job of a job that is suspended, or was when the Job was suspended."""
    if not found.request.startswith(_LAUNCHER_REQUESTS):
        return False
    job = MPIJob(found.case.job)
    launcher = next((one for one in found.case.there if one["kind"] == "Job"), {})
    return len(found.path) == 2 and (job.suspended or trees.get(launcher, "spec", "suspend") is True)


def _is_over(found: Difference) -> bool:
    launcher = next((one for one in found.case.there if one["kind"] == "Job"), {})
    ended = any(one["type"] == "Complete" for one in trees.entries(launcher, "status", "conditions"))
    return _deletes_fewer(found) and ended and MPIJob(found.case.job).suspended


def _stops_all(found: Difference) -> bool:
    return _deletes_more(found) and MPIJob(found.case.job).suspended


def _leaves_surplus_by_name(found: Difference) -> bool:
    job = MPIJob(found.case.job)
    wanted = int(found.request.rpartition("-")[2]) < job.workers if _deletes_fewer(found) else False
    return wanted and job.launcher_trains


def _cleans_surplus(found: Difference) -> bool:
    job = MPIJob(found.case.job)
    return _deletes_more(found) and job.status.get("completionTime") is not None and job.clean == "All"


def _lets_go(found: Difference) -> bool:
    name = found.request.rpartition(" ")[2]
    pod = next((one for one in found.case.there if one["metadata"]["name"] == name), {})
    return _deletes_fewer(found) and trees.get(pod, "metadata", "deletionTimestamp") == BEFORE


def _deletes_fewer(found: Difference) -> bool:
    return found.request.startswith("delete Pod") and found.ours == ABSENT


def _deletes_more(found: Difference) -> bool:
    return found.request.startswith("delete Pod") and found.reference == ABSENT


def _counts_init_containers(found: Difference) -> bool:
    replicas = trees.fields(found.case.job, "spec", "mpiReplicaSpecs").values()
    said = any(trees.entries(one, "template", "spec", "initContainers") for one in replicas)
    return said and found.path[-1] == "minResources"


def _is_refused(found: Difference) -> bool:
    spec = found.case.job["spec"]
    least = trees.number(spec, "runPolicy", "schedulingPolicy", "minAvailable") or 0
    hopeless = ":" in spec.get("sshAuthMountPath", "") or spec.get("launcherCreationPolicy") == "Later" or least == 9
    return hopeless and (found.ours == ABSENT or found.path[0] in {"events", "refused"})


DECLARED = (
    Declared(
        "template-owner",
        "the template of the launcher's Job has no ownerReferences",
        "Kubernetes does not read them there",
        _has_no_owner_in_template,
    ),
    Declared(
        "immutable-keys", "the Secret with the keys is immutable", "nobody swaps keys under pods", _keys_are_immutable
    ),
    Declared(
        "mpich-args",
        "HYDRA_LAUNCHER_EXTRA_ARGS beside HYDRA_LAUNCH_EXTRA_ARGS",
        "MPICH reads the former only, so with mpi-operator ssh tries to connect once",
        _mpich_is_told,
    ),
    Declared(
        "search-domain",
        "workers search the cluster's own domain",
        "mpi-operator always writes cluster.local, where a cluster of another domain has nothing",
        _searches_the_domain,
    ),
    Declared(
        "told-once",
        "no Event for a condition that stood before",
        "mpi-operator tells that a job runs each time that it looks",
        _tells_once,
    ),
    Declared(
        "no-suspended-launcher",
        "a suspended job has no launcher's Job; it is made when the job resumes",
        "of a Job that ran, Kubernetes lets few fields change: whatever Kueue or the user changed holds for all pods",
        _is_suspended_launcher,
    ),
    Declared(
        "over-is-over",
        "workers of a job that was suspended after its launcher ended go as cleanPodPolicy says",
        "nothing of it can resume",
        _is_over,
    ),
    Declared(
        "stops-all",
        "a suspended job loses finished workers too",
        "with mpi-operator and cleanPodPolicy Running a failed worker stays, and is dead when the job resumes",
        _stops_all,
    ),
    Declared(
        "surplus-by-name",
        "a smaller job whose launcher trains keeps the workers that it wants",
        "mpi-operator reads the label replica-index, which counts the launcher there, and deletes one too many",
        _leaves_surplus_by_name,
    ),
    Declared(
        "cleans-surplus",
        "workers beyond the job's number go with the others when it is over",
        "mpi-operator forgets those of before the job was made smaller",
        _cleans_surplus,
    ),
    Declared("deleted-once", "a pod that is being deleted is not deleted again", "once is enough", _lets_go),
    Declared(
        "gang-needs",
        "minResources of a gang counts init containers, sidecars and overhead",
        "that is what the scheduler counts; with less a gang may start where it does not fit",
        _counts_init_containers,
    ),
    Declared(
        "refused-early",
        "a folder that cannot be mounted, a gang larger than the job and an unknown launcherCreationPolicy are refused",
        "no pod would ever run; and mpi-operator takes any word for WaitForWorkersReady",
        _is_refused,
    ),
)
