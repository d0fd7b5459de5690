"""Faults in what a TrainJob says of itself, and in what is done with its objects as it goes along."""

from __future__ import annotations

from tests.conformance.mutation.fault import faults_of

STATUS = faults_of(
    "lifecycle.status",
    (
        "suspended-late",
        "Suspended only after another condition",
        "    if job.spec.suspend:\n",
        "    if job.spec.suspend and conditions:\n",
    ),
    (
        "suspended-reason",
        "Suspended says that it was resumed",
        "_settled(conditions, _SUSPENDED, now)",
        "_settled(conditions, _RESUMED, now)",
    ),
    (
        "resumed-untold",
        "a resumed job stays Suspended",
        "return upsert(conditions, _RESUMED, now)",
        "return conditions",
    ),
    (
        "failed-complete",
        "a failed job is Complete",
        "replace(condition, type=ours)",
        "replace(condition, type=names.COMPLETE)",
    ),
    (
        "end-reason",
        "the end has another reason",
        "replace(condition, type=ours)",
        'replace(condition, type=ours, reason="Ended")',
    ),
    (
        "end-message",
        "the end has another message",
        "replace(condition, type=ours)",
        'replace(condition, type=ours, message="over")',
    ),
    (
        "end-time",
        "the end has another time",
        "replace(condition, type=ours)",
        "replace(condition, type=ours, last_transition_time=now)",
    ),
    (
        "end-early",
        "a JobSet that is not complete is",
        'if condition is not None and condition.status == "True":',
        "if condition is not None:",
    ),
    (
        "end-untold",
        "the end is not told",
        "conditions = _copied(conditions, jobset.conditions or (), now)",
        "conditions = _copied(conditions, (), now)",
    ),
    (
        "counts-part",
        "counts of the first job alone",
        "jobs = jobset.replicated_jobs_status or ()",
        "jobs = (jobset.replicated_jobs_status or ())[:1]",
    ),
    ("counts-order", "counts in another order", "jobs_status=list(jobs))", "jobs_status=list(jobs)[::-1])"),
    (
        "counts-suspended",
        "counts of a suspended job stand still",
        "if jobset is not None and not _is_held(job, jobset):",
        "if jobset is not None and not job.spec.suspend:",
    ),
    (
        "end-not-final",
        "an ended job becomes another",
        "    if not is_finished(conditions):\n",
        "    if conditions is not None:\n",
    ),
    ("conditions-few", "a job has one condition", "conditions=list(conditions), ", "conditions=list(conditions)[:1], "),
    (
        "running-forgets",
        "a deadline counts from the creation once pods run",
        "if job.spec.active_deadline_seconds:",
        "if not job.spec.active_deadline_seconds:",
    ),
)

ENDS = (
    *faults_of(
        "lifecycle.conditions",
        ("failed-not-final", "a failed job goes on", "if kind == names.FAILED:", "if kind is None:"),
        ("complete-not-final", "a complete job goes on", "if kind == names.COMPLETE:", "if kind is None:"),
    ),
    *faults_of(
        "lifecycle.deadline",
        ("deadline-early", "a deadline at half the time", "return allowed - (now", "return allowed / 2 - (now"),
        ("deadline-never", "no deadline", "if not allowed or job", "if allowed is not True or job"),
        (
            "deadline-suspended",
            "a suspended job's time runs",
            "if not allowed or job.spec.suspend or",
            "if not allowed or",
        ),
        (
            "deadline-resumed",
            "the time counts from the creation",
            "        began = suspended.last_transition_time",
            "        began = job.metadata.creation_timestamp",
        ),
    ),
    *faults_of(
        "operator.trainjob",
        (
            "deadline-reason",
            "another reason",
            "fail(after, names.REASON_DEADLINE_EXCEEDED, ",
            'fail(after, "DeadlinePassed", ',
        ),
        (
            "deadline-runs-on",
            "pods outlive the deadline",
            "if not is_stopped(after.conditions):",
            "if after.conditions:",
        ),
        (
            "managed-by",
            "another controller's TrainJob is run",
            (
                "if job.view.spec.managed_by == names.MANAGED_BY_MULTIKUEUE:\n"
                "            return await self._tell_dispatched(key, job.view)\n"
                "        if job.view.spec.managed_by != names.MANAGED_BY_TRAINER:\n"
            ),
            (
                "if not job.view.spec.managed_by:\n"
                "            return await self._tell_dispatched(key, job.view)\n"
                "        if not job.view.spec.managed_by:\n"
            ),
        ),
        (
            "status-unwritten",
            "no status is ever written",
            "        if patch is None or (self._prunes",
            "        if patch or (self._prunes",
        ),
    ),
    *faults_of(
        "operator.ttl",
        (
            "ttl-wrong",
            "a JobSet stays longer",
            "return seconds if isinstance(seconds, int) else None",
            "return seconds + 60 if isinstance(seconds, int) else None",
        ),
        ("ttl-lost", "a JobSet stays for ever", "return seconds if isinstance(seconds, int) else None", "return None"),
    ),
    *faults_of(
        "operator.status",
        (
            "message-lost",
            "conditions without messages",
            '{"reason": "", "message": "", **to_tree(condition)}',
            '{**to_tree(condition), "message": ""}',
        ),
        ("counts-late", "counts ten minutes late", "return UNHURRIED_SECONDS", "return 600.0"),
        (
            "resumed-late",
            "a resume ten minutes late",
            "return RESUMED_SECONDS if _resumes(now, after) else 0.0",
            "return 600.0 if _resumes(now, after) else 0.0",
        ),
        (
            "end-late",
            "conditions ten minutes late",
            "return RESUMED_SECONDS if _resumes(now, after) else 0.0",
            "return 600.0",
        ),
        (
            "counts-stale",
            "counts of the first report stay",
            "if old.jobs_status != after.jobs_status:",
            "if not old.jobs_status:",
        ),
    ),
)

SNAPSHOTS = faults_of(
    "operator.snapshot",
    ("snapshot-key", "the snapshot under another key", '"data": {names.SNAPSHOT_KEY: text}', '"data": {"spec": text}'),
    (
        "snapshot-owner",
        "the snapshot outlives its TrainJob",
        '"ownerReferences": [owned_by(job)],',
        '"ownerReferences": [],',
    ),
    (
        "snapshot-unused",
        "a resumed job takes the runtime as it is now",
        (
            "        known = self._known.get(digest)\n"
            "        if known is not None:\n"
            "            self._known.move_to_end(digest)\n"
            "            return known\n"
        ),
        (
            "        known = await self._runtimes.find(ref, meta.namespace)\n"
            "        if known is not None:\n"
            "            digest.strip()\n"
            "            return known.document\n"
        ),
    ),
    ("snapshot-mutable", "the snapshot can be changed", '"immutable": True,', '"immutable": False,'),
)

OBJECTS = (
    *faults_of(
        "operator.keys",
        (
            "secret-owner",
            "keys outlive their TrainJob",
            '"ownerReferences": [owned_by(job, self._of)],',
            '"ownerReferences": [],',
        ),
    ),
    *faults_of(
        "operator.others",
        (
            "others-unmade",
            "ConfigMaps and groups are not made",
            "is_new=here.jobset is None)\n        for rendered in rendering.objects[:-1]:",
            "is_new=here.jobset is None)\n        for rendered in rendering.objects[:0]:",
        ),
        ("keys-unmade", "keys are not made", "for kept in rendering.kept:", "for kept in rendering.kept[:0]:"),
    ),
    *faults_of(
        "operator.objects",
        (
            "resume-lost",
            "a resumed job stays held",
            "if not (job.view.spec.suspend or jobset.suspended):",
            "if not job.view.spec.suspend:",
        ),
        (
            "suspend-ignored",
            "a job that runs cannot be suspended",
            "if not (job.view.spec.suspend or jobset.suspended):",
            "if not jobset.suspended:",
        ),
        (
            "edits-late",
            "edits of a held job wait for its resume",
            "and self._may_change_again(here, jobset):",
            "and jobset is not None:",
        ),
        (
            "ttl-early",
            "a JobSet may go before its end is told, twice the time",
            "self._settle(here, await self._apply(here, ttl.held(body)))",
            "self._settle(here, await self._apply(here, {**body, 'spec': {**body['spec'], ttl.FIELD: 7}}))",
        ),
    ),
    *faults_of(
        "operator.apply",
        (
            "jobset-not-remade",
            "a JobSet that goes stays gone",
            "jobset is None:\n            return False",
            "jobset is None:\n            return look is not None",
        ),
        (
            "drift",
            "what others change stays changed",
            "return look == _look(job, jobset.meta, look.digest, jobset.status.restarts)",
            "return look.job_uid == job.uid",
        ),
        (
            "apply-manager",
            "applies under another name",
            "obj, field_manager=names.FIELD_MANAGER, force=force",
            'obj, field_manager="trainplane", force=force',
        ),
        (
            "loses-nothing",
            "what a patch no longer says stays",
            'return _loses(ours.get("fieldsV1") or {}, wanted) or not',
            "return not",
        ),
    ),
    *faults_of(
        "operator.adoption",
        (
            "foreign-taken",
            "another's object is taken over",
            "if by is not None and by.uid == job.uid:",
            "if by is None or by.uid == job.uid:",
        ),
    ),
    *faults_of(
        "operator.runtimes",
        (
            "finalizer-kept",
            "a runtime of an older release cannot go",
            "if names.FINALIZER_IN_USE not in finalizers:",
            "if names.FINALIZER_IN_USE in finalizers:",
        ),
    ),
    *faults_of(
        "api.meta",
        (
            "conditions-order",
            "a new condition comes first",
            "return [*conditions, settled]",
            "return [settled, *conditions]",
        ),
    ),
)

FAULTS = (*STATUS, *ENDS, *SNAPSHOTS, *OBJECTS)
