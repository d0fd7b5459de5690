"""JobSet v0.12 as a small model written from its source: what a reconcile makes of a JobSet and its Jobs.

It makes all Jobs at once, suspended with it; counts them by what their status says; takes a failed Job by its failure
policy and the rules of that (`failure_policy.go`), else a JobSet whose Jobs all succeeded as completed; deletes Jobs of
earlier attempts, and Jobs that are active when it has ended. Actions on single Jobs are left out. Pure, and compared
with the engine (`test_models`), but for the rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trainplane.kube.testing.storage import Tree

JOBSET = "jobset.sigs.k8s.io"
"""The prefix of JobSet's labels."""

RESTARTS = "trainplane.dev/restarts"
"""The label of a JobSet that the operator created again, and of its pods: how often the TrainJob restarted before."""

RESTARTING = "RestartingJobSet"
COUNTED = ("ready", "succeeded", "failed", "active")
"""What is counted of Jobs that have begun."""

PLACED_META, PLACED_PODS = {"labels", "annotations"}, {"nodeSelector", "tolerations", "schedulingGates"}
"""What may change in the pods of a suspended JobSet."""


class Verdict(NamedTuple):
    """What a reconcile does: the JobSet with its status, Jobs to delete, to create and to change."""

    jobset: Tree
    drop: Sequence[Tree] = ()
    make: Sequence[Tree] = ()
    change: Sequence[Tree] = ()


def judge(jobset: Tree, owned: Sequence[Tree], now: str) -> Verdict:
    """Return what a reconcile does to a JobSet that owns these Jobs."""
    status = {**(jobset.get("status") or {})}
    restarts, spec = status.get("restarts", 0), jobset["spec"]
    current = [one for one in owned if attempt(one) == restarts]
    status["restarts"] = restarts
    status["replicatedJobsStatus"] = [counts(one, current) for one in spec.get("replicatedJobs") or ()]
    after = {**jobset, "status": status}
    if ended(jobset):
        return Verdict(after, drop=[job for job in current if not finish(job)])
    earlier = [job for job in owned if attempt(job) < restarts]
    failed = [one for one in current if finish(one) == "Failed"]
    if failed:
        return Verdict(_fail(after, failed, now), drop=earlier)
    wanted = [(rjob, index) for rjob in spec.get("replicatedJobs") or () for index in range(rjob.get("replicas", 1))]
    if wanted and sum(finish(one) == "Complete" for one in current) == len(wanted):
        done = _end(after, "Completed", "AllJobsCompleted", "jobset completed successfully", now)
        return Verdict(_restarted(done, "JobSetCompleted", now), drop=earlier)
    there = {one["metadata"]["name"] for one in owned}
    make = [
        made for rjob, index in wanted if (made := job_of(jobset, rjob, index, now))["metadata"]["name"] not in there
    ]
    return Verdict(_held(after, now), earlier, make, _turned(spec, current))


def _turned(spec: Tree, jobs: Iterable[Tree]) -> list[Tree]:
    """Return the Jobs that are suspended or resumed with their JobSet; one that is resumed gets today's pods."""
    suspended = bool(spec.get("suspend"))
    templates = {one["name"]: one["template"]["spec"].get("template", {}) for one in spec.get("replicatedJobs") or ()}
    turned = []
    for job in jobs:
        if not finish(job) and bool(job["spec"].get("suspend")) != suspended:
            pods = (
                {} if suspended else {"template": templates[job["metadata"]["labels"][f"{JOBSET}/replicatedjob-name"]]}
            )
            turned.append({**job, "spec": {**job["spec"], "suspend": suspended, **pods}})
    return turned


def _held(jobset: Tree, now: str) -> Tree:
    if jobset["spec"].get("suspend"):
        held = _say(jobset, "Suspended", "True", "SuspendedJobs", "jobset is suspended", now=now)
        return _restarted(held, "JobSetSuspended", now)
    wanted = {one["name"]: one.get("replicas", 1) for one in jobset["spec"].get("replicatedJobs") or ()}
    if all(one["ready"] + one["succeeded"] == wanted[one["name"]] for one in jobset["status"]["replicatedJobsStatus"]):
        jobset = _restarted(jobset, "JobsReady", now)
    if condition(jobset, "Suspended"):
        return _say(jobset, "Suspended", "False", "ResumeJobs", "jobset is resumed", now=now)
    return jobset


def _restarted(jobset: Tree, reason: str, now: str) -> Tree:
    """Say that a restart is over, of a JobSet that was ever restarted."""
    if condition(jobset, RESTARTING) is None:
        return jobset
    return _say(jobset, RESTARTING, "False", reason, "jobset is no longer restarting", now=now)


def _fail(jobset: Tree, failed: Sequence[Tree], now: str) -> Tree:
    """Return a JobSet of which Jobs failed: as the first rule of its policy that matches says, else by its default."""
    policy, first = jobset["spec"].get("failurePolicy"), _first(failed)
    if policy is None:
        return _failed(jobset, "FailedJobs", "jobset failed due to one or more job failures", first, now)
    rule, job = next(_matching(policy, failed), (None, first))
    action = "RestartJobSet" if rule is None else rule["action"]
    status = jobset["status"]
    counted = status.get("restartsCountTowardsMax", 0)
    if action == "FailJobSet":
        text = "applying FailJobSet failure policy action"
        return _failed(jobset, "FailJobSetFailurePolicyAction", text, job, now)
    if action == "RestartJobSet":
        if counted >= policy.get("maxRestarts", 0):
            text = "jobset failed due to reaching max number of restarts"
            return _failed(jobset, "ReachedMaxRestarts", text, job, now)
        counted += 1
    restarted = {"restarts": status["restarts"] + 1, "restartsCountTowardsMax": counted}
    again = {**jobset, "status": {**status, **restarted}}
    reason = "DefaultFailurePolicy" if rule is None else f"FailurePolicy_{rule['name']}"
    return _say(again, RESTARTING, "True", reason, "jobset is restarting", now=now)


def _matching(policy: Tree, failed: Sequence[Tree]) -> Iterator[tuple[Tree, Tree]]:
    """Yield the rules of a failure policy that match, in their order, each with the first Job that it matches."""
    for rule in policy.get("rules") or ():
        matched = [one for one in failed if _applies(rule, condition(one, "Failed") or {})]
        if matched:
            yield rule, _first(matched)


def _applies(rule: Tree, failure: Tree) -> bool:
    """Return whether a rule is about how a Job failed."""
    reasons, patterns = rule.get("onJobFailureReasons") or (), rule.get("onJobFailureMessagePatterns") or ()
    if reasons and failure.get("reason") not in reasons:
        return False
    return not patterns or any(re.search(one, failure.get("message", "")) for one in patterns)


def _first(failed: Sequence[Tree]) -> Tree:
    """Return the Job that failed first."""
    return min(failed, key=lambda one: str((condition(one, "Failed") or {}).get("lastTransitionTime", "")))


def _failed(jobset: Tree, reason: str, text: str, job: Tree, now: str) -> Tree:
    failed = _end(jobset, "Failed", reason, f"{text} (first failed job: {job['metadata']['name']})", now)
    return _restarted(failed, "JobSetFailed", now)


def _end(jobset: Tree, kind: str, reason: str, message: str, now: str) -> Tree:
    after = _say(jobset, kind, "True", reason, message, now=now)
    return {**after, "status": {**after["status"], "terminalState": kind}}


def _say(jobset: Tree, kind: str, value: str, reason: str, message: str, *, now: str) -> Tree:
    before = condition(jobset, kind)
    if before and (before["status"], before["reason"]) == (value, reason):
        return jobset
    others = [one for one in jobset["status"].get("conditions") or () if one["type"] != kind]
    since = before["lastTransitionTime"] if before and before["status"] == value else now
    said = {"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": since}
    return {**jobset, "status": {**jobset["status"], "conditions": [*others, said]}}


def may_become(before: Tree, after: Tree) -> bool:
    """Return whether JobSet's webhook lets a spec become another: of jobs, only pods of what is suspended change."""
    held = before.get("suspend") or after.get("suspend")
    was, now = before.get("replicatedJobs") or [], after.get("replicatedJobs") or []
    return bool((list(map(_fixed, was)) == list(map(_fixed, now))) if held else was == now)


def _fixed(rjob: Tree) -> Tree:
    """Return a replicated job without what a queue sets in its pods."""
    template = rjob["template"]["spec"].get("template") or {}
    meta = {name: value for name, value in (template.get("metadata") or {}).items() if name not in PLACED_META}
    pods = {name: value for name, value in (template.get("spec") or {}).items() if name not in PLACED_PODS}
    spec = {**rjob["template"]["spec"], "template": {"metadata": meta, "spec": pods}}
    return {**rjob, "template": {**rjob["template"], "spec": spec}}


def attempt(job: Tree) -> int:
    """Return of which attempt of its JobSet a Job is."""
    return int(job["metadata"]["labels"][f"{JOBSET}/restart-attempt"])


def attempt_of(labels: Tree) -> int:
    """Return of which attempt of its TrainJob a pod is, by its labels: restarts by the operator and by JobSet."""
    return int(labels.get(RESTARTS, 0)) + int(labels[f"{JOBSET}/restart-attempt"])


def attempt_at(jobset: Tree) -> int:
    """Return which attempt of its TrainJob a JobSet runs now."""
    before = (jobset["metadata"].get("labels") or {}).get(RESTARTS, 0)
    return int(before) + int((jobset.get("status") or {}).get("restarts", 0))


def ended(jobset: Tree) -> str:
    """Return how a JobSet ended; empty if it has not."""
    for kind in ("Completed", "Failed"):
        if (condition(jobset, kind) or {}).get("status") == "True":
            return kind
    return ""


def counts(rjob: Tree, jobs: Iterable[Tree]) -> Tree:
    """Return what JobSet counts of a replicated job's Jobs."""
    mine = [one for one in jobs if one["metadata"]["labels"][f"{JOBSET}/replicatedjob-name"] == rjob["name"]]
    numbers = dict.fromkeys((*COUNTED, "suspended"), 0)
    for job in mine:
        status: Any = job.get("status") or {}
        how = finish(job)
        numbers["succeeded"] += how == "Complete"
        numbers["failed"] += how == "Failed"
        if not how:
            wanted = min(job["spec"]["parallelism"], job["spec"]["completions"])
            numbers["ready"] += status.get("succeeded", 0) + status.get("ready", 0) >= wanted
            numbers["active"] += status.get("active", 0) > 0
            numbers["suspended"] += bool(job["spec"].get("suspend"))
    return {"name": rjob["name"], **numbers}


def finish(job: Tree) -> str:
    """Return how a Job finished; empty if it has not."""
    for one in (job.get("status") or {}).get("conditions") or ():
        if one["status"] == "True" and one["type"] in {"Complete", "Failed"}:
            return str(one["type"])
    return ""


def condition(obj: Tree, kind: str) -> Tree | None:
    """Return a condition, whatever its status."""
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            found: Tree = one
            return found
    return None


def job_of(jobset: Tree, rjob: Tree, index: int, now: str) -> Tree:
    """Return a Job as JobSet makes it."""
    meta, template = jobset["metadata"], rjob["template"]["spec"]
    labels = {
        f"{JOBSET}/jobset-name": meta["name"],
        f"{JOBSET}/jobset-uid": meta["uid"],
        f"{JOBSET}/replicatedjob-name": rjob["name"],
        f"{JOBSET}/job-index": str(index),
        f"{JOBSET}/restart-attempt": str((jobset.get("status") or {}).get("restarts", 0)),
    }
    parallelism = template.get("parallelism", 1)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{meta['name']}-{rjob['name']}-{index}",
            "namespace": meta["namespace"],
            "creationTimestamp": now,
            "labels": labels,
            "ownerReferences": [owner(jobset)],
        },
        "spec": {
            "suspend": bool(jobset["spec"].get("suspend")),
            "parallelism": parallelism,
            "completions": template.get("completions", parallelism),
            "backoffLimit": template.get("backoffLimit", 6),
            **({"podFailurePolicy": template["podFailurePolicy"]} if "podFailurePolicy" in template else {}),
            "template": template.get("template", {}),
        },
    }


def owner(obj: Tree) -> Tree:
    """Return the reference that makes something an object's own."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
    }
