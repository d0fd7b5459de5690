"""What every older kind of job is judged by: its name, its run policy, how many pods it comes to.

A rule yields findings and never stops another. Only what could never run, or would cost others too much, is refused
beyond what the operators before us refuse: a job that ran there runs here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings

MOST_PODS: Final = 4096
"""Pods of one job. The operator makes each itself, with a Service of its own, and every pod's news is a look at all of
them; a TrainJob, whose pods JobSet makes, may have eight times as many."""

POLICY: Final = "spec.runPolicy"
LONGEST: Final = 63
"""Characters of a DNS label, which a pod's address begins with."""
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_COUNTS: Final = {
    "ttlSecondsAfterFinished": "seconds after the end",
    "activeDeadlineSeconds": "seconds that the job may run",
    "backoffLimit": "restarts",
}


def judge_name(job: Tree, counts: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a finding if pods and Services could not be named after the job; `counts` is its pods by type."""
    name = trees.text(job, "metadata", "name")
    if name is None:
        return  # the API server has not drawn it yet, or refuses the job itself
    if not _LABEL.fullmatch(name):
        yield Finding(
            "metadata.name",
            "must begin with a small letter, end with a small letter or digit, and hold only these and hyphens: pods "
            "are addressed by it",
        )
    longest = max(
        (names.pod_name(name, one, max(count - 1, 0)) for one, count in counts.items()), key=len, default=name
    )
    if len(longest) > LONGEST:
        room = max(len(name) - len(longest) + LONGEST, 0)
        yield Finding(
            "metadata.name",
            f"is too long: a pod's address would begin with {len(longest)} characters, and {LONGEST} are allowed. "
            f"Use a name of at most {room}",
        )


def judge_size(path: str, counts: Mapping[str, int], most_pods: int) -> Iterator[Finding]:
    """Yield a finding if a job has no pod, or more than are looked after."""
    total = sum(counts.values())
    if not total:
        yield Finding(path, "asks for no pod: set replicas of at least one type to 1 or more", "Required")
    elif total > most_pods:
        yield Finding(
            path,
            f"asks for {total} pods, and a job of this kind may have {most_pods}: use fewer replicas with more in "
            "each, or a TrainJob",
        )


def judge_policy(kind: Kind, job: Tree, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each setting of the run policy that means nothing, or that nobody would act on."""
    policy = trees.fields(job, "spec", "runPolicy")
    yield from judge_manager(kind, policy, settings)
    clean = policy.get("cleanPodPolicy")
    if clean and clean not in names.CLEAN_POD_POLICIES:
        yield Finding(f"{POLICY}.cleanPodPolicy", f"must be {listed(names.CLEAN_POD_POLICIES)}")
    for field, what in _COUNTS.items():
        count = trees.number(policy, field)
        if count is not None and count < 0:
            yield Finding(f"{POLICY}.{field}", f"is a number of {what}: use 0 or more")


def judge_manager(kind: Kind, policy: Tree, settings: Settings) -> Iterator[Finding]:
    """Yield a finding if a run policy names a controller that there is not, or may name none."""
    manager = policy.get("managedBy")
    if manager is None:
        return
    if not settings.job_managed_by:
        yield Finding(
            f"{POLICY}.managedBy",
            f"may be set only with the feature gate {names.GATE_MANAGED_BY}, which is off: leave it out, or ask an "
            "admin to turn it on",
            "Forbidden",
        )
    elif manager not in {kind.managed_by, names.MANAGED_BY_MULTIKUEUE}:
        yield Finding(
            f"{POLICY}.managedBy",
            f"must be {kind.managed_by} or {names.MANAGED_BY_MULTIKUEUE}, or left out, which means the first",
        )


def judge_policy_change(new: Tree, old: Tree) -> Iterator[Finding]:
    """Yield a finding if a job would pass from one controller to another."""
    before, after = (trees.get(job, "spec", "runPolicy", "managedBy") for job in (old, new))
    if before != after:
        yield Finding(
            f"{POLICY}.managedBy",
            "cannot be changed once the job exists, for two controllers would run it: create another job instead",
        )


def judge_gang(job: Tree, counts: Mapping[str, int], settings: Settings) -> Iterator[Finding]:
    """Yield a finding if the scheduler would wait for more pods than there will be."""
    wanted = trees.number(job, "spec", "runPolicy", "schedulingPolicy", "minAvailable")
    total = sum(counts.values())
    if settings.gang and wanted is not None and wanted > total:
        yield Finding(
            f"{POLICY}.schedulingPolicy.minAvailable",
            f"is {wanted}, and the job has {total} pods: none would ever be scheduled. Use at most {total}",
        )


def listed(words: tuple[str, ...]) -> str:
    """Return words as a choice between them."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
