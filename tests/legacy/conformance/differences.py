"""Where we differ from training-operator v1.9.3 on purpose: each cause with what makes a difference one of it.

A predicate looks at the place, at both values, and at what in the case is the cause; a difference that no predicate
takes fails the suite.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.conformance.compare import ABSENT, tree_differences
from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy.job import Job
from trainplane.legacy.tally import SIGNALLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.legacy.conformance.cases import Case, Tree

_OBJECT: Final = re.compile(r"(?:pods|services|deleted\.Pod/|deleted\.Service/)\.?(job-([a-z]+)-(\d+))")
_ENDED: Final = ("Succeeded", "Failed")
_OUTCOME: Final = re.compile(r"status\.(state|completionTime|conditions\.(Failed|Succeeded|Restarting|Running)\b.*)")


@dataclass(frozen=True)
class Difference:
    """One place at which two looks at a case differ."""

    case: Case
    theirs: Tree
    ours: Tree
    path: str
    left: Any
    right: Any

    def __str__(self) -> str:
        return f"{self.case} {self.path}\n    theirs {str(self.left)[:200]}\n    ours   {str(self.right)[:200]}"

    @property
    def job(self) -> Job:
        """The job of the case."""
        return Job(self.case.kind, self.case.job)

    @property
    def is_theirs_alone(self) -> bool:
        """Whether they did something that we did not."""
        return bool(self.left != ABSENT and self.right == ABSENT)

    @property
    def member(self) -> tuple[str, int] | None:
        """Whose pod or Service it is about: the name of both, and the number of the member."""
        match = _OBJECT.match(self.path)
        return (match[1], int(match[3])) if match else None

    def pods(self) -> Iterator[tuple[str, str, Tree]]:
        """Yield each pod that the job asks for, with its type and restart policy."""
        found = {pod["metadata"]["name"]: pod for pod in self.case.pods}
        for member in self.job.members():
            pod = found.get(self.job.pod_name(member.type, member.number))
            if pod:
                yield member.type, self.job.replicas[member.type].restart, pod


def differences(case: Case, theirs: Tree, ours: Tree) -> list[Difference]:
    """Return every place at which two looks at a case differ."""
    return [Difference(case, theirs, ours, *each) for each in tree_differences(theirs, ours)]


def explain(found: Difference) -> str | None:
    """Return the cause of a difference; None if nothing declares it."""
    return next((cause for cause, (_, matches) in DECLARED.items() if matches(found)), None)


# -- what is asked of a case


def _conditions(look: Tree) -> set[str]:
    return {name for name, one in look["status"].get("conditions", {}).items() if one["status"] == "True"}


def _is_going(pod: Tree) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _code(pod: Tree) -> int | None:
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    code: int | None = statuses[0]["state"].get("terminated", {}).get("exitCode")
    return code


def _has_final_code(found: Difference) -> bool:
    """Return whether a pod failed with an exit code that its policy does not try again."""
    return any(
        policy == names.RESTART_EXIT_CODE
        and pod["status"]["phase"] == "Failed"
        and (_code(pod) or SIGNALLED) < SIGNALLED
        for _, policy, pod in found.pods()
    )


def _has_restarted(found: Difference) -> bool:
    """Return whether a pod failed, or is deleted while it runs, whose policy may try it again."""
    return any(
        policy != names.RESTART_NEVER
        and (pod["status"]["phase"] == "Failed" or (pod["status"]["phase"] == "Running" and _is_going(pod)))
        for _, policy, pod in found.pods()
    )


def _is_stopped(found: Difference) -> bool:
    """Return whether a limit of the run policy was reached."""
    policy = found.job.policy
    late = policy.get("activeDeadlineSeconds") == 600 and found.case.stage == "running"
    limit = policy.get("backoffLimit")
    if limit is None:
        return late
    restarts = sum(
        pod["status"].get("containerStatuses", [{"restartCount": 0}])[0]["restartCount"]
        for _, policy, pod in found.pods()
        if pod["status"]["phase"] == "Running" and policy != names.RESTART_NEVER
    )
    failed = any(pod["status"]["phase"] == "Failed" for pod in found.case.pods)
    return late or bool(restarts and restarts >= limit) or (limit == 0 and failed)


def _ends_now(found: Difference) -> bool:
    return found.case.stage != "over" and found.ours["status"].get("completionTime") == "now"


# -- the causes


def _waits_otherwise(found: Difference) -> bool:
    return found.path.endswith(".initContainers[init-pytorch].command") and found.right[:2] == ["sh", "-c"]


def _is_kept_for_its_logs(found: Difference) -> bool:
    ended = {pod["metadata"]["name"] for pod in found.case.pods if pod["status"]["phase"] in _ENDED}
    return (
        _is_stopped(found)
        and found.is_theirs_alone
        and found.path.startswith("deleted.")
        and (found.member or ("",))[0] in ended
    )


def _is_counted_when_stopped(found: Difference) -> bool:
    return _is_stopped(found) and _ends_now(found) and found.path.startswith("status.replicaStatuses")


def _is_withdrawn(found: Difference) -> bool:
    match = re.fullmatch(r"status\.conditions\.(Running|Restarting)\.(status|last\w+Time)", found.path)
    if not match or found.ours["status"]["conditions"][match[1]]["status"] != "False":
        return False
    is_over = bool(_conditions(found.ours) & {names.SUCCEEDED, names.FAILED, names.SUSPENDED})
    turned = (found.left, found.right) == ("True", "False") if match[2] == "status" else found.right == "now"
    return is_over and turned and (match[2] != "status" or match[1] == names.RESTARTING)


def _ends_before_anything_is_made(found: Difference) -> bool:
    if not _ends_now(found):
        return False
    if re.fullmatch(r"status\.(state|conditions\.(Restarting|Running)(\.last\w+Time)?)", found.path):
        ours = trees.get(found.ours["status"], *found.path.split(".")[1:3])
        is_over = ours in (None, names.SUCCEEDED) or trees.get(ours, "status") == "False"
        return is_over and names.RESTARTING in _conditions(found.theirs) and _has_restarted(found)
    return found.is_theirs_alone and bool(found.member)


def _is_beyond(found: Difference) -> bool:
    """Match what they make, count or conclude of pods beyond those that the job asks for."""
    wanted = {name.lower(): one.count for name, one in found.job.replicas.items()}
    if found.member:
        kind = found.member[0].split("-")[1]
        return found.left is not ABSENT and found.is_theirs_alone and found.member[1] >= wanted[kind]
    counted = {pod["metadata"]["name"].split("-")[1] for pod in found.case.pods if _number(pod) >= wanted[_type(pod)]}
    match = re.match(r"status\.replicaStatuses\.(\w+)", found.path)
    if match:
        return match[1].lower() in counted
    return bool(counted) and bool(_OUTCOME.fullmatch(found.path))


def _type(pod: Tree) -> str:
    return str(pod["metadata"]["name"]).split("-")[1]


def _number(pod: Tree) -> int:
    return int(pod["metadata"]["name"].split("-")[2])


def _is_of_earlier_run(found: Difference) -> bool:
    left_over = [pod for _, _, pod in found.pods() if _is_going(pod) and pod["status"]["phase"] != "Pending"]
    if found.case.stage != "resumed" or not left_over:
        return False
    if found.job.policy.get("backoffLimit") == 0 and _conditions(found.theirs) >= {names.FAILED}:
        return names.FAILED not in _conditions(found.ours)
    return found.path.startswith("status.replicaStatuses.") or bool(_OUTCOME.fullmatch(found.path))


def _restarts_as_its_policy_says(found: Difference) -> bool:
    """Match TFJobs and XGBoostJobs that they fail although the pod that failed, or was lost, is restarted."""
    return (
        found.case.kind.name in (names.TF_JOB, names.XGBOOST_JOB)
        and _has_restarted(found)
        and names.FAILED in _conditions(found.theirs)
        and names.RESTARTING in _conditions(found.ours)
        and names.FAILED not in _conditions(found.ours)
        and bool(_OUTCOME.fullmatch(found.path))
    )


def _runs_in_passing(found: Difference) -> bool:
    """Match the Running condition that they give an XGBoostJob in the moment of its end, in the place of Restarting."""
    if found.case.kind.name != names.XGBOOST_JOB or not _ends_now(found):
        return False
    if found.path == "status.conditions.Restarting":
        return bool(found.left == ABSENT and found.right["status"] == "False")
    if re.fullmatch(r"status\.conditions\.Running\.last\w+Time", found.path):
        return bool(found.left == "now")
    return found.path == "status.conditions.Running" and found.is_theirs_alone and found.left["status"] == "False"


def _has_its_completion_time(found: Difference) -> bool:
    missing = (found.path, found.left, found.right) == ("status.completionTime", ABSENT, "now")
    missed = found.path == "error" and "completion time is nil" in str(found.left)
    both = names.FAILED in _conditions(found.theirs) & _conditions(found.ours)
    return (missing or missed) and both and _has_final_code(found)


def _is_done_with_its_leader(found: Difference) -> bool:
    """Match jobs whose leader succeeded, and which they fail for a pod that failed at the same time."""
    return (
        _conditions(found.ours) & {names.SUCCEEDED, names.FAILED} == {names.SUCCEEDED}
        and names.FAILED in _conditions(found.theirs)
        and _ends_now(found)
        and (names.SUCCEEDED in _conditions(found.theirs) or _has_final_code(found))
        and bool(_OUTCOME.fullmatch(found.path))
    )


def _is_not_excused_by_a_restart(found: Difference) -> bool:
    """Match TFJobs of which a pod failed for good, and which they let go on since another was restarted."""
    final = any(
        policy == names.RESTART_NEVER and (pod["status"]["phase"] == "Failed" or _is_going(pod))
        for _, policy, pod in found.pods()
    )
    before = {one["type"] for one in found.case.job.get("status", {}).get("conditions", [])}
    theirs, ours = _conditions(found.theirs), _conditions(found.ours)
    return (
        found.case.kind.name == names.TF_JOB
        and final
        and names.RESTARTING in theirs | before
        and names.FAILED not in theirs
        and names.RESTARTING not in ours
        and bool(_OUTCOME.fullmatch(found.path))
    )


def _ran_before_it_failed(found: Difference) -> bool:
    """Match the Running condition that a job gets of us whose leader ran when another pod failed it."""
    return (
        found.path == "status.conditions.Running"
        and found.left == ABSENT
        and found.right["status"] == "False"
        and names.FAILED in _conditions(found.theirs) & _conditions(found.ours)
        and (found.case.kind.name == names.TF_JOB or _has_final_code(found))
    )


def _counts_leaders_first(found: Difference) -> bool:
    """Match what a gang needs that is smaller than its job: they count types as Go's maps yield them."""
    least = found.job.policy.get("schedulingPolicy", {}).get("minAvailable", found.job.total)
    place = found.path.startswith("written.PodGroup.spec.minResources")
    return place and least < found.job.total and len(found.job.replicas) > 1


def _survives_nobody(found: Difference) -> bool:
    """Match TFJobs whose workers are dynamic and none, on which they break."""
    nobody = any(one.count == 0 for one in found.job.replicas.values())
    panics = str(found.theirs.get("error", "")).startswith("panic: runtime error: index out of range")
    return panics and nobody and found.job.spec.get("enableDynamicWorker") is True


def _restarts_whoever_leads(found: Difference) -> bool:
    """Match TFJobs that they call Running since the workers run, while a pod of another type is restarted."""
    return (
        found.case.kind.name == names.TF_JOB
        and _has_restarted(found)
        and names.RUNNING in _conditions(found.theirs)
        and names.RESTARTING in _conditions(found.ours)
        and bool(re.fullmatch(r"status\.(state|conditions\.(Running|Restarting))", found.path))
    )


def _goes_on_restarting(found: Difference) -> bool:
    """Match the time of a Restarting condition, which they write anew as long as a pod is going."""
    is_time = bool(re.fullmatch(r"status\.conditions\.Restarting\.last\w+Time", found.path))
    both = names.RESTARTING in _conditions(found.theirs) & _conditions(found.ours)
    return is_time and both and found.left == "now" and _has_restarted(found)


def _has_its_selector(found: Difference) -> bool:
    is_selector = bool(re.fullmatch(r"status\.replicaStatuses\.\w+\.selector", found.path))
    return is_selector and found.left == ABSENT and names.SUCCEEDED in _conditions(found.ours) and _ends_now(found)


def _is_left_alone(found: Difference) -> bool:
    """Match all that they do to a JAXJob that MultiKueue manages; we do nothing to it."""
    untouched = not any(found.ours[what] for what in ("pods", "services", "written", "deleted"))
    elsewhere = found.job.policy.get("managedBy") == names.MANAGED_BY_MULTIKUEUE
    return found.case.kind.name == names.JAX_JOB and elsewhere and untouched


def _waits_without_writing(found: Difference) -> bool:
    return found.path == "status.lastReconcileTime" and found.case.gang == "volcano" and found.is_theirs_alone


def _is_over_and_not_scaled(found: Difference) -> bool:
    is_over = bool(_conditions(found.ours) & {names.SUCCEEDED, names.FAILED})
    made = found.path == "written.HorizontalPodAutoscaler" and found.is_theirs_alone
    return is_over and (made or found.path == "deleted.HorizontalPodAutoscaler/job")


def _leaves_no_service(found: Difference) -> bool:
    pods = {pod["metadata"]["name"] for pod in found.case.pods}
    return (
        found.case.stage == "suspended"
        and found.path.startswith("deleted.Service/")
        and (found.left, found.right) == (ABSENT, True)
        and (found.member or ("",))[0] not in pods
    )


def _has_no_server(found: Difference) -> bool:
    is_config = found.path.endswith(".env[TF_CONFIG].value")
    return is_config and found.left.replace('"ps":null', '"ps":[]') == found.right != found.left


DECLARED: Final[dict[str, tuple[str, Callable[[Difference], bool]]]] = {
    "wait": ("a worker waits for its master's address by a script of our own", _waits_otherwise),
    "logs": (
        "pods that ended are kept when a limit stops a job, so that their logs can be read",
        _is_kept_for_its_logs,
    ),
    "stopped-counts": ("the counts of a job that a limit stopped are those of its end", _is_counted_when_stopped),
    "withdrawn": ("a job that ended or is suspended is not Restarting, and says since when it is not", _is_withdrawn),
    "end-first": ("nothing is made or restarted in the look that ends a job", _ends_before_anything_is_made),
    "beyond": ("pods beyond `replicas` are neither made nor counted", _is_beyond),
    "earlier-run": ("pods still going from before a resume do not fail or restart the job", _is_of_earlier_run),
    "restart": ("TFJob and XGBoostJob restart pods as restartPolicy says", _restarts_as_its_policy_says),
    "in-passing": ("an XGBoostJob that was never seen running does not say that it was", _runs_in_passing),
    "completion": (
        "a job that failed by an exit code has a completionTime, so it can expire",
        _has_its_completion_time,
    ),
    "leader": ("a job is done when its leader is, whatever the others do then", _is_done_with_its_leader),
    "final": ("a TFJob does not go on without a pod because another was restarted", _is_not_excused_by_a_restart),
    "ran": ("a job whose leader ran when another pod failed it says that it ran", _ran_before_it_failed),
    "gang": ("a gang smaller than its job counts leaders first", _counts_leaders_first),
    "nobody": ("a TFJob with dynamic workers, none at present, is served", _survives_nobody),
    "whoever": ("a job of which a pod is restarted is Restarting, whoever leads", _restarts_whoever_leads),
    "steady": ("a restart that goes on keeps the time at which it began", _goes_on_restarting),
    "selector": ("every type has its selector, in the look that ends the job too", _has_its_selector),
    "managed": ("a JAXJob that MultiKueue manages is left alone, as other kinds are", _is_left_alone),
    "quiet": ("waiting for Volcano writes nothing", _waits_without_writing),
    "unscaled": ("a job that is over has no autoscaler", _is_over_and_not_scaled),
    "services": ("a suspended job has no Services, even where a pod was missing", _leaves_no_service),
    "no-server": ("without parameter servers, TF_CONFIG has an empty list of them", _has_no_server),
}
"""Each cause: what we do instead, and which differences it explains."""
