"""MPIJobs at moments of their lives, as both operators look at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.decision import Observed, Settings
from trainplane.legacy.mpi import gang, hosts, objects, pods
from trainplane.legacy.mpi.job import MPIJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trainplane.api.tree import Tree

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
BEFORE = "2026-11-16T11:00:00Z"
ENDED = "2026-11-16T11:30:00Z"
NAMESPACE = "team"
_ONES_OWN = {"Service", "Pod"}


@dataclass(frozen=True)
class Case:
    """A job, what there is of it, and how the operator is set up."""

    name: str
    job: Tree
    there: tuple[Tree, ...] = ()
    settings: Settings = field(default_factory=Settings)

    @property
    def observed(self) -> Observed:
        """The same as our operator looks at it."""
        return Observed(
            self.job,
            tuple(one for one in self.there if one["kind"] == "Pod"),
            tuple(one for one in self.there if one["kind"] == "Service"),
            tuple(one for one in self.there if one["kind"] not in _ONES_OWN),
            NOW,
        )


def mpi_job(*, workers: int | None = 2, name: str = "pi", **spec: Any) -> Tree:
    """Return an MPIJob with one launcher and some workers; None for none."""
    replicas: Tree = {names.LAUNCHER: replica(replicas=1)}
    if workers is not None:
        replicas[names.WORKER] = replica(replicas=workers)
    return {
        "apiVersion": MPI.api_version,
        "kind": MPI.name,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": "the-job"},
        "spec": {MPI.specs: replicas, **spec},
    }


def replica(*, template: Tree | None = None, container: Tree | None = None, **said: Any) -> Tree:
    """Return what a job says of its launcher or its workers."""
    spec = {"containers": [{"name": "main", "image": "mpi:1", **(container or {})}], **(template or {})}
    return {"template": {"spec": spec}, **said}


def both(**parts: Any) -> Tree:
    """Return a job whose launcher and workers have the same template."""
    replicas = {names.LAUNCHER: replica(replicas=1, **parts), names.WORKER: replica(replicas=2, **parts)}
    return mpi_job(mpiReplicaSpecs=replicas)


def said(job: Tree, *conditions: tuple[str, str, str], **status: Any) -> Tree:
    """Return a job whose status was written before: type, status and reason of each condition."""
    listed = [
        {
            "type": kind,
            "status": value,
            "reason": reason,
            "message": "",
            "lastUpdateTime": BEFORE,
            "lastTransitionTime": BEFORE,
        }
        for kind, value, reason in (("Created", "True", "MPIJobCreated"), *conditions)
    ]
    return {**job, "status": {"startTime": BEFORE, **status, "conditions": listed}}


def parts(
    job: Tree,
    phases: Sequence[str] = (),
    *,
    launcher: Tree | None = None,
    launches: Sequence[str] = (),
    settings: Settings | None = None,
) -> tuple[Tree, ...]:
    """Return what an operator made of a job: workers in phases, a launcher with a status, the launcher's pods."""
    return tuple(_parts(MPIJob(job), phases, launcher, launches, settings or Settings()))


def _parts(
    job: MPIJob, phases: Sequence[str], launcher: Tree | None, launches: Sequence[str], settings: Settings
) -> Iterator[Tree]:
    running = [hosts.worker_name(job.name, index) for index, phase in enumerate(phases) if phase == "Running"]
    yield objects.service(job)
    yield objects.config(job, running, settings.cluster_domain)
    secret = objects.keys(job)
    empty = dict.fromkeys(secret.keys, "")
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": job.metadata(secret.name), "data": empty}
    if group := gang.pod_group(job, settings):
        yield group
    for index, phase in enumerate(phases):
        yield in_phase(pods.worker(job, index, settings), phase)
    if launcher is None:
        return
    made = pods.launcher(job, settings)
    made["metadata"]["uid"] = "the-launcher"
    made["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "the-launcher"}}
    made["spec"] |= launcher.get("spec", {})
    yield {**made, "status": launcher.get("status", {})}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": made["metadata"]["name"], "uid": "the-launcher"}
    for number, phase in enumerate(launches):
        labels = {**made["spec"]["template"]["metadata"]["labels"], **made["spec"]["selector"]["matchLabels"]}
        metadata = {
            "name": f"{owner['name']}-{number}",
            "namespace": job.namespace,
            "labels": labels,
            "creationTimestamp": f"2026-11-16T11:{number:02d}:00Z",
            "ownerReferences": [{**owner, "controller": True}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"]["template"]["spec"]}
        yield in_phase(pod, phase)


def in_phase(pod: Tree, phase: str) -> Tree:
    """Return a pod as it is some time later: `Ready` runs and is ready, `Evicted` failed so, `Going` is terminating."""
    status: Tree = {"phase": phase}
    if phase == "Ready":
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    elif phase == "Evicted":
        status = {"phase": "Failed", "reason": "Evicted", "message": "the node is low on memory"}
    elif phase == "Going":
        pod = trees.put(pod, "metadata", "deletionTimestamp", value=BEFORE)
        status = {"phase": "Running"}
    return {**pod, "status": status}


def ended(kind: str, **condition: Any) -> Tree:
    """Return what is said of a launcher's Job that is over: Complete or Failed."""
    times = {"completionTime": ENDED} if kind == "Complete" else {}
    failed = {"failed": 1} if kind == "Failed" else {"succeeded": 1}
    return {
        "status": {
            "startTime": BEFORE,
            **times,
            **failed,
            "conditions": [{"type": kind, "status": "True", **condition}],
        }
    }


def all_cases() -> Iterable[Case]:
    """Yield every case."""
    yield from _beginnings()
    yield from _lives()
    yield from _suspensions()
    yield from _ends()
    yield from _gangs()
    yield from _refusals()


RUNS = ("Running", "True", "MPIJobRunning")


def _policy(**policy: Any) -> Tree:
    return mpi_job(runPolicy=policy)


def _beginnings() -> Iterator[Case]:
    yield Case("bare", mpi_job())
    yield Case("alone", mpi_job(workers=None, runLauncherAsWorker=True))
    yield Case("one worker", mpi_job(workers=1))
    yield Case("eleven workers", mpi_job(workers=11))
    for implementation in names.MPI_IMPLEMENTATIONS:
        yield Case(f"{implementation}", mpi_job(mpiImplementation=implementation, slotsPerWorker=4))
        yield Case(
            f"{implementation} launcher trains", mpi_job(mpiImplementation=implementation, runLauncherAsWorker=True)
        )
    yield Case("no slots", mpi_job(slotsPerWorker=0))
    yield Case("keys elsewhere", mpi_job(sshAuthMountPath="/home/mpiuser/.ssh"))
    yield Case("domain", mpi_job(), settings=Settings(cluster_domain="cluster.local"))
    yield Case("other domain", mpi_job(runLauncherAsWorker=True), settings=Settings(cluster_domain="example.org"))
    yield Case("waits for workers", mpi_job(launcherCreationPolicy=names.LAUNCHER_WAITS))
    yield Case("waits for nobody", mpi_job(workers=None, launcherCreationPolicy=names.LAUNCHER_WAITS))
    yield Case("host network", both(template={"hostNetwork": True}))
    yield Case("searches", both(template={"dnsConfig": {"searches": ["example.org"], "nameservers": ["10.0.0.1"]}}))
    yield Case("restart in the template", both(template={"restartPolicy": "Always"}))
    yield Case("restarts", both(restartPolicy="OnFailure"))
    yield Case("never restarts", both(restartPolicy="Never"))
    yield Case("command", both(container={"command": ["sleep"], "args": ["1"]}))
    yield Case("args alone", both(container={"args": ["-x"]}))
    yield Case("env", both(container={"env": [{"name": "A", "value": "1"}, {"name": "K_MPI_JOB_ROLE", "value": "x"}]}))
    volume = {"name": "data", "emptyDir": {}}
    yield Case(
        "volumes",
        both(template={"volumes": [volume]}, container={"volumeMounts": [{"name": "data", "mountPath": "/d"}]}),
    )
    yield Case(
        "second container", both(template={"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]})
    )
    job = both()
    for name in MPI.types:
        job["spec"][MPI.specs][name]["template"]["metadata"] = {
            "labels": {"team": "a", names.LABEL_JOB_NAME: "other"},
            "annotations": {"note": "b"},
        }
    yield Case("labels", job)
    yield Case(
        "run policy", _policy(backoffLimit=3, activeDeadlineSeconds=60, ttlSecondsAfterFinished=5, cleanPodPolicy="All")
    )
    yield Case("ours by name", _policy(managedBy=MPI.managed_by))
    yield Case("elsewhere", _policy(managedBy=names.MANAGED_BY_MULTIKUEUE))
    gpus = {"resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "1"}}}
    yield Case(
        "gpus", both(container=gpus, template={"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]})
    )
    yield Case(
        "gates", both(template={"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}], "priorityClassName": "high"})
    )


def _lives() -> Iterator[Case]:
    job = said(mpi_job())
    yield Case("workers missing", job, parts(job, launcher={}))
    yield Case("one is missing", job, parts(job, ["Running"], launcher={}))
    yield Case("pending", job, parts(job, ["Pending", "Pending"], launcher={}, launches=["Pending"]))
    yield Case("some run", job, parts(job, ["Running", "Pending"], launcher={}, launches=["Running"]))
    yield Case("all run", job, parts(job, ["Running", "Running"], launcher={}, launches=["Running"]))
    yield Case("launcher is late", job, parts(job, ["Running", "Running"], launcher={}, launches=["Pending"]))
    runs = said(mpi_job(), RUNS, replicaStatuses={"Launcher": {"active": 1}, "Worker": {"active": 2}})
    yield Case("still runs", runs, parts(runs, ["Running", "Running"], launcher={}, launches=["Running"]))
    yield Case("worker failed", runs, parts(runs, ["Failed", "Running"], launcher={}, launches=["Running"]))
    yield Case("worker done", runs, parts(runs, ["Succeeded", "Running"], launcher={}, launches=["Running"]))
    yield Case("worker evicted", runs, parts(runs, ["Evicted", "Running"], launcher={}, launches=["Running"]))
    yield Case("worker goes", runs, parts(runs, ["Going", "Running"], launcher={}, launches=["Running"]))
    retried = {"status": {"failed": 2}}
    yield Case(
        "launcher retried",
        runs,
        parts(runs, ["Running"] * 2, launcher=retried, launches=["Failed", "Failed", "Running"]),
    )
    waits = said(mpi_job(launcherCreationPolicy=names.LAUNCHER_WAITS))
    yield Case("waits for one", waits, parts(waits, ["Ready", "Running"]))
    yield Case("waited", waits, parts(waits, ["Ready", "Ready"]))
    fewer = said(mpi_job(workers=1), RUNS)
    yield Case("scaled down", fewer, parts(fewer, ["Running"] * 3, launcher={}, launches=["Running"]))
    trains = said(mpi_job(workers=2, runLauncherAsWorker=True), RUNS)
    yield Case(
        "scaled down, launcher trains", trains, parts(trains, ["Running"] * 3, launcher={}, launches=["Running"])
    )
    more = said(mpi_job(workers=4), RUNS)
    yield Case("scaled up", more, parts(more, ["Running"] * 2, launcher={}, launches=["Running"]))
    stale = [
        trees.put(one, "data", hosts.HOSTFILE, value="") if one["kind"] == "ConfigMap" else one for one in parts(job)
    ]
    yield Case("stale hostfile", job, tuple(stale))
    wrong = [
        trees.put(one, "spec", "selector", value={"a": "b"}) if one["kind"] == "Service" else one for one in parts(job)
    ]
    yield Case("wrong selector", job, tuple(wrong))
    going = trees.put(job, "metadata", "deletionTimestamp", value=BEFORE)
    yield Case("being deleted", going)


def _suspensions() -> Iterator[Case]:
    held = mpi_job(runPolicy={"suspend": True})
    yield Case("begins suspended", held)
    yield Case("stays suspended", said(held, ("Suspended", "True", "MPIJobSuspended")), parts(held))
    ran = said(held, RUNS, replicaStatuses={"Launcher": {"active": 1}, "Worker": {"active": 2}})
    yield Case("suspended", ran, parts(held, ["Running", "Running"], launcher={}, launches=["Running"]))
    yield Case("suspended while pending", ran, parts(held, ["Pending"], launcher={}, launches=["Pending"]))
    some = {**ran, "spec": {**ran["spec"], "runPolicy": {"suspend": True, "cleanPodPolicy": "Running"}}}
    yield Case("suspended, policy Running", some, parts(held, ["Failed", "Running"], launcher={}, launches=["Running"]))
    yield Case(
        "suspended when done", ran, parts(held, ["Running"] * 2, launcher=ended("Complete"), launches=["Succeeded"])
    )
    free = said(mpi_job(), ("Suspended", "True", "MPIJobSuspended"))
    yield Case("resumed", free, parts(free))
    yield Case("resumed with a launcher", free, parts(free, launcher={"spec": {"suspend": True}}))
    started = {"spec": {"suspend": True}, "status": {"startTime": BEFORE}}
    yield Case("resumed with a launcher that ran", free, parts(free, launcher=started))
    again = said(mpi_job(), ("Suspended", "False", "MPIJobResumed"), ("Running", "False", "MPIJobSuspended"))
    yield Case("runs again", again, parts(again, ["Running"] * 2, launcher={}, launches=["Running"]))


def _ends() -> Iterator[Case]:
    job = said(mpi_job(), RUNS)
    yield Case("succeeded", job, parts(job, ["Running"] * 2, launcher=ended("Complete"), launches=["Succeeded"]))
    fresh = said(mpi_job())
    yield Case(
        "succeeded at once", fresh, parts(fresh, ["Running"] * 2, launcher=ended("Complete"), launches=["Succeeded"])
    )
    yield Case("failed", job, parts(job, ["Running"] * 2, launcher=ended("Failed"), launches=["Failed"]))
    gave_up = ended("Failed", reason="BackoffLimitExceeded", message="too often")
    yield Case("gave up", job, parts(job, ["Running"] * 2, launcher=gave_up, launches=["Failed", "Failed"]))
    yield Case("gave up, evicted", job, parts(job, ["Running"] * 2, launcher=gave_up, launches=["Failed", "Evicted"]))
    yield Case("gave up, pods gone", job, parts(job, ["Running"] * 2, launcher=gave_up))
    late = ended("Failed", reason="DeadlineExceeded", message="too late")
    yield Case("too late", job, parts(job, ["Running"] * 2, launcher=late))
    evicted = said(mpi_job(), ("Running", "False", "MPIJobRunning"), ("Failed", "True", "MPIJobEvicted"))
    yield Case("evicted, yet succeeded", evicted, parts(evicted, ["Evicted", "Running"], launcher=ended("Complete")))
    yield Case("evicted, goes on", evicted, parts(evicted, ["Evicted", "Running"], launcher={}, launches=["Running"]))
    over = ("Succeeded", "True", "MPIJobSucceeded")
    for clean in names.CLEAN_POD_POLICIES:
        done = said(
            mpi_job(workers=4, runPolicy={"cleanPodPolicy": clean}),
            ("Running", "False", "MPIJobRunning"),
            over,
            completionTime=ENDED,
            replicaStatuses={"Launcher": {"succeeded": 1}, "Worker": {}},
        )
        phases = ["Running", "Pending", "Failed", "Succeeded"]
        yield Case(f"cleaned up: {clean}", done, parts(done, phases, launcher=ended("Complete")))
        yield Case(f"cleaned up: {clean}, no pods", done, parts(done, launcher=ended("Complete")))
        yield Case(f"cleaned up: {clean}, nothing", done)
    fewer = said(mpi_job(workers=1, runPolicy={"cleanPodPolicy": "All"}), over, completionTime=ENDED)
    yield Case("cleaned up: scaled down", fewer, parts(fewer, ["Running"] * 2, launcher=ended("Complete")))
    yield Case("cleaned up: one goes", fewer, parts(fewer, ["Going"], launcher=ended("Complete")))


def _gangs() -> Iterator[Case]:
    needs = {
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi", "nvidia.com/gpu": "1"}}
    }
    job = both(container=needs)
    least = {"minAvailable": 2, "queue": "q", "priorityClass": "high", "scheduleTimeoutSeconds": 9}
    policies: dict[str, Tree] = {
        "": {},
        "least": {"schedulingPolicy": least},
        "none at once": {"schedulingPolicy": {"minAvailable": 0}},
        "many": {"schedulingPolicy": {"minAvailable": 9}},
        "own needs": {"schedulingPolicy": {"minResources": {"cpu": "7"}}},
    }
    for scheduler in ("volcano", "scheduler-plugins"):
        settings = Settings(gang=scheduler)
        for what, policy in policies.items():
            yield Case(f"{scheduler} {what}", trees.put(job, "spec", "runPolicy", value=policy), settings=settings)
        queue = {"scheduling.volcano.sh/queue-name": "other"}
        yield Case(f"{scheduler} queue", trees.put(job, "metadata", "annotations", value=queue), settings=settings)
        yield Case(f"{scheduler} priority", both(template={"priorityClassName": "low"}), settings=settings)
        initial = {"name": "i", "image": "i", "resources": {"requests": {"cpu": "9"}}}
        yield Case(f"{scheduler} init", both(template={"initContainers": [initial]}), settings=settings)
        yield Case(f"{scheduler} alone", mpi_job(workers=None), settings=settings)
        lives = said(job, RUNS)
        yield Case(f"{scheduler} lives", lives, parts(lives, ["Running"] * 2, launcher={}, settings=settings), settings)
        more = trees.put(lives, "spec", MPI.specs, names.WORKER, "replicas", value=3)
        yield Case(f"{scheduler} grows", more, parts(lives, ["Running"] * 2, launcher={}, settings=settings), settings)
        held = trees.put(lives, "spec", "runPolicy", "suspend", value=True)
        yield Case(f"{scheduler} suspended", held, parts(lives, ["Running"] * 2, settings=settings), settings)
        over = said(
            trees.put(job, "spec", "runPolicy", "cleanPodPolicy", value="All"),
            ("Succeeded", "True", "MPIJobSucceeded"),
            completionTime=ENDED,
        )
        yield Case(
            f"{scheduler} over",
            over,
            parts(over, ["Running"] * 2, launcher=ended("Complete"), settings=settings),
            settings,
        )


def _refusals() -> Iterator[Case]:
    yield Case("no launcher", mpi_job(mpiReplicaSpecs={names.WORKER: replica(replicas=1)}))
    yield Case("no replicas", mpi_job(mpiReplicaSpecs={}))
    yield Case("two launchers", mpi_job(mpiReplicaSpecs={names.LAUNCHER: replica(replicas=2)}))
    yield Case("no workers wanted", mpi_job(workers=0))
    yield Case("fewer than no workers", mpi_job(workers=-1))
    yield Case("restart always", both(restartPolicy="Always"))
    yield Case("restart by exit code", both(restartPolicy="ExitCode"))
    yield Case("no containers", both(template={"containers": []}))
    yield Case("a negative slot", mpi_job(slotsPerWorker=-1))
    yield Case("unknown MPI", mpi_job(mpiImplementation="LAM"))
    yield Case("unknown clean-up", _policy(cleanPodPolicy="Some"))
    yield Case("negative times", _policy(ttlSecondsAfterFinished=-1, activeDeadlineSeconds=-1, backoffLimit=-1))
    yield Case("too long a name", mpi_job(name="x" * 55))
    yield Case("just short enough a name", mpi_job(name="x" * 54))
    yield Case("a name with a digit first", mpi_job(name="1x"))
    yield Case("a name with a dot", mpi_job(name="a.b"))
    yield Case("unknown launcher policy", mpi_job(launcherCreationPolicy="Later"))
    yield Case("no folder", mpi_job(sshAuthMountPath="a:b"))
