"""What admission makes of an MPIJob: what it takes for granted, what is wrong with it, what its user should know.

Both versions are judged as v2beta1, which is what runs. The rules are mpi-operator's, which applied them when it was
too late to refuse anything, and a few more: a job that could not have become pods is refused where its user sees it.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.decision import Settings
from trainplane.legacy.mpi import conversion, hosts
from trainplane.legacy.mpi.job import SLOTS, SSH_MOUNT_PATH, MPIJob
from trainplane.legacy.rules import (
    MOST_PODS,
    judge_gang,
    judge_name,
    judge_policy,
    judge_policy_change,
    judge_size,
    listed,
)
from trainplane.render.demand import pod_requests
from trainplane.render.findings import MOST_FINDINGS, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_RESTARTS: Final = (names.RESTART_NEVER, names.RESTART_ON_FAILURE)
_LAUNCHER_POLICIES: Final = (names.LAUNCHER_AT_STARTUP, names.LAUNCHER_WAITS)
_DEFAULTS: Final = {
    "slotsPerWorker": SLOTS,
    "sshAuthMountPath": SSH_MOUNT_PATH,
    "mpiImplementation": names.MPI_OPENMPI,
    "launcherCreationPolicy": names.LAUNCHER_AT_STARTUP,
}
_REPLICAS: Final = {names.LAUNCHER: 1, names.WORKER: 0}
_SPEC: Final = "spec"
_SETTINGS: Final = Settings()
_V1_RUNS: Final = (
    "kubeflow.org/v1 MPIJobs run as v2beta1: mpirun reaches the workers over SSH and no longer by kubectl exec, so the "
    "image needs ssh and sshd"
)


def default(job: Tree) -> Tree:
    """Return the job with what it leaves out. One of v1 stays as it is: v2beta1 says what it means by nothing."""
    spec = job.get(_SPEC)
    if job.get("apiVersion") == conversion.V1 or not isinstance(spec, dict):
        return job
    spec = {**spec, **{key: value for key, value in _DEFAULTS.items() if spec.get(key) is None or spec[key] == ""}}
    policy = spec.get("runPolicy")
    if isinstance(policy, dict | None) and trees.get(policy, "cleanPodPolicy") is None:
        spec = {**spec, "runPolicy": {**(policy or {}), "cleanPodPolicy": names.CLEAN_NONE}}
    for name, count in _REPLICAS.items():
        replica = trees.get(spec, MPI.specs, name)
        if isinstance(replica, dict):
            said = {"restartPolicy": replica.get("restartPolicy") or MPI.restart_of(name)}
            said |= {"replicas": count} if replica.get("replicas") is None else {}
            spec = trees.put(spec, MPI.specs, name, value={**replica, **said})
    return {**job, _SPEC: spec}


def problems(new: Tree, old: Tree | None = None, settings: Settings = _SETTINGS) -> list[Finding]:
    """Return why a job may not be as it is; of an edit, what it makes worse."""
    job = _stored(new)
    if old is None:
        return list(islice(judge(MPIJob(job), settings), MOST_FINDINGS))
    before = _stored(old)
    if job.get("spec") == before.get("spec"):
        return []
    known = set(judge(MPIJob(before), settings))
    found = (finding for finding in judge(MPIJob(job), settings) if finding not in known)
    return list(islice(chain(judge_policy_change(job, before), found), MOST_FINDINGS))


def warnings(job: Tree) -> Iterator[str]:
    """Yield what runs otherwise than its user may think."""
    if conversion.was_v1(job):
        yield from _v1_warnings(conversion.converted(job, conversion.V1))
    written = MPIJob(_stored(job))
    for name in (names.LAUNCHER, names.WORKER):
        if trees.text(written.replica(name), "template", _SPEC, "restartPolicy"):
            path = _replica(name)
            yield f"{path}.template.spec.restartPolicy is not read: write {path}.restartPolicy"
    unknown = [name for name in trees.fields(written.tree, _SPEC, MPI.specs) if name not in MPI.types]
    if unknown:
        yield f"spec.{MPI.specs} has types other than {' and '.join(MPI.types)}: nothing is made of them"


def judge(job: MPIJob, settings: Settings) -> Iterator[Finding]:
    """Yield what is wrong with a job of v2beta1 as it stands."""
    counts = {names.LAUNCHER: 1, names.WORKER: max(job.workers, 0)}
    yield from judge_name(job.tree, {names.WORKER: counts[names.WORKER]})  # a launcher has no number
    yield from judge_size(f"spec.{MPI.specs}", counts, MOST_PODS)
    yield from judge_policy(MPI, job.tree, settings)
    yield from judge_gang(job.tree, counts, settings)
    length = hosts.longest_lists(job, settings.cluster_domain)
    if length > hosts.ROOM:
        room = f"the lists of hosts would have {length} bytes, of which a ConfigMap takes {hosts.ROOM}"
        yield Finding(f"{_replica(names.WORKER)}.replicas", f"{room}: use fewer workers, or a shorter name")
    yield from _judge_spec(job)
    if not isinstance(trees.get(job.tree, _SPEC, MPI.specs), dict):
        yield Finding(f"spec.{MPI.specs}", f"is missing: describe the {names.LAUNCHER}", "Required")
        return
    if not job.replica(names.LAUNCHER):
        yield Finding(_replica(names.LAUNCHER), "is missing: describe the pod that runs mpirun", "Required")
    for name in MPI.types:
        if job.replica(name):
            yield from _judge_replicas(job, name)


def _judge_spec(job: MPIJob) -> Iterator[Finding]:
    if job.slots < 0:
        yield Finding("spec.slotsPerWorker", f"is {job.slots}: write how many processes a worker has room for")
    if job.implementation not in names.MPI_IMPLEMENTATIONS:
        yield Finding("spec.mpiImplementation", f"must be {listed(names.MPI_IMPLEMENTATIONS)}")
    policy = trees.text(job.tree, _SPEC, "launcherCreationPolicy") or names.LAUNCHER_AT_STARTUP
    if policy not in _LAUNCHER_POLICIES:
        yield Finding("spec.launcherCreationPolicy", f"must be {listed(_LAUNCHER_POLICIES)}")
    if ":" in job.ssh_folder or len(job.ssh_folder) > conversion.LONGEST_PATH:
        yield Finding("spec.sshAuthMountPath", "must be a folder that can be mounted: without a colon, and not so long")


def _judge_replicas(job: MPIJob, name: str) -> Iterator[Finding]:
    path, replica = _replica(name), job.replica(name)
    count = trees.number(replica, "replicas")
    if name == names.LAUNCHER and count not in {None, 1}:
        yield Finding(f"{path}.replicas", f"is {count}: there is one launcher")
    if name == names.WORKER and (count is None or count < 1):
        yield Finding(f"{path}.replicas", "must be 1 or more: leave the workers out where the launcher trains alone")
    if job.restart(name) not in _RESTARTS:
        yield Finding(f"{path}.restartPolicy", f"must be {listed(_RESTARTS)}")
    spec = trees.fields(replica, "template", _SPEC)
    if not trees.entries(spec, "containers"):
        yield Finding(f"{path}.template.spec.containers", "is empty: name an image to run", "Required")
    try:
        pod_requests(spec)
    except QuantityError as error:
        yield Finding(f"{path}.template.spec", str(error))


def _v1_warnings(job: Tree) -> Iterator[str]:
    """Yield what changes for whoever wrote v1 for training-operator."""
    yield _V1_RUNS
    spec = trees.fields(job, _SPEC)
    containers = trees.entries(spec, MPI.specs, names.WORKER, "template", _SPEC, "containers")
    if containers and (containers[0].get("command") or containers[0].get("args")):
        yield f"{_replica(names.WORKER)} says what to run: see that it starts sshd, or leave command and args out"
    main = trees.text(spec, "mainContainer")
    firsts = (trees.get(spec, MPI.specs, name, "template", _SPEC, "containers", 0, "name") for name in MPI.types)
    if main and any(first is not None and first != main for first in firsts):
        yield "spec.mainContainer is not the first container: MPI runs in the first, so put it there"
    for name in MPI.types:
        said = trees.text(spec, MPI.specs, name, "restartPolicy")
        runs = trees.text(_stored(job), _SPEC, MPI.specs, name, "restartPolicy")
        if said and said != runs:
            yield f"{_replica(name)}.restartPolicy: {said} runs as {runs}"


def _stored(job: Tree) -> Tree:
    return conversion.converted(job, conversion.V2BETA1)


def _replica(name: str) -> str:
    return f"spec.{MPI.specs}[{name}]"
