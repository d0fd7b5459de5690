"""From a JobSet to pods: what JobSet and the Job controller would make of it. Pure.

    plan = read_jobset(rendering)
    plan.jobs[0].count                       how many pods, each a `PodIndex`
    pod_at(plan, place, ...)                 the Pod document, named and labelled as in a cluster

Names, labels and annotations are JobSet's (0.12), because clients find pods by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.podindex import PodIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

COMPLETE: Final = "Complete"
READY: Final = "Ready"
ON_FAILURE: Final = "OnFailure"
_RUN: Final = frozenset({"command", "args"})


@dataclass(frozen=True)
class ExitRule:
    """Which exit codes a rule of podFailurePolicy is for."""

    is_in: bool
    codes: frozenset[int]

    def matches(self, code: int) -> bool:
        """Return whether it is for this one."""
        return (code in self.codes) == self.is_in


@dataclass(frozen=True)
class LocalJob:
    """A replicated job: `replicas` Jobs of `completions` pods."""

    name: str
    replicas: int
    parallelism: int
    completions: int
    retries: int
    """How many containers may fail before a Job has failed."""
    restart_policy: str
    """OnFailure: the container starts again in its pod; Never: there is a new pod."""
    seconds: int | None
    """How long a pod may take."""
    depends_on: tuple[tuple[str, str], ...]
    """Replicated jobs that must be Complete or Ready before this one starts."""
    template: Tree
    """The pods' metadata and spec."""
    final: tuple[ExitRule, ...] = ()
    """Ends after which a Job has failed, however many more containers may fail."""

    def is_final(self, code: int) -> bool:
        """Return whether a Job has failed with a container that ended so."""
        return any(rule.matches(code) for rule in self.final)

    @property
    def places(self) -> Iterator[PodIndex]:
        """Where its pods stand, in order."""
        for replica in range(self.replicas):
            for index in range(self.completions):
                yield PodIndex(self.name, replica, index)


@dataclass(frozen=True)
class FailureRule:
    """What happens when a Job fails."""

    action: str
    """FailJobSet, RestartJobSet or RestartJobSetAndIgnoreMaxRestarts."""
    jobs: frozenset[str]
    """Replicated jobs that it is for; all if empty."""
    reasons: frozenset[str]
    """Reasons of a Job's failure that it is for; all if empty."""


@dataclass(frozen=True)
class LocalJobSet:
    """A JobSet as this machine runs it: all pods of a TrainJob, and when they start, end and start again."""

    name: str
    uid: str
    subdomain: str
    jobs: tuple[LocalJob, ...]
    max_restarts: int
    failure_rules: tuple[FailureRule, ...]
    succeeds_with: frozenset[str]
    """Replicated jobs whose success is the TrainJob's."""
    any_suffices: bool
    claims: frozenset[str]
    """Volumes that all pods share, for as long as there is the TrainJob."""

    @property
    def places(self) -> Iterator[PodIndex]:
        """Where all pods stand, in order."""
        return (place for job in self.jobs for place in job.places)

    @property
    def containers(self) -> Iterator[tuple[LocalJob, Tree]]:
        """The containers of each job's pods, those that come first among them."""
        for job in self.jobs:
            spec = job.template.get("spec") or {}
            for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
                yield job, container

    def job(self, name: str) -> LocalJob:
        """Return the replicated job of a name, which there is."""
        return next(job for job in self.jobs if job.name == name)

    def number(self, place: PodIndex) -> int:
        """Return a pod's number among all."""
        return list(self.places).index(place)

    def hostname(self, place: PodIndex) -> str:
        """Return a pod's hostname; with the subdomain behind it, its address."""
        return names.pod_hostname(self.name, *place)


def read_jobset(jobset: Tree, uid: str) -> LocalJobSet:
    """Return a JobSet as this machine runs it."""
    spec = jobset["spec"]
    jobs: list[LocalJob] = []
    in_order = trees.get(spec, "startupPolicy", "startupPolicyOrder") == "InOrder"
    for entry in spec.get("replicatedJobs") or ():
        jobs.append(_read_job(entry, jobs[-1].name if in_order and jobs else None))
    policy = spec.get("failurePolicy") or {}
    success = spec.get("successPolicy") or {}
    return LocalJobSet(
        name=jobset["metadata"]["name"],
        uid=uid,
        subdomain=trees.get(spec, "network", "subdomain") or jobset["metadata"]["name"],
        jobs=tuple(jobs),
        max_restarts=policy.get("maxRestarts") or 0,
        failure_rules=tuple(_read_rules(policy)),
        succeeds_with=frozenset(success.get("targetReplicatedJobs") or (job.name for job in jobs)),
        any_suffices=success.get("operator") == "Any",
        claims=frozenset(_claims(spec)),
    )


def _read_job(entry: Tree, before: str | None) -> LocalJob:
    job = trees.get(entry, "template", "spec") or {}
    template = job.get("template") or {}
    parallelism = job.get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    completions = job.get("completions")
    said = job.get("backoffLimit")
    depends_on = [(need["name"], need.get("status", COMPLETE)) for need in entry.get("dependsOn") or ()]
    if before is not None:
        depends_on.append((before, READY))
    return LocalJob(
        name=entry["name"],
        replicas=int(entry.get("replicas", 1)),
        parallelism=parallelism,
        completions=parallelism if completions is None else int(completions),
        # A cluster's silence means 6, which is for nodes that are lost. Nothing is lost here: what failed fails again.
        retries=0 if said is None else int(said),
        restart_policy=trees.get(template, "spec", "restartPolicy") or ON_FAILURE,
        seconds=job.get("activeDeadlineSeconds"),
        depends_on=tuple(depends_on),
        template=template,
        final=tuple(_read_final(job)),
    )


def _read_rules(policy: Tree) -> Iterator[FailureRule]:
    """Yield the rules that can hold here: no Job fails with a cluster's words, such as those of a pod's disruption."""
    for rule in policy.get("rules") or ():
        if not rule.get("onJobFailureMessagePatterns"):
            yield FailureRule(
                rule.get("action", "RestartJobSet"),
                frozenset(rule.get("targetReplicatedJobs") or ()),
                frozenset(rule.get("onJobFailureReasons") or ()),
            )


def _read_final(job: Tree) -> Iterator[ExitRule]:
    for rule in trees.entries(job, "podFailurePolicy", "rules"):
        codes = trees.fields(rule, "onExitCodes")
        if rule.get("action") == "FailJob" and codes:
            yield ExitRule(codes.get("operator") == "In", frozenset(codes.get("values") or ()))


def _claims(spec: Tree) -> Iterator[str]:
    for policy in spec.get("volumeClaimPolicies") or ():
        for template in policy.get("templates") or ():
            yield template["metadata"]["name"]


def pod_at(
    plan: LocalJobSet, place: PodIndex, *, suffix: str, attempt: int, now: str, address: str, machine: str
) -> Tree:
    """Return a new Pod, Pending. What its containers run is left out: with code in it, it may be a megabyte."""
    job = plan.job(place.replicated_job)
    hostname = plan.hostname(place)
    metadata = job.template.get("metadata") or {}
    parent = f"{plan.name}-{place.replicated_job}-{place.job_index}"
    jobset = {
        names.LABEL_JOBSET_NAME: plan.name,
        names.LABEL_REPLICATED_JOB: place.replicated_job,
        names.LABEL_JOB_INDEX: str(place.job_index),
        names.LABEL_RESTART_ATTEMPT: str(attempt),
        names.LABEL_REPLICATED_JOB_REPLICAS: str(job.replicas),
    }
    index = {names.ANNOTATION_COMPLETION_INDEX: str(place.completion_index)}
    batch = {names.LABEL_JOB_NAME: parent, names.LABEL_JOB_NAME_OLDER: parent}
    spec = job.template.get("spec") or {}
    shown = {kind: [_shown(entry) for entry in spec[kind]] for kind in ("initContainers", "containers") if kind in spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{hostname}-{suffix}",
            "uid": f"{plan.uid}-{hostname}-{suffix}",
            "creationTimestamp": now,
            "labels": {**(metadata.get("labels") or {}), **jobset, **index, **batch},
            "annotations": {**(metadata.get("annotations") or {}), **jobset, **index},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": parent, "controller": True}],
        },
        "spec": {**spec, **shown, "hostname": hostname, "subdomain": plan.subdomain, "nodeName": machine},
        "status": {
            "phase": "Pending",
            "podIP": address,
            "hostIP": address,
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now}],
        },
    }


def _shown(container: Tree) -> Tree:
    return {key: value for key, value in container.items() if key not in _RUN}


def main_container(pod_spec: Tree) -> str:
    """Return the container whose lines are the step's."""
    entries: list[Tree] = pod_spec.get("containers") or []
    known = set(names.CONTAINER_OF_ANCESTOR.values())
    return next((entry["name"] for entry in entries if entry["name"] in known), entries[0]["name"] if entries else "")
