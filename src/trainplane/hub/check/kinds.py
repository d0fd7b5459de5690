"""Which kinds of `kubeflow.org` a fleet dispatches beside TrainJobs, and what each cluster lacks for them.

A kind counts where the hub serves it, and where its Kueue has it in `integrations.frameworks` as far as that can be
seen. A fleet that knows none of them is told nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.hub.check.report import Check, Finding
from trainplane.hub.kinds import KINDS, TRAIN_JOB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.hub.check.facts import ClusterFacts
    from trainplane.hub.kinds import JobKind


def legacy_kinds(hub: ClusterFacts) -> tuple[JobKind, ...]:
    """Return the kinds beside TrainJobs that a hub's queues take."""
    return tuple(
        kind
        for kind in KINDS.values()
        if kind is not TRAIN_JOB and _serves(hub, kind) and (hub.frameworks is None or kind.framework in hub.frameworks)
    )


def judge_kinds(hub: ClusterFacts, cluster: ClusterFacts, *, is_hub: bool) -> Iterator[Check]:
    """Iterate over what a cluster lacks for the kinds that the hub dispatches: nothing where it dispatches none."""
    kinds = legacy_kinds(hub)
    if not kinds:
        return
    findings = [
        Finding(
            "warns",
            refusal(kind),
            f"queue {kind.name}s on the cluster where they run, or send TrainJobs (trainplane migrate)",
        )
        for kind in kinds
        if is_hub and not kind.is_mirrored
    ]
    findings += [_missing(kind) for kind in kinds if not _serves(cluster, kind)]
    here = [kind.name for kind in (TRAIN_JOB, *kinds) if kind is TRAIN_JOB or _serves(cluster, kind)]
    yield Check("kinds", ", ".join(here), tuple(findings))


def refusal(kind: JobKind) -> str:
    """Say that a kind cannot be dispatched, and why."""
    why = f"{kind.name} is not among the kinds that may name a prebuilt Workload"
    return f"no {kind.name} can be sent to a worker: the webhook of Kueue there refuses MultiKueue's copy, for {why}"


def _missing(kind: JobKind) -> Finding:
    problem = f"{kind.resource.api_version} is served without {kind.plural}, which the hub dispatches"
    why = "a hub's Kueue connects to no worker that lacks a kind of its integrations.frameworks"
    return Finding("stops", problem, f"put {kind.plural} into legacy.kinds of Trainplane here: {why}")


def _serves(cluster: ClusterFacts, kind: JobKind) -> bool:
    return kind.plural in cluster.served.get(kind.resource.api_version, ())
