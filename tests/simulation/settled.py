"""What must hold at last: when nothing was done or broken for long enough, everything stands as it should.

    judge(court)

Whatever could start has ended, statuses say what is so, nothing is left or remembered of what is gone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation.apiserver import JOBSETS, TRAINJOBS
from tests.simulation.jobset import COUNTED, condition, ended
from tests.simulation.kueue import flavor_of, has_entry
from tests.simulation.people import AFTER, FATE, GATES, MULTIKUEUE, QUEUE_LABEL, RUNTIME_SPECS
from trainplane.api.names import SNAPSHOT_KEY, snapshot_name
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import CONFIG_MAPS, PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.judge import Judge
    from tests.simulation.replica import Replica
    from trainplane.kube.projection import Entry
    from trainplane.kube.store import Store
    from trainplane.kube.testing.storage import Tree

EARLIER_FAILED = "EarlierTrainJobFailed"
TTL = "ttlSecondsAfterFinished"
_PODS, _MAPS = collection_of(PODS), collection_of(CONFIG_MAPS)
_PHASES = {"Complete": {"Succeeded"}, "Failed": {"Failed"}}


def judge(court: Judge) -> None:
    """Judge how everything stands; `court` notes what is broken."""
    objects = court.server.storage.objects
    for key, job in sorted(objects.get(TRAINJOBS, {}).items()):
        _train_job(court, key, job)
    for key, jobset in sorted(objects.get(JOBSETS, {}).items()):
        its = court.server.find(TRAINJOBS, key)
        if its is None or its["metadata"]["uid"] != owner_of(jobset):
            court.broken("nothing is left behind", f"JobSet {key} has no TrainJob")
        elif end_of(its) is not None and RUNTIME_SPECS[its["spec"]["runtimeRef"]["name"]].get(TTL) is not None:
            court.broken("a JobSet goes by its time", f"{key} ended and its JobSet is still there")
    for key, kept in sorted(objects.get(_MAPS, {}).items()):
        its = court.server.find(TRAINJOBS, Key(key.namespace, key.name.removesuffix("-runtime-snapshot")))
        if its is None or its["metadata"]["uid"] != owner_of(kept):
            court.broken("nothing is left behind", f"snapshot {key} has no TrainJob")
    leaders = [one for one in court.replicas if one.leads()]
    if len(leaders) != 1:
        court.broken("somebody leads", f"{[one.name for one in leaders]}")
    for one in court.replicas:
        _process(court, one, is_leader=one in leaders)
    workloads = court.kueue.workloads.values()
    if court.kueue.used() and not any(one.flavor and not one.over for one in workloads):
        court.broken("quota equals pods", "quota is held by nobody")


def misplaced(court: Judge) -> Iterator[str]:
    """Yield the TrainJobs that run elsewhere than their queue says: none may, when nothing broke for a while."""
    for key, job in sorted(court.server.storage.objects.get(TRAINJOBS, {}).items()):
        jobset = court.server.find(JOBSETS, key)
        if jobset is None or QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
            continue
        runs = not (job["spec"].get("suspend") or jobset["spec"].get("suspend") or ended(jobset))
        if runs and placed(jobset) != flavor_of(job):
            yield f"{key} has quota of {flavor_of(job)} and runs on {placed(jobset) or 'any'}"


def _train_job(court: Judge, key: Key, job: Tree) -> None:
    end = end_of(job)
    if job["spec"].get("managedBy") == MULTIKUEUE:
        _dispatched(court, key, job, end)
        return
    pods = [
        one
        for one in court.server.storage.objects.get(_PODS, {}).values()
        if one["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == key.name
        and one["status"]["phase"] in {"Pending", "Running"}
    ]
    jobset = court.server.find(JOBSETS, key)
    _status(court, key, job, jobset)
    if end is not None:
        if pods:
            court.broken("nothing is stuck", f"{key} is {end[0]} and has pods")
        if court.is_fair:
            _fairly(court, key, job, end)
        if not court.has_ended_processes() and job["metadata"]["uid"] not in court.memory.announced:
            court.broken("an end is told", f"{key} is {end[0]} and no Event says so")
        return
    if not job["spec"].get("suspend"):
        court.broken("a job that can start has started", f"{key} is not over: {says(job)}, JobSet {says(jobset)}")
        return
    _held(court, key, job, runs=bool(pods or (jobset is not None and not jobset["spec"].get("suspend"))))


def _held(court: Judge, key: Key, job: Tree, *, runs: bool) -> None:
    """Judge a TrainJob that is suspended."""
    is_queued = QUEUE_LABEL in (job["metadata"].get("labels") or {}) and has_entry(job)
    if is_queued and not _waits_for_another(court, key, job):
        court.broken("a job that can start has started", f"{key} waits in its queue: {says(job)}")
    if job["metadata"]["uid"] in court.memory.lost:
        court.broken("what is deleted is back", f"{key} waits and has no snapshot")
    if runs:
        court.broken("nothing is stuck", f"{key} is suspended and runs")
    if (condition(job, "Suspended") or {"status": ""})["status"] != "True":
        court.broken("a status is true", f"{key} is suspended and its status is {says(job)}")


def _waits_for_another(court: Judge, key: Key, job: Tree) -> bool:
    """Return whether a TrainJob is kept out of its queue by another that has not ended."""
    notes = job["metadata"].get("annotations") or {}
    if not notes.get(GATES):
        return False
    other = court.server.find(TRAINJOBS, Key(key.namespace, notes.get(AFTER, "")))
    return other is None or end_of(other) is None


def _dispatched(court: Judge, key: Key, job: Tree, end: tuple[str, str] | None) -> None:
    """Judge a TrainJob that another cluster runs: we say in a word where it stands, and nothing more."""
    phase = (job.get("status") or {}).get("phase", "")
    if end is None:
        court.broken("a job that can start has started", f"{key} is dispatched and not over: {says(job)}")
    elif phase not in _PHASES[end[0]]:
        court.broken("a status is true", f"{key} is {end[0]} by its worker and its phase is {phase!r}")


def _status(court: Judge, key: Key, job: Tree, jobset: Tree | None) -> None:
    """Judge what a status says beside its conditions: the phase, the counts, the runtime."""
    status, end = job.get("status") or {}, end_of(job)
    phases = {"Suspended", "Queued"} if end is None else _PHASES[end[0]]
    if (end is not None or job["spec"].get("suspend")) and status.get("phase") not in phases:
        court.broken("a status is true", f"{key} is {end or 'suspended'} and its phase is {status.get('phase')!r}")
    if jobset is not None and owner_of(jobset) == job["metadata"]["uid"]:
        theirs = {one["name"]: _numbers(one) for one in (jobset.get("status") or {}).get("replicatedJobsStatus") or ()}
        ours = {one["name"]: _numbers(one) for one in status.get("jobsStatus") or ()}
        idle = not any(map(any, [*theirs.values(), *ours.values()]))
        if theirs != ours and not idle:
            court.broken("a status is true", f"{key} counts {ours}, and its JobSet {theirs}")
    kept = court.server.find(_MAPS, Key(key.namespace, snapshot_name(key.name)))
    if end is not None and end[1] == "DeadlineExceeded":
        return  # perhaps while its JobSet was being made: then it never began with any
    if kept is not None and owner_of(kept) == job["metadata"]["uid"] and ("conditions" in status or end is not None):
        digest = f"sha256:{hashlib.sha256(kept['data'][SNAPSHOT_KEY].encode()).hexdigest()}"
        if status.get("runtimeDigest") != digest and not (end is not None and court.versions_repeat):
            court.broken("a status is true", f"{key} began with {digest[:15]} and says {status.get('runtimeDigest')}")


def _numbers(one: Tree) -> tuple[int, ...]:
    return tuple(one.get(name, 0) for name in COUNTED)


def _fairly(court: Judge, key: Key, job: Tree, end: tuple[str, str]) -> None:
    """Judge an end in a history in which nothing broke: it is told to people, and deadlines came in time."""
    deadline = job["spec"].get("activeDeadlineSeconds")
    seconds, *codes = map(int, job["metadata"]["annotations"][FATE].split())
    if deadline and seconds > deadline and end[1] not in {"DeadlineExceeded", EARLIER_FAILED}:
        court.broken("a deadline holds", f"{key} ran {seconds} s of {deadline} and is {end[0]}: {end[1]}")
    status = job.get("status") or {}
    if end[0] == "Failed" and end[1] in {"FailedJobs", "ReachedMaxRestarts"} and not status.get("firstFault"):
        court.broken("a fault is told", f"{key} failed and nothing says what went wrong first")
    held = condition(job, "Suspended")
    resumed = held is not None and held["status"] == "False"
    if end[0] == "Complete" and resumed and seconds >= 20 and not (deadline or court.was_suspended_briefly(job)):
        court.broken("a status is true", f"{key} is complete and still says that it was resumed")
    if deadline or end[1] == EARLIER_FAILED:
        return
    last = status.get("restarts", 0)
    fated, by_jobset = codes[min(last, len(codes) - 1)], RUNTIME_SPECS[job["spec"]["runtimeRef"]["name"]]
    if end[0] == "Complete" and fated:
        court.broken("an end is as it must be", f"{key} is {end} and attempt {last} ends with {fated}")
    is_kept = court.attempts is not None and court.attempts.is_kept(job["metadata"]["uid"])
    if end[0] == "Failed" and not is_kept:
        restarts = by_jobset.get("failurePolicy", {}).get("maxRestarts", 0)
        if not fated or last < restarts:
            court.broken("an end is as it must be", f"{key} is {end} and attempt {last} of {restarts} ends so: {fated}")


def _process(court: Judge, replica: Replica, *, is_leader: bool) -> None:
    operator = replica.operator
    if operator is None:
        court.broken("nothing is stuck", f"{replica.name} does not run")
        return
    for reflector in operator.reflectors:
        objects = court.server.storage.objects.get(collection_of(reflector.resource), {})
        truth = {key: _mirrored(reflector.store, obj) for key, obj in objects.items()}
        seen = {key: reflector.store.entry(key) for key in reflector.store}
        if seen != truth:
            odd = sorted(key for key in seen.keys() | truth.keys() if seen.get(key) != truth.get(key))[:3]
            court.broken("mirrors end equal", f"{replica.name} {reflector.resource.plural}: {odd}")
    if not is_leader:
        return
    if operator.train_jobs.queue.pending:
        court.broken("nothing is stuck", f"{operator.train_jobs.queue.pending} keys are still looked at")
    known = set(court.server.storage.objects.get(TRAINJOBS, {}))
    story: Any = operator.train_jobs._reconcile.__self__  # type: ignore[attr-defined]
    for what in (
        story._waits,
        story._scheduled,
        story._started,
        story._objects._edited,
        story._objects._apply_cache._looks,
        story._objects.others._believed._seen,
        story.lost._marks,
        story.lost._looks,
        story.lost._left,
    ):
        left = set(what) - known
        if left:
            court.broken("memory is back", f"{replica.name} remembers {sorted(left)}")


def _mirrored(store: Store, obj: Tree) -> Entry:
    """Return what a store holds of an object that it has seen."""
    return store._projector.project(store.read(msgspec.Raw(msgspec.json.encode(obj))))


def end_of(job: Tree) -> tuple[str, str] | None:
    """Return how a TrainJob ended and why, by its status."""
    for one in (job.get("status") or {}).get("conditions") or ():
        if one["type"] in {"Complete", "Failed"} and one["status"] == "True":
            return one["type"], one["reason"]
    return None


def owner_of(tree: Tree) -> str:
    """Return the uid of who an object belongs to."""
    owners = tree["metadata"].get("ownerReferences") or [{"uid": ""}]
    return str(owners[0]["uid"])


def pods_of(jobset: Tree) -> Tree:
    """Return what the pods of a JobSet's first job are made from."""
    found: Tree = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return found


def placed(jobset: Tree) -> str:
    """Return the flavor that a JobSet's pods are placed on."""
    return str((pods_of(jobset).get("nodeSelector") or {}).get("flavor", ""))


def says(obj: Tree | None) -> str:
    """Return the conditions of an object, for people."""
    if obj is None:
        return "absent"
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return ", ".join(f"{one['type']}={one['status']}" for one in conditions) or "without conditions"
