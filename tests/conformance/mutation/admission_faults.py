"""Faults in admission: the bad accepted, the good refused, what is stored in another form."""

from __future__ import annotations

from tests.conformance.mutation.fault import faults_of

TRAIN_JOBS = faults_of(
    "admission.trainjobs",
    (
        "manager-any",
        "any manager is accepted",
        "if patch.manager not in known and not _is_domain_path(patch.manager):",
        "if not patch.manager:",
    ),
    ("manager-refused", "a manager is refused that is one", "_PATH.fullmatch(path) is not None", "path.isupper()"),
    (
        "runtime-missing",
        "a TrainJob without a runtime is accepted",
        "return Verdict((_missing(job),)) + own",
        "return own",
    ),
    (
        "deprecated-silent",
        "a deprecated runtime without a word",
        "notes = Verdict(warnings=(deprecation(runtime.tree),))",
        "notes = Verdict()",
    ),
    ("nodes-refused", "two nodes are refused", "trainer.num_nodes < 1:", "trainer.num_nodes < 3:"),
    (
        "procs-refused",
        "two processes are refused",
        "processes < 1 and _counts_processes(runtime):",
        "processes < 3 and _counts_processes(runtime):",
    ),
    ("finished-edits", "edits are not looked at", "    if patched:\n", "    if not patched:\n"),
)

EDITS = faults_of(
    "admission.edits",
    (
        "patched-running",
        "patches of a job that runs are accepted",
        "if not (_is_suspended(new) or _is_suspended(old)):",
        "if new is None:",
    ),
    (
        "patched-active",
        "patches of a job with pods are accepted",
        'if status.get("active", 0) > 0:',
        'if status.get("active", 0) > 99:',
    ),
    (
        "patched-suspended",
        "patches of a suspended job are refused",
        "if not (_is_suspended(new) or _is_suspended(old)):",
        "if not _is_suspended(new):",
    ),
    ("edits-refused", "an edit of labels is refused", "if (now is None) != (before is None):", "if now is not None:"),
    (
        "patched-unseen",
        "an edit of patches is taken for none",
        "return not same(_patches(new), _patches(old))",
        "return False",
    ),
)

RUNTIMES = faults_of(
    "admission.runtimes",
    ("runtime-replicas", "two Jobs that train are accepted", "if job.replicas != 1:", "if job.replicas > 99:"),
    (
        "runtime-container",
        "a trainer without its container is accepted",
        "if job.container(container) is None:",
        "if not job.name:",
    ),
    (
        "runtime-deprecated",
        "a deprecated runtime without a word",
        "if old is None and is_deprecated(new):",
        "if old is not None and is_deprecated(new):",
    ),
    (
        "runtime-edits",
        "an edit into what cannot run is accepted",
        'if old is not None and new.get("kind") == names.TRAINING_RUNTIME:',
        "if old is not None:",
    ),
    (
        "runtime-refused",
        "a runtime is refused that is one",
        "if job.replicas != 1:",
        'if job.replicas != 1 or job.ancestor == "trainer":',
    ),
)

STORED = faults_of(
    "admission.defaulting",
    (
        "time-lost",
        "a patch without its time",
        'return entry if entry.get("time") is not None else {**entry, "time": stamp}',
        "return entry",
    ),
    (
        "time-forged",
        "a new patch's own time is replaced",
        'return entry if entry.get("time") is not None else {**entry, "time": stamp}',
        'return {**entry, "time": stamp}',
    ),
    (
        "time-moves",
        "an unchanged patch gets a new time",
        "if same(_timeless(entry), _timeless(stored)):",
        "if stored is None:",
    ),
    (
        "time-stays",
        "a changed patch keeps its time",
        '        return stored\n    return {**entry, "time": stamp}',
        '        return stored\n    return {**entry, "time": stored.get("time")}',
    ),
    (
        "patches-lost",
        "the first patch alone is stored",
        'return {**spec, "runtimePatches": after}',
        'return {**spec, "runtimePatches": after[:1]}',
    ),
)

TARGETS = (
    *faults_of(
        "render.targets",
        (
            "target-refused",
            "a patch of the training container is refused",
            "if name in present[kind]:",
            'if name in present[kind] and name != "node":',
        ),
        (
            "target-job-refused",
            "a patch of the training job is refused",
            'job = jobs.get(change.get("name", ""))',
            'job = jobs.get(change.get("name", "")) if change.get("name") != "node" else None',
        ),
    ),
    *faults_of(
        "admission.lengths",
        ("name-refused", "a name is refused that fits", "len(longest.name) > LONGEST:", "len(longest.name) > 30:"),
    ),
    *faults_of(
        "render.reserved",
        (
            "reserved-once",
            "one variable of two is named",
            'yield Finding("spec.trainer.env", f',
            'yield Finding("spec.trainer", f',
        ),
    ),
)

FAULTS = (*TRAIN_JOBS, *EDITS, *RUNTIMES, *STORED, *TARGETS)
