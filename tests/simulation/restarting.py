"""What must hold of restarts: which attempts are followed by another one, and which end a TrainJob.

- A TrainJob restarts only after its JobSet failed, with its JobSet, or after a pod exited with 0 because it was
  stopped. If a suspension stopped that pod, its Job does not count it, and a resume alone would do: the operator cannot
  tell.
- A restart counts only if the attempt ended by a fault: a pod failed, and no stop of a pod was stored before. It does
  count if nothing but a fault ended the attempt.
- The counted restarts are never more than the runtime allows; a runtime without a run policy allows none.
- A TrainJob of a runtime with the shipped policy is Failed only by a fault of its last attempt that no stop came
  before, and only if that fault is certain to come again, came in the attempt before, or the budget is used up.
- A TrainJob is never Failed by its JobSet while it is suspended.
- A TrainJob is Complete only if no pod whose success it needs exited with 0 because it was stopped.

A pod that is stopped, ended, and gone before a leader sees it cannot be noticed: a fault may have ended its attempt, or
it may have finished. That is allowed unless the status names the stop.

- A restart never follows an error that is certain to come again.
- Where nothing breaks, `status.firstFault` at last names neither what a stopped pod ended with, nor a pod that lost a
  stopped peer, nor a pod that was stopped because of a fault.
- A JobSet is labeled with the restarts that were decided before it was created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.attempts import SECOND
from tests.simulation.jobset import RESTARTS, attempt_at
from tests.simulation.people import MOST_RESTARTS
from tests.simulation.settled import end_of
from trainplane.explain.catalogue import class_of

if TYPE_CHECKING:
    from tests.simulation.attempts import Attempts, Pod
    from tests.simulation.judge import Judge
    from trainplane.kube.resource import Key
    from trainplane.kube.testing.storage import Tree

BY_OPERATOR = frozenset({"DeadlineExceeded", "EarlierTrainJobFailed"})
"""Reasons of the end of a TrainJob that no pod brought about."""
HEALING = frozenset({"device", "peer", "abort", "silent"})
"""Logs of faults that another attempt may not meet, or that nothing explains."""


def judge_status(court: Judge, key: Key, before: Tree | None, after: Tree) -> None:
    """Judge the restarts that a status tells of."""
    uid, runtime = after["metadata"]["uid"], after["spec"]["runtimeRef"]["name"]
    was, now = restarts_of(before), restarts_of(after)
    if now < was:
        court.broken("restarts are counted", f"{key} had {was} restarts and has {now}")
    counted, limit = counted_of(after), MOST_RESTARTS.get(runtime, 0)
    if counted > limit:
        court.broken("restarts have a limit", f"{key} has {counted} restarts that count, of {limit}")
    attempts = court.attempts
    if counted > counted_of(before) and after["spec"].get("suspend"):
        court.broken("disruptions do not count", f"{key} counts {counted} restarts, the last while it is suspended")
    if now > was and not court.is_undone(uid):
        _judge_reason(court, key, uid, now)
    if counted > counted_of(before) and attempts is not None and not court.is_undone(uid):
        faulty = [one for one in range(now) if attempts.faults(uid, one) or not attempts.has_seen_stop(uid, one)]
        if counted > len(faulty):
            court.broken("disruptions do not count", f"{key} counts {counted} restarts, and its faults are in {faulty}")
    if now > was and attempts is not None and court.is_fair and _is_certain(court, attempts, after, now - 1):
        court.broken("a certain error ends", f"{key} restarts after attempt {now - 1}, which ended with a NameError")
    if now > was and attempts is not None and runtime in MOST_RESTARTS and not court.is_undone(uid):
        least = sum(attempts.is_faulty(uid, one) and not court.was_suspended(uid, one) for one in range(now))
        if counted < least:
            court.broken("faults count", f"{key} counts {counted} of its {now} restarts, and {least} followed faults")


def _judge_reason(court: Judge, key: Key, uid: str, now: int) -> None:
    """Judge that the attempt before a restart ended, or could not succeed any more."""
    jobset = court.jobset_of(key, uid)
    ran = court.memory.ran.get(uid)
    has_failed = ran is not None and ran.how == "Failed" and ran.attempt >= now - 1
    if has_failed or (jobset is not None and attempt_at(jobset) >= now):
        return
    pods = [] if court.attempts is None else court.attempts.of(uid, now - 1)
    if not any(one.may_be_interrupted for one in pods):
        court.broken("a restart has a reason", f"{key} restarts after attempt {now - 1}, which has not failed")


def judge_end(court: Judge, key: Key, job: Tree) -> None:
    """Judge that a TrainJob which has just ended ended for a reason that the rules allow."""
    uid, end, attempts = job["metadata"]["uid"], end_of(job), court.attempts
    if end is not None and end[0] == "Failed" and end[1] not in BY_OPERATOR and job["spec"].get("suspend"):
        court.broken("a suspension does not fail", f"{key} is {end} and is suspended")
    if end is None or attempts is None or not attempts.is_kept(uid) or end[1] in BY_OPERATOR or court.is_undone(uid):
        return
    last = restarts_of(job)
    if end[0] == "Complete":
        ran = court.memory.ran.get(uid)
        for pod in attempts.interrupted(uid, "" if ran is None else ran.jobset, last):
            if pod.was_seen or _is_named(job, pod, last):
                told = f"{key} is Complete, and {pod.name} exited with 0 because it was stopped"
                court.broken("a stopped pod has not finished", told)
        return
    if job["spec"]["runtimeRef"]["name"] not in MOST_RESTARTS:
        return
    faults = attempts.faults(uid, last)
    if not faults and attempts.has_seen_stop(uid, last):
        court.broken("a disruption does not fail", f"{key} is Failed, and nothing but stops ended attempt {last}")
    elif faults and not _is_explained(court, attempts, job, faults):
        court.broken(
            "a fault is restarted", f"{key} is Failed after {counted_of(job)} restarts: {_logs(attempts, faults)}"
        )


def _is_named(job: Tree, pod: Pod, attempt: int) -> bool:
    """Return whether a status says that a pod was the first that was stopped in an attempt."""
    fault = (job.get("status") or {}).get("firstFault") or {}
    return (fault.get("pod"), fault.get("restart", 0)) == (pod.name, attempt) and class_of(fault["cause"]).disrupts


def _is_explained(court: Judge, attempts: Attempts, job: Tree, faults: list[Pod]) -> bool:
    """Return whether no restart follows a fault."""
    if counted_of(job) >= MOST_RESTARTS[job["spec"]["runtimeRef"]["name"]]:
        return True
    logs = _logs(attempts, faults)
    repeated = bool(attempts.faults(job["metadata"]["uid"], restarts_of(job) - 1))
    return "program" in logs or (repeated and (not court.is_fair or not logs <= HEALING))


def _logs(attempts: Attempts, faults: list[Pod]) -> set[str]:
    return {attempts.kubelet.ends[one.uid].log for one in faults}


def _is_certain(court: Judge, attempts: Attempts, job: Tree, attempt: int) -> bool:
    """Return whether an error of the program, and nothing else, ended an attempt that the operator decides about."""
    uid = job["metadata"]["uid"]
    if job["spec"]["runtimeRef"]["name"] not in MOST_RESTARTS or court.was_suspended(uid, attempt):
        return False
    return attempts.is_faulty(uid, attempt) and "program" in _logs(attempts, attempts.faults(uid, attempt))


def judge_cause(court: Judge, key: Key, job: Tree) -> None:
    """Judge, where nothing breaks, that the first fault of a status is none that followed from another one."""
    uid, attempts = job["metadata"]["uid"], court.attempts
    fault: Tree = (job.get("status") or {}).get("firstFault") or {}
    pod = None if attempts is None else attempts.named(uid, fault.get("pod", ""))
    if attempts is None or pod is None:
        return
    told, end = f"{key} names {fault['cause']} of {pod.name} first", attempts.kubelet.ends.get(pod.uid)
    if class_of(fault["cause"]).disrupts:
        if attempts.is_faulty(uid, pod.attempt):
            court.broken("the first fault is told", f"{told}, and it was stopped because of another fault")
    elif end is not None and pod.stopped is not None and pod.stopped < end.at - SECOND:
        court.broken("the first fault is told", f"{told}, and that was stopped before it ended")
    elif end is not None and end.cause == "peer of a stop" and attempts.is_after_stop(pod):
        court.broken("the first fault is told", f"{told}, which failed because another pod was stopped")


def judge_made(court: Judge, key: Key, jobset: Tree, job: Tree) -> None:
    """Judge the label of a JobSet that was just created for a TrainJob."""
    said, decided = int((jobset["metadata"].get("labels") or {}).get(RESTARTS, 0)), restarts_of(job)
    if said != decided and not court.is_undone(job["metadata"]["uid"]):
        court.broken("a JobSet tells its attempt", f"{key} has {decided} restarts and gets a JobSet with {said}")


def restarts_of(job: Tree | None) -> int:
    """Return how often a TrainJob restarted, by its status."""
    return int(((job or {}).get("status") or {}).get("restarts", 0))


def counted_of(job: Tree | None) -> int:
    """Return how many of its restarts count."""
    return int(((job or {}).get("status") or {}).get("restartsCountTowardsMax", 0))
