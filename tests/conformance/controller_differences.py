"""Differences that we want in what the controller does. Rows of `Declared`: id, what, reason, predicate."""

from __future__ import annotations

from tests.conformance import news, predicates

ROWS = (
    (
        "failed-is-final",
        (
            "a failed job stays failed: its JobSet is not made anew when a TTL removes it, nor suspended, resumed or "
            "patched"
        ),
        "v2.3 forgets the failure and trains again; its main branch has it as ours (§12)",
        predicates.is_failed_for_good,
    ),
    (
        "suspended-is-not-failed",
        "a JobSet that reports Failed while its job is suspended is created again, and the job runs when it is resumed",
        "Kueue's preemption stops pods, and a pod that fails because it was stopped is no fault of the job",
        predicates.survives_suspension,
    ),
    (
        "run-policy",
        "`spec.runPolicy` of runtimes, with the limit of restarts after faults",
        "the field is proposed in KEP-4162; v2.3 drops it with a warning",
        predicates.has_run_policy,
    ),
    (
        "ended-is-not-suspended",
        "a job that has ended gets no Suspended condition",
        "it has no pods to suspend, and `kubectl get` would call a completed job Suspended",
        predicates.has_ended,
    ),
    (
        "runs-unconditionally",
        "after a resume Suspended is False until pods are ready, and then goes, unless a deadline counts from it",
        "the official SDK takes a TrainJob with any condition for one that does not run",
        predicates.runs_unconditionally,
    ),
    (
        "ttl-when-told",
        "a JobSet gets its runtime's `ttlSecondsAfterFinished` when its job's end is told, not before",
        (
            "a JobSet that goes before anybody saw its end would be made again: the reference trains twice if it was "
            "down for that long"
        ),
        predicates.holds_ttl,
    ),
    (
        "snapshot-created",
        "the snapshot is created once, and no apply owns it",
        (
            "a forced apply would take over a ConfigMap that somebody else made; the reference applies it only when "
            "there is none, so it never misses the ownership"
        ),
        predicates.is_created_snapshot,
    ),
    (
        "snapshot-immutable",
        "the snapshot is `immutable`: 422 for an edit of it",
        "what a job runs is not its author's to change once Kueue has counted it (§11.23)",
        predicates.is_immutable_snapshot,
    ),
    (
        "added-status",
        (
            "`status.runtimeDigest`, `phase`, `reason`, `nodesReady`, `restarts`, `restartsCountTowardsMax` and "
            "`timeline`, with the first other word of the status or some seconds after it"
        ),
        "see above: fields that are ours",
        predicates.is_added_status,
    ),
    (
        "held-counts",
        (
            "`status.jobsStatus` of a job that is held back does not say that its Jobs are suspended, nor that they "
            "went with their JobSet"
        ),
        "the condition Suspended says it; a write for each job that waits would be what a queue of thousands costs",
        predicates.is_held_count,
    ),
    (
        "snapshot-restored",
        (
            "a snapshot that somebody deletes comes back as it was; where nobody knows any more what it said, it stays "
            "away, and the job fails once it needs it, `RuntimeSnapshotMissing`"
        ),
        "the reference takes the runtime as it is by then, and the job becomes another one",
        predicates.is_deleted_snapshot,
    ),
    (
        "keys-unwatched",
        (
            "a job's Secret that somebody deletes is back when a pod is about to mount it, or the job restarts, is "
            "resumed or is changed while suspended, not at once"
        ),
        (
            "a watch of Secrets, even of their metadata alone, takes the right to list every Secret of the cluster: "
            "RBAC grants no less (§11.32)"
        ),
        predicates.is_unwatched,
    ),
    (
        "news",
        "Events of a TrainJob's course: its JobSet is created, it is suspended, resumed, started, ended or failed",
        "the reference has Events of what could not be made alone; `kubectl describe` and the SDK show ours",
        news.tells_course,
    ),
    (
        "no-trouble",
        (
            "no Events of trouble where the reference alone cannot make a JobSet, change it, or do so at once; "
            "Events of it where a name is taken (`foreign-keys`)"
        ),
        "what it could not make is told where it is; what somebody has to mend must be said",
        lambda found: news.tells_trouble(found) or news.tells_of_strangers(found),
    ),
    (
        "foreign-jobset",
        "no snapshot while the JobSet's name is taken by another's JobSet",
        "nothing is begun that cannot go on",
        predicates.has_foreign_jobset,
    ),
    (
        "foreign-keys",
        "nothing is made for an MPI or Flux job while its Secret's name is taken by one that it does not control",
        "whoever made that Secret knows the keys to the job's nodes; the reference takes any of the name",
        predicates.has_foreign_keys,
    ),
    (
        "emptied-metadata",
        "patches whose pod labels and annotations are all taken back reach the JobSet",
        (
            "the reference's apply leaves `metadata: null`, which the API server refuses: Kueue's preempted job "
            "keeps the old node selector"
        ),
        predicates.has_emptied_metadata,
    ),
)
