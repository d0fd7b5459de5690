"""Differences that we want in gang scheduling. Rows of `Declared`: id, what, reason, predicate.

Both groups, the reference's and ours, are worked out from the case anew: a number that is neither explains nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conformance import context as it
from tests.conformance import predicates
from tests.conformance.cases import Change
from tests.conformance.compare import ABSENT
from tests.conformance.documents import ANCESTOR
from tests.conformance.gangs import KINDS
from trainplane.api.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

_MARKS = {
    "coscheduling": ("labels", "scheduling.x-k8s.io/pod-group"),
    "volcano": ("annotations", "scheduling.k8s.io/group-name"),
}
_QUEUE = "scheduling.volcano.sh/queue-name"


def has_gang(case: Case) -> bool:
    """Return whether a case is about a runtime whose pods are scheduled together."""
    return "podGroupPolicy" in it.runtime(case).get("spec", {})


# -- the case ---------------------------------------------------------------------------------------------------------


def _jobs(case: Case) -> list[Tree]:
    jobs: list[Tree] = it.runtime(case)["spec"]["template"]["spec"]["replicatedJobs"]
    return jobs


def _ancestor(job: Tree) -> str:
    return str(job["template"].get("metadata", {}).get("labels", {}).get(ANCESTOR, ""))


def _alone(case: Case) -> set[str]:
    """Return the jobs whose pods cannot be there when a gang begins: initializers, and those that wait for others."""
    jobs = _jobs(case)
    initializers = {job["name"] for job in jobs if _ancestor(job).endswith("-initializer")}
    waiting = {job["name"] for job in jobs if {one["name"] for one in job.get("dependsOn", ())} - initializers}
    order = it.runtime(case)["spec"]["template"]["spec"].get("startupPolicy", {}).get("startupPolicyOrder")
    later = {job["name"] for job in jobs[1:]} if order == "InOrder" else set()
    return initializers | waiting | later


def _count(case: Case, job: Tree) -> int:
    """Return how many pods each replica of a job has."""
    policy = it.runtime(case)["spec"].get("mlPolicy")
    nodes = (it.spec(case).get("trainer") or {}).get("numNodes")
    mpi = (policy or {}).get("mpi")
    count = int(job["template"]["spec"].get("parallelism", 1))
    if _ancestor(job) == "trainer" and policy is not None:
        count = policy.get("numNodes", 1) if nodes is None or mpi is not None else nodes
    if mpi is not None and job["name"] == "node" and nodes is not None:
        count = max(nodes - 1, 1) if mpi.get("runLauncherAsNode") else nodes
    return int(count)


def _resources(case: Case, job: Tree, kind: str) -> dict[str, Quantity]:
    """Return what the containers of a pod request, or are limited to, together."""
    policy = it.runtime(case)["spec"].get("mlPolicy")
    asked = (it.spec(case).get("trainer") or {}).get("resourcesPerNode", {})
    launches = (policy or {}).get("mpi", {}).get("runLauncherAsNode") and job["name"] == "node"
    reached = (_ancestor(job) == "trainer" and policy is not None) or launches
    total: dict[str, Quantity] = {}
    for one in job["template"]["spec"]["template"]["spec"]["containers"]:
        amounts = {**one.get("resources", {}).get(kind, {})}
        if reached and one["name"] == "node":
            amounts |= asked.get(kind, {})
        for name, amount in amounts.items():
            total[name] = total.get(name, ZERO) + Quantity.of(amount)
    return total


def _groups(case: Case) -> tuple[Tree, Tree]:
    """Return members and resources of the group: the reference's, and ours."""
    theirs, ours = _Sum(), _Sum()
    alone = _alone(case)
    for job in _jobs(case):
        count, requests = _count(case, job), _resources(case, job, "requests")
        theirs.add(count, requests)
        if job["name"] not in alone:
            ours.add(count * job.get("replicas", 1), {**_resources(case, job, "limits"), **requests})
    return theirs.spec, ours.spec


class _Sum:
    def __init__(self) -> None:
        self.members = 0
        self.resources: dict[str, Quantity] = {}

    def add(self, count: int, requests: dict[str, Quantity]) -> None:
        self.members += count
        for name, amount in requests.items():
            self.resources[name] = self.resources.get(name, ZERO) + amount * count

    @property
    def spec(self) -> Tree:
        return {"minMember": self.members, **{f"minResources.{key}": str(one) for key, one in self.resources.items()}}


# -- whom a group counts ----------------------------------------------------------------------------------------------


def counts_those_together(found: Difference) -> bool:
    """Match the numbers of a group without pods that wait, or with all replicas; and pods that bear no mark of it."""
    if it.within(found, "JobSet"):
        return _is_unmarked(found)
    theirs, ours = _groups(found.case)
    has_cause = bool(_alone(found.case)) or any(job.get("replicas", 1) > 1 for job in _jobs(found.case))
    return has_cause and _is_worked_out(found, theirs, ours) and _field(found) in theirs


def counts_limits(found: Difference) -> bool:
    """Match a resource of a group that nobody requests, and that is limited."""
    theirs, ours = _groups(found.case)
    return _is_worked_out(found, theirs, ours) and _field(found) not in theirs


def _field(found: Difference) -> str:
    return it.plain(found.path).removeprefix("spec.")


def _is_worked_out(found: Difference, theirs: Tree, ours: Tree) -> bool:
    """Tell if a number of the group is as it should be on both sides; or its ownership there, on one side alone."""
    if not it.within(found, *KINDS):
        return False
    name = _field(found)
    if not it.is_owned(found):
        return (found.reference, found.ours) == (theirs.get(name, ABSENT), ours.get(name, ABSENT))
    sides = [
        any(key.startswith("minResources.") for key in side) if name == "minResources.." else name in side
        for side in (theirs, ours)
    ]
    return [found.reference, found.ours] == [{} if there else ABSENT for there in sides] and any(sides)


def _is_unmarked(found: Difference) -> bool:
    """Tell if pods that wait have no label or annotation of the group."""
    head, metadata, tail = it.plain(found.path).partition("template.spec.template.metadata")
    if not (metadata and head and found.ours == ABSENT and it.entry(found, "replicatedJobs") in _alone(found.case)):
        return False
    name, prefix = ({}, "f:") if it.is_owned(found) else (it.job(found.case)["metadata"]["name"], "")
    whole: dict[str, Any] = {}
    for scheduler in it.runtime(found.case)["spec"]["podGroupPolicy"]:
        field, key = _MARKS[scheduler]
        mark = {f"{prefix}{key}": name}
        whole |= {f"{prefix}{field}": mark}
        if found.reference == {f".{field}": mark, f".{field}.{key}": name}.get(tail):
            return True
    return tail == "" and bool(found.reference == whole)


# -- when it is written -----------------------------------------------------------------------------------------------


def follows_resume(found: Difference) -> bool:
    """Match the queue of patches that came together with the resume."""
    changes = [step.patch for step in it.so_far(found) if isinstance(step, Change) and step.kind == "TrainJob"]
    specs = [patch.get("spec", {}) for patch in changes if isinstance(patch, dict)]
    resumes = [spec.get("runtimePatches", []) for spec in specs if spec.get("suspend") is False]
    queues = [queue for entries in resumes for queue in it.annotated(entries, _QUEUE)]
    if not (queues and it.within(found, *KINDS)):
        return False
    if found.path == "metadata.generation":
        return ABSENT not in (found.reference, found.ours) and found.ours > found.reference
    return (found.path == "spec.queue" and found.ours in queues) or (
        (found.path, found.reference, found.ours) == ("owned.f:spec.f:queue", ABSENT, {})
    )


# -- verdicts ---------------------------------------------------------------------------------------------------------


def names_queue(found: Difference) -> bool:
    """Match the field of ours that holds an empty queue."""
    is_theirs = (found.place, found.path, found.reference) == ("verdict", "fields", [f"spec.annotations[{_QUEUE}]"])
    patched = any("" in it.annotated(entries, _QUEUE) for entries in it.patches(found))
    return is_theirs and found.ours == ["spec.runtimePatches" if patched else "spec.runtimeRef"]


ROWS = (
    (
        "gang-members",
        "a gang has no initializers and no pods that wait for others, and has every replica of a job",
        "the reference's group waits for pods that come only when it has begun (§11.4)",
        counts_those_together,
    ),
    (
        "gang-limits",
        "a limit without a request counts in `minResources`",
        "the API server makes it a request; the reference leaves GPUs out (§11.25b)",
        counts_limits,
    ),
    (
        "gang-resumed",
        "a group follows patches that come together with the resume",
        "the reference keeps the queue that the job had while it was suspended",
        follows_resume,
    ),
    (
        "queue-field",
        "an empty Volcano queue is refused by the patch, or the runtime, that has it",
        "the field that the reference names is in no TrainJob",
        names_queue,
    ),
    (
        "priority-class",
        "a PriorityClass that is not there does not refuse a TrainJob on Volcano",
        "the API server refuses its pods and says so; the reference reads classes without the right to (§11.29)",
        predicates.accepted(r'PriorityClass "[^"]+" doesn.t exist'),
    ),
)
