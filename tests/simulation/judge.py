"""What must always hold, judged at each change that is stored and each write that is sent; and what must hold at last.

A judge sees the truth. Between what a replica knew and what it wrote lies the way of a request and its repeats, which
`GRACE` allows for; the version that a write is bound to makes it shorter, never longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.simulation import restarting, settled
from tests.simulation.apiserver import JOBSETS, TRAINJOBS
from tests.simulation.attempts import is_disrupted
from tests.simulation.engines import JOBS
from tests.simulation.jobset import attempt_at, ended
from tests.simulation.kueue import MANAGER, flavor_of
from tests.simulation.people import AFTER, GATES, MULTIKUEUE, QUEUE_LABEL, RUNTIME_SPECS
from tests.simulation.replica import RENEW_DEADLINE
from tests.simulation.settled import EARLIER_FAILED, TTL, end_of, owner_of, placed, pods_of
from tests.simulation.wire import Weather
from trainplane.kube.resource import Key
from trainplane.kube.testing.storage import Collection
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import CONFIG_MAPS, PODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.attempts import Attempts
    from tests.simulation.kueue import Kueue
    from tests.simulation.loop import VirtualLoop
    from tests.simulation.replica import Replica
    from trainplane.kube.testing.storage import Change, Tree
    from trainplane.kube.testing.verbs import Asking

GRACE = 75.0
"""Seconds that a wish of a user may have changed before a write that follows the old one is stored."""

PROMPT = 5.0
"""The same where nothing delays a request or an event."""

UNSEEN = 1.0
"""Seconds that a suspension may last without a trace: no status says it before the TrainJob is resumed."""

BRIEF = 5.0
"""Seconds within which a suspension can end before a pod was stopped."""

FOUND_OUT = 450.0
"""Seconds within which every mirror shows that the server was set back, though its watches were silent before."""

_PODS, _JOBS, _MAPS = collection_of(PODS), collection_of(JOBS), collection_of(CONFIG_MAPS)
_EVENTS = Collection("", "v1", "events")
_LEASES = Collection("coordination.k8s.io", "v1", "leases")


class Violation(NamedTuple):
    """A promise that was broken: its name, when, and what was seen."""

    rule: str
    at: float
    what: str


class Wish(NamedTuple):
    """What somebody wants of a TrainJob from a moment on: that it is held back or runs, and where."""

    since: float
    suspend: bool
    flavor: str


class Ran(NamedTuple):
    """How a JobSet ended."""

    how: str
    """Completed or Failed."""
    attempt: int
    """The attempt of its TrainJob that ended so."""
    jobset: str
    """Its uid."""


class Memory(NamedTuple):
    """What a judge holds to be so of what is stored: a restore undoes what came after its backup, and nothing else."""

    ran: dict[str, Ran]
    """How the last JobSet of a TrainJob that ended did so, by the TrainJob's uid."""
    restarts: dict[str, int]
    """How often a TrainJob restarted, by its status."""
    told: dict[str, tuple[str, str]]
    """How a TrainJob ended, by what its status said first."""
    announced: dict[str, int]
    """How often the end of a TrainJob was an Event, by its uid."""
    snapshots: dict[str, str]
    lost: dict[str, float]
    """When somebody deleted the snapshot of a TrainJob that needs one, by the TrainJob's uid."""

    def copy(self) -> Memory:
        """Return the same, to keep."""
        return Memory(*map(dict, self))  # type: ignore[arg-type]

    def without(self, other: Memory) -> Memory:
        """Return what is known of TrainJobs of which the other knows nothing of the kind."""
        mine, its = Memory._asdict(self), Memory._asdict(other)
        return Memory(**{kind: {uid: one for uid, one in mine[kind].items() if uid not in its[kind]} for kind in mine})


class Judge:
    """See the module's docstring."""

    def __init__(self, server: ApiServer, loop: VirtualLoop, kueue: Kueue, replicas: Iterable[Replica]) -> None:
        self.server = server
        self._loop = loop
        self.kueue = kueue
        self.replicas = list(replicas)
        self.names = {one.name for one in self.replicas}
        self.violations: list[Violation] = []
        self._wishes: dict[str, list[Wish]] = {}
        """What was wished of a TrainJob, the last at last, by its uid."""
        self._most_restarts: dict[str, int] = {}
        """How often a TrainJob ever restarted, whatever a restore undid."""
        self._suspended: set[tuple[str, int]] = set()
        """Attempts in which a TrainJob was suspended, by its uid."""
        self._completed: set[str] = set()
        """Names of TrainJobs that were ever complete."""
        self._failed: set[str] = set()
        """Names of those that ever failed."""
        self._stopped: dict[str, float] = {}
        """When the end of a TrainJob past its deadline was told, by its uid; its JobSet goes after that."""
        self.memory = Memory({}, {}, {}, {}, {}, {})
        self._undone = Memory({}, {}, {}, {}, {}, {})
        """What a restore undid: mirrors may show it for a while."""
        self._seen_until = float("-inf")
        """Until when a mirror may show what a restore undid."""
        self.versions_repeat = False
        """Whether a version stands for two objects: a status may be written as what differs from the other one."""
        self._lease_undone = float("-inf")
        """Until when two may lead: a restore undid that the Lease was taken or renewed."""
        self.grace = GRACE
        self.is_fair = True
        """Whether nothing breaks in this history."""
        self.clocks_apart: float | None = 0.0
        """Seconds that clocks are apart at most; None if more is wrong than clocks."""
        self.is_whole = True
        """Whether no process is ended in it."""
        self.attempts: Attempts | None = None
        """What became of the pods of each attempt, if that is followed."""
        server.storage.listeners.append(self.stored)

    def broken(self, rule: str, what: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(rule, round(self._loop.time(), 3), what))

    def restored(self, kept: Memory) -> None:
        """Forget what a restore undid; wishes of before it may still be on their way, as others may."""
        self._undone = self.memory.without(kept)
        self._seen_until = self._loop.time() + FOUND_OUT
        self.memory = kept
        for job in self.server.storage.objects.get(TRAINJOBS, {}).values():
            self._wish(job)
        # Who holds the Lease may not know of a renewal that is undone, and who saw the one before it takes it.
        self._lease_undone = self._loop.time() + RENEW_DEADLINE

    # -- at each write that is sent

    def sent(self, name: str, asking: Asking) -> None:
        """Judge who writes."""
        collection = None if asking.target is None else asking.target.collection
        if collection in {_LEASES, _EVENTS}:
            return
        leaders = [one.name for one in self.replicas if one.leads()]
        if leaders != [name] and (name not in leaders or self._loop.time() > self._lease_undone):
            self.broken(
                "one leader writes", f"{name} sends {asking.verb} {asking.path} while {leaders or 'nobody'} leads"
            )

    # -- at each change that is stored

    def stored(self, change: Change, writer: str) -> None:
        """Judge a change."""
        if change.collection == TRAINJOBS:
            self._train_job(change)
        elif change.collection == JOBSETS:
            self._job_set(change, writer in self.names)
        elif change.collection == _PODS:
            if self.attempts is not None:
                self._follow(change, writer, self.attempts)
            self._pod(change)
        elif change.collection == _MAPS:
            self._snapshot(change)
        elif change.collection == _EVENTS:
            self._event(change)

    def _train_job(self, change: Change) -> None:
        before, after = change.before, change.after
        if after is None:
            return
        uid, wishes = after["metadata"]["uid"], self._wish(after)
        self._judge_spec(change.key, before, after)
        self.memory.restarts[uid] = restarting.restarts_of(after)
        self._most_restarts[uid] = max(self._most_restarts.get(uid, 0), self.memory.restarts[uid])
        if after["spec"].get("suspend"):
            self._suspended.add((uid, restarting.restarts_of(before)))
        restarting.judge_status(self, change.key, before, after)
        end, told = end_of(after), self.memory.told.get(uid)
        if told is not None and (end is None or end[0] != told[0]):
            self.broken("an end is told once", f"{change.key} was {told[0]} and is {end}")
        if end is None or told is not None:
            return
        self.memory.told[uid] = end
        self._back(change.key, uid)
        (self._completed if end[0] == "Complete" else self._failed).add(change.key.name)
        if not end[1]:
            self.broken("an end has its cause", f"{change.key} is {end[0]} without a reason")
        if after["spec"].get("managedBy") == MULTIKUEUE:
            return
        ran = self.memory.ran.get(uid) or (self._undone.ran.get(uid) if self._loop.time() < self._seen_until else None)
        expected = {"Complete": "Completed", "Failed": "Failed"}[end[0]], restarting.restarts_of(after)
        by_us = {("Failed", "DeadlineExceeded"), ("Failed", EARLIER_FAILED)}
        if (ran is None or ran[:2] != expected) and end not in by_us:
            self.broken("an end is true", f"{change.key} is {end} in attempt {expected[1]}, and its JobSet {ran}")
        restarting.judge_end(self, change.key, after)
        if end[1] == EARLIER_FAILED and after["metadata"]["annotations"].get(AFTER) not in self._failed:
            self.broken("one begins after another", f"{change.key} failed and the one before it never did")
        if end[1] == "DeadlineExceeded":
            self._stopped[uid] = self._loop.time()
            self._judge_deadline(change.key, after, wishes)

    def _wish(self, job: Tree) -> list[Wish]:
        """Note what is wished of a TrainJob from now on; returns all that was."""
        wish = Wish(self._loop.time(), bool(job["spec"].get("suspend")), flavor_of(job))
        wishes = self._wishes.setdefault(job["metadata"]["uid"], [])
        if not wishes or wishes[-1][1:] != wish[1:]:
            wishes.append(wish)
        return wishes

    def was_suspended_briefly(self, job: Tree) -> bool:
        """Return whether the last suspension was so short that the pods could run through it.

        A TrainJob that was created suspended had no pods to run through that suspension.
        """
        wishes = self._wishes.get(job["metadata"]["uid"], [])
        pairs = [(before, one) for one, before in zip(wishes[2:], wishes[1:], strict=False) if before.suspend]
        return bool(pairs) and pairs[-1][1].since - pairs[-1][0].since < BRIEF

    def _judge_spec(self, key: Key, before: Tree | None, after: Tree) -> None:
        """Judge what is stored of people's wishes: what cannot be was to be refused."""
        spec, was = after["spec"], {} if before is None else before["spec"]
        if before is None and (spec["trainer"]["numNodes"] < 1 or spec["runtimeRef"]["name"] not in RUNTIME_SPECS):
            self.broken("what cannot be is refused", f"{key} was taken")
        if before is not None and "trainer" not in spec:
            self.broken("what cannot be is refused", f"{key} has no trainer any more")
        if before is not None and not (was.get("suspend") or spec.get("suspend")) and _others(was) != _others(spec):
            self.broken("what cannot be is refused", f"{key} was patched while it runs")
        notes = after["metadata"].get("annotations") or {}
        was_gated = before is not None and (before["metadata"].get("annotations") or {}).get(GATES)
        if was_gated and not notes.get(GATES) and notes.get(AFTER) not in self._completed:
            self.broken("one begins after another", f"{key} may begin and {notes.get(AFTER)} was never complete")
        if before is None and notes.get(AFTER) and not notes.get(GATES):
            self.broken("one begins after another", f"{key} has no gate")

    def _judge_deadline(self, key: Key, job: Tree, wishes: list[Wish]) -> None:
        allowed = job["spec"].get("activeDeadlineSeconds")
        pairs = zip(wishes[1:], wishes, strict=False)
        resumed = [one.since for one, before in pairs if before.suspend and one.since - before.since > UNSEEN]
        began = resumed[-1] if resumed else wishes[0].since
        if not allowed:
            self.broken("an end is true", f"{key} has no deadline")
        elif all(one.suspend for one in self._lately(job["metadata"]["uid"])):
            self.broken("a deadline holds", f"{key} is held back and was ended by its deadline")
        elif self._is_early(wishes, self._loop.time() - began, allowed):
            self.broken("a deadline holds", f"{key} may run {allowed} s and was ended before")

    def _is_early(self, wishes: list[Wish], ran: float, allowed: float) -> bool:
        """Return whether a deadline came too early: it counts by the operator's clock, and that may be wrong."""
        return self.clocks_apart is not None and not wishes[-1].suspend and ran < allowed - 2 - self.clocks_apart

    def _job_set(self, change: Change, is_ours: bool) -> None:
        before, after = change.before, change.after
        tree = after if after is not None else before
        assert tree is not None
        owner = owner_of(tree)
        job = self.server.find(TRAINJOBS, change.key)
        own = job is not None and job["metadata"]["uid"] == owner
        if after is not None and ended(after) and not (before is not None and ended(before)):
            self.memory.ran[owner] = Ran(ended(after), attempt_at(after), after["metadata"]["uid"])
        if not is_ours:
            return
        if after is None or (before is not None and _goes(after) and not _goes(before)):
            if own and self.memory.told.get(owner, ("",))[0] != "Failed" and not self._is_outdated(owner, tree):
                self.broken("nobody's job is stopped unasked", f"the JobSet of {change.key} was deleted")
        elif before is None:
            self._made(change.key, owner, after, job if own else None)
        else:
            self._turned(change.key, owner, before, after)
        if own and after is not None and (before is None or before["spec"].get(TTL) is None):
            self._judge_ttl(change.key, owner, after)

    def _turned(self, key: Key, owner: str, before: Tree, after: Tree) -> None:
        was, held = bool(before["spec"].get("suspend")), bool(after["spec"].get("suspend"))
        if was and not held:
            if not self._wished(owner, suspend=False):
                self.broken("nothing starts unasked", f"{key} is resumed and is to be suspended")
            self._rendered(key, owner, after)
            self._judge_place(key, owner, after)
        if held and not was and not self._may_stop(owner, placed(before)):
            self.broken("nobody's job is stopped unasked", f"{key} is suspended and was to run")

    def _judge_ttl(self, key: Key, owner: str, jobset: Tree) -> None:
        """Judge the TTL that a JobSet was given; one whose TrainJob is gone goes with it anyway, and is not asked."""
        if jobset["spec"].get(TTL) is not None and owner not in self.memory.told:
            self.broken("a JobSet goes when its end is told", f"{key} has a TTL and its TrainJob no end")

    def _made(self, key: Key, owner: str, jobset: Tree, job: Tree | None) -> None:
        ran = self.memory.ran.get(owner)
        if owner in self.memory.told or (ran is not None and not self._restarts_after(owner, ran.attempt)):
            end = self.memory.told.get(owner) or ran
            self.broken("a finished job never runs again", f"{key} ended ({end}) and gets a JobSet")
        if not jobset["spec"].get("suspend") and not self._wished(owner, suspend=False):
            self.broken("nothing starts unasked", f"{key} starts and is to be suspended")
        elif not jobset["spec"].get("suspend"):
            self._judge_place(key, owner, jobset)
        self._rendered(key, owner, jobset)
        if job is not None:
            if job["spec"].get("managedBy") == MULTIKUEUE:
                self.broken("who is another's is left alone", f"{key} is MultiKueue's and gets a JobSet")
            restarting.judge_made(self, key, jobset, job)
            policy = RUNTIME_SPECS[job["spec"]["runtimeRef"]["name"]].get("failurePolicy")
            if jobset["spec"].get("failurePolicy") != policy:
                self.broken(
                    "what is rendered is what is said", f"{key} restarts by {jobset['spec'].get('failurePolicy')}"
                )
            nodes = jobset["spec"]["replicatedJobs"][0]["template"]["spec"].get("parallelism", 1)
            if nodes != job["spec"]["trainer"]["numNodes"]:
                self.broken("what is rendered is what is said", f"{key} has {nodes} nodes")

    def _is_outdated(self, owner: str, jobset: Tree) -> bool:
        """Return whether a TrainJob is to run a later attempt than its JobSet does."""
        return self._restarts_after(owner, attempt_at(jobset))

    def _restarts_after(self, uid: str, attempt: int) -> bool:
        """Return whether it is decided, or was before a restore, that a TrainJob restarts after an attempt."""
        known = self._most_restarts if self._loop.time() < self._seen_until else self.memory.restarts
        return known.get(uid, 0) > attempt

    def was_suspended(self, uid: str, attempt: int) -> bool:
        """Return whether a TrainJob was suspended at any time in an attempt."""
        return (uid, attempt) in self._suspended

    def is_undone(self, uid: str) -> bool:
        """Return whether a restore undid what mirrors, pods and kubelets may still go by."""
        return self._seen_until > float("-inf")

    def jobset_of(self, key: Key, uid: str) -> Tree | None:
        """Return the JobSet of a TrainJob, by the TrainJob's uid."""
        jobset = self.server.find(JOBSETS, key)
        return jobset if jobset is not None and owner_of(jobset) == uid else None

    def _judge_place(self, key: Key, owner: str, jobset: Tree) -> None:
        """Judge where what starts is placed: where its queue says, or said just now."""
        if all(one.flavor != placed(jobset) for one in self._lately(owner) if not one.suspend):
            self.broken("quota equals pods", f"{key} starts on {placed(jobset) or 'any'}, and its queue says otherwise")

    def _rendered(self, key: Key, owner: str, jobset: Tree) -> None:
        kept = self.memory.snapshots.get(owner)
        if kept is None and owner in self._undone.snapshots:  # it is remembered, and has to be kept again
            kept = self.memory.snapshots[owner] = self._undone.snapshots[owner]
            self.memory.lost[owner] = self._loop.time()
        image = pods_of(jobset)["containers"][0]["image"]
        if kept is None:
            self.broken("what is rendered is what the snapshot says", f"{key} has no snapshot")
        elif f'"{image}"' not in kept and f" {image}\n" not in kept:
            self.broken("what is rendered is what the snapshot says", f"{key} runs {image}")

    def _pod(self, change: Change) -> None:
        if change.before is not None or change.after is None:
            return
        name = change.after["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]
        key = Key(change.key.namespace, name)
        jobset, job = self.server.find(JOBSETS, key), self.server.find(TRAINJOBS, key)
        if jobset is None or job is None or owner_of(jobset) != job["metadata"]["uid"]:
            return
        if not self._is_made_by(change.after, jobset):
            return  # of a JobSet of that name that is gone: the garbage collector has not come to its Job yet
        uid = job["metadata"]["uid"]
        patience = self.grace if self.is_fair else GRACE  # what JobSet does late follows no write of ours
        if uid in self.memory.told and self._loop.time() - self._stopped.get(uid, float("-inf")) > patience:
            self.broken("a finished job never runs again", f"{key} ended and gets a pod")
        if QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
            return
        if change.after["spec"].get("nodeSelector", {}) != pods_of(jobset).get("nodeSelector", {}):
            return  # of the JobSet as it was before it was stopped
        workload = self.kueue.workloads.get(uid)
        flavor = placed(jobset)
        if workload is None or not workload.flavor:
            if not self._wished(uid, suspend=False, within=patience):
                self.broken("quota equals pods", f"{key} has a pod and no quota")
        elif flavor != workload.flavor and flavor == flavor_of(job):
            self.broken("quota equals pods", f"{key} has quota of {workload.flavor} and a pod on {flavor or 'any'}")

    def _follow(self, change: Change, writer: str, attempts: Attempts) -> None:
        """Let the pods of attempts be followed; of a new one, find its TrainJob."""
        job = None
        if change.before is None and change.after is not None:
            name = change.after["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]
            key = Key(change.key.namespace, name)
            jobset, found = self.server.find(JOBSETS, key), self.server.find(TRAINJOBS, key)
            if jobset is not None and found is not None and self._is_made_by(change.after, jobset):
                job = found if owner_of(jobset) == found["metadata"]["uid"] else None
        attempts.note(change, writer, job, is_seen=self._is_seen(change))

    def _is_seen(self, change: Change) -> bool:
        """Return whether a pod that is gone now was noticed as stopped and ended, or had to be.

        Where nothing breaks, it had to be. Else a leader that can write has to have it in its mirror still.
        """
        if change.after is not None:
            return False
        if self.is_fair:
            return True
        leaders = [one for one in self.replicas if one.leads() and not one.link.is_cut]
        is_disturbed = self.server.storage.is_full or any(vars(one.link.weather) != vars(Weather()) for one in leaders)
        return not is_disturbed and any(_mirrors_end(one, change.key) for one in leaders)

    def _is_made_by(self, pod: Tree, jobset: Tree) -> bool:
        (maker,) = pod["metadata"]["ownerReferences"]
        job = self.server.find(_JOBS, Key(pod["metadata"]["namespace"], maker["name"]))
        return job is not None and job["metadata"]["uid"] == maker["uid"] and owner_of(job) == jobset["metadata"]["uid"]

    def _snapshot(self, change: Change) -> None:
        if not change.key.name.endswith("-runtime-snapshot"):
            return
        if change.after is None:
            assert change.before is not None
            self._lose(change.key, owner_of(change.before))
            return
        if not change.after.get("immutable"):
            self.broken("a snapshot holds", f"{change.key} can be changed")
        owner, text = owner_of(change.after), "\n".join((change.after.get("data") or {}).values()) + "\n"
        is_back = self._back(change.key, owner)
        if (change.before is not None or is_back) and self.memory.snapshots.get(owner, text) != text:
            self.broken("a snapshot holds", f"{change.key} changed")
        self.memory.snapshots[owner] = text

    def _lose(self, key: Key, owner: str) -> None:
        """Note that the snapshot of a TrainJob is gone, if that has begun and is not over."""
        job = self.server.find(TRAINJOBS, Key(key.namespace, key.name.removesuffix("-runtime-snapshot")))
        has_begun = job is not None and (job.get("status") or {}).get("runtimeDigest")
        if job is not None and has_begun and job["metadata"]["uid"] == owner and end_of(job) is None:
            self.memory.lost[owner] = self._loop.time()

    def _back(self, key: Key, owner: str) -> bool:
        """Judge how long the snapshot of a TrainJob was gone; returns whether it was."""
        since = self.memory.lost.pop(owner, None)
        if since is not None and self.is_fair and self._loop.time() - since > PROMPT:
            self.broken("what is deleted is back at once", f"{key} after {self._loop.time() - since:.1f} s")
        return since is not None

    def _event(self, change: Change) -> None:
        event = change.after
        if event is None or event.get("reason") not in {"Completed", "Failed"}:
            return
        about = event["involvedObject"]
        if about["kind"] != "TrainJob":
            return
        if change.before is None:
            announced = self.memory.announced
            announced[about["uid"]] = announced.get(about["uid"], 0) + 1
            if announced[about["uid"]] > 1:
                self.broken("an end is told once", f"{about['name']} has another Event {event['reason']}")
        was_undone = about["uid"] in self._undone.announced or about["uid"] in self._undone.told  # and announced since
        if event.get("count", 1) > 1 + was_undone:
            self.broken("an end is told once", f"{about['name']} has {event['count']} Events {event['reason']}")

    # -- wishes

    def _lately(self, uid: str, within: float | None = None) -> list[Wish]:
        """Return what is wished of a TrainJob, or was within some seconds or the grace, the newest first."""
        lately: list[Wish] = []
        for wish in reversed(self._wishes.get(uid) or ()):
            if lately and self._loop.time() - lately[-1].since > (self.grace if within is None else within):
                break
            lately.append(wish)
        return lately

    def _wished(self, uid: str, *, suspend: bool, within: float | None = None) -> bool:
        """Return whether a TrainJob is, or was within some seconds or the grace, to be suspended, or to run."""
        return any(one.suspend == suspend for one in self._lately(uid, within))

    def _may_stop(self, uid: str, flavor: str) -> bool:
        """Return whether a TrainJob that runs on a flavor is, or just was, to be held back or to run elsewhere."""
        return any(one.suspend or one.flavor != flavor for one in self._lately(uid))

    def has_ended_processes(self) -> bool:
        """Return whether a process ended or lost the lead in this history: news that it had to tell is lost with it."""
        return not self.is_whole or any(one.ends for one in self.replicas)

    # -- at last

    def is_calm(self) -> bool:
        """Return whether all is as it must be at last."""
        before = list(self.violations)
        self.at_last()
        calm = self.violations == before
        self.violations = before
        return calm

    def at_last(self) -> None:
        """Judge how everything stands when nothing was broken for long enough."""
        settled.judge(self)
        for key, job in sorted(self.server.storage.objects.get(TRAINJOBS, {}).items()):
            if self.is_fair:
                restarting.judge_cause(self, key, job)

    def refused(self, key: Key, why: str) -> None:
        """Judge that a TrainJob was refused: all that are sent here are good."""
        if self.is_fair:
            self.broken("a good TrainJob is taken", f"{key}: {why}")


def _mirrors_end(replica: Replica, key: Key) -> bool:
    """Return whether a replica's mirror shows a pod as stopped and ended."""
    reflectors = () if replica.operator is None else replica.operator.reflectors
    for one in reflectors:
        pod: Tree | None = one.store.decode(key, dict) if one.resource == PODS else None
        if pod is not None:
            is_stopped = "deletionTimestamp" in pod["metadata"] or is_disrupted(pod)
            return is_stopped and pod["status"].get("phase") in {"Succeeded", "Failed"}
    return False


def _goes(jobset: Tree) -> bool:
    return "deletionTimestamp" in jobset["metadata"]


def _others(spec: Tree) -> list[Tree]:
    """Return what others than Kueue patch of a TrainJob."""
    return [one for one in spec.get("runtimePatches") or () if one["manager"] != MANAGER]
