"""May this TrainJob exist?

`validate_trainjob` gets everything it needs to know as values; fetching them is the operator's. What it judges has
passed the schema, and on an update is in today's form, thanks to `defaulting`.

- A **create** is judged whole: is there such a runtime, can it run this, do the names fit.
- An **update** is judged for what it changes, against the runtime as the TrainJob's snapshot has it. Suspending,
  resuming, labels and finalizers are never held up by a runtime that changed or went away since.
- A TrainJob that is being deleted is not judged: its finalizers must come off.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from trainplane.admission import edits
from trainplane.admission.after import judge_after
from trainplane.admission.allowed import judge_allowed
from trainplane.admission.conversion import convert
from trainplane.admission.immutability import judge_immutable
from trainplane.admission.kueue import judge_entry
from trainplane.admission.lengths import judge_names
from trainplane.admission.quota import judge_counted
from trainplane.admission.runtimes import deprecation, is_deprecated
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.document import read
from trainplane.api.errors import DecodeError
from trainplane.api.jobset import JobSetTemplate
from trainplane.api.objectname import is_object_name
from trainplane.api.trainjob import TrainJob
from trainplane.lifecycle.conditions import conditions_of, is_finished
from trainplane.render.findings import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.document import Document
    from trainplane.api.tree import Tree
    from trainplane.render.pipeline import Pipeline, Runtime

RuntimeSource = Literal["live", "snapshot"]
"""Where the runtime that a TrainJob is judged by came from."""

_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_RUNTIME_KINDS: Final = (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME)


def validate_trainjob(
    new: Tree,
    old: Tree | None,
    *,
    runtime: Runtime | None,
    runtime_source: RuntimeSource | None,
    jobset: Tree | None,
    pipeline: Pipeline,
    allowed_patches: Sequence[str] | None = None,
) -> Verdict:
    """Judge a TrainJob.

    Args:
        new: what would be stored.
        old: what is stored, on an update.
        runtime: on a create the live runtime; on an update the one of the TrainJob's snapshot, or if there is none the
            live one. None if there is neither.
        runtime_source: which of the two it is.
        jobset: the TrainJob's JobSet, on an update, if it exists.
        pipeline: what TrainJobs are rendered with; its plugins judge too.
        allowed_patches: the fields that an admin lets `runtimePatches` set; None lets them set any.
    """
    try:
        job = read(new, TrainJob)
        before = None if old is None else read(convert(old).tree, TrainJob)
    except DecodeError as error:
        return Verdict((Finding(error.path, error.problem),))
    if before is not None and job.view.metadata.deletion_timestamp:
        return Verdict()
    notes = Verdict()
    if runtime and is_deprecated(runtime.tree):
        notes = Verdict(warnings=(deprecation(runtime.tree),))
    beyond = Verdict.of(judge_allowed(job.tree, None if before is None else before.tree, allowed_patches))
    if before is None:
        return notes + beyond + _validate_create(job, runtime, pipeline)
    notes += Verdict.of(edits.judge_output(job.tree, before.tree))
    if edits.changes_only_suspend(job.tree, before.tree):
        return notes
    notes += beyond
    return notes + _validate_update(job, before, runtime, source=runtime_source, jobset=jobset, pipeline=pipeline)


def _validate_create(job: Document[TrainJob], runtime: Runtime | None, pipeline: Pipeline) -> Verdict:
    own = Verdict.of([*_judge_managers(job, None), *judge_entry(job.tree, None), *judge_after(job.tree)])
    if runtime is None:
        return Verdict((_missing(job),)) + own
    numbers = Verdict.of(_judge_numbers(job, None, runtime))
    own += numbers + Verdict.of(_judge_command(job, runtime))
    own += Verdict.of([*judge_names(job, runtime, pipeline), *judge_counted(job.tree, runtime)])
    return own + _beyond(numbers, pipeline.validate(job, None, runtime))


def _validate_update(
    job: Document[TrainJob],
    before: Document[TrainJob],
    runtime: Runtime | None,
    *,
    source: RuntimeSource | None,
    jobset: Tree | None,
    pipeline: Pipeline,
) -> Verdict:
    verdict = Verdict.of([*edits.judge_fixed(job.tree, before.tree), *_judge_managers(job, before)])
    patched = edits.changes_patches(job.tree, before.tree)
    if patched:
        verdict += Verdict.of(judge_entry(job.tree, before.tree))
        verdict += Verdict.of(edits.judge_moment(job.tree, before.tree, jobset))
    if runtime is None:
        return verdict + Verdict(warnings=(f"nothing can be made of this TrainJob: {_missing(job).problem}",))
    numbers = Verdict.of(_judge_numbers(job, before, runtime))
    verdict += numbers + _beyond(numbers, pipeline.validate(job, before, runtime))
    if patched and verdict.allowed and jobset is not None and not is_finished(conditions_of(before.tree)):
        verdict += Verdict.of(judge_immutable(job, before, runtime, jobset, pipeline))
    if source == "snapshot" and not verdict.allowed:
        verdict += Verdict(warnings=(_by_snapshot(job),))
    return verdict


def _beyond(said: Verdict, verdict: Verdict) -> Verdict:
    """Return what a verdict says of other fields than another: a number that is none is refused once."""
    told = {finding.path for finding in said.errors}
    return Verdict(tuple(finding for finding in verdict.errors if finding.path not in told), verdict.warnings)


def _missing(job: Document[TrainJob]) -> Finding:
    """Return why there is no runtime: no such kind, or none of that name."""
    ref = job.view.spec.runtime_ref
    if ref.api_group != names.GROUP or ref.kind not in _RUNTIME_KINDS:
        kind = names.runtime_key(ref.api_group, ref.kind)
        return Finding(
            "spec.runtimeRef",
            f'"{kind}" is no kind of runtime: write kind {" or ".join(_RUNTIME_KINDS)}, and apiGroup {names.GROUP}',
        )
    where = f" in namespace {job.view.metadata.namespace}" if ref.kind == names.TRAINING_RUNTIME else ""
    return Finding(
        "spec.runtimeRef",
        f'there is no {ref.kind} "{ref.name}"{where}: create it first, or name one that `kubectl get '
        f"{ref.kind.lower()}s` lists",
        "NotFound",
    )


def _judge_managers(job: Document[TrainJob], before: Document[TrainJob] | None) -> Iterator[Finding]:
    known = {patch.manager for patch in before.view.spec.runtime_patches} if before else set()
    for index, patch in enumerate(job.view.spec.runtime_patches):
        if patch.manager not in known and not _is_domain_path(patch.manager):
            yield Finding(
                f"spec.runtimePatches[{index}].manager",
                f'"{patch.manager}" is no path that begins with a domain: write one such as example.com/team',
            )


def _is_domain_path(text: str) -> bool:
    domain, _, path = text.partition("/")
    return is_object_name(domain) and _PATH.fullmatch(path) is not None


def _judge_numbers(job: Document[TrainJob], before: Document[TrainJob] | None, runtime: Runtime) -> Iterator[Finding]:
    """Yield findings for counts that no training can have. What is stored already is let be."""
    trainer = job.view.spec.trainer
    known = before.view.spec.trainer if before else None
    if trainer is None or trainer == known:
        return
    if trainer.num_nodes is not None and trainer.num_nodes < 1:
        yield Finding("spec.trainer.numNodes", f"must be 1 or more, not {trainer.num_nodes}: it is a number of pods")
    processes = trainer.num_proc_per_node
    if known and processes == known.num_proc_per_node:
        return
    if isinstance(processes, str):
        yield Finding("spec.trainer.numProcPerNode", _not_a_number(processes))
    elif processes is not None and processes < 1 and _counts_processes(runtime):
        yield Finding(
            "spec.trainer.numProcPerNode",
            f"must be 1 or more, not {processes}: leave it out for one process per GPU, or per CPU without GPUs",
        )


def _judge_command(job: Document[TrainJob], runtime: Runtime) -> Iterator[str]:
    """Yield a warning if nobody says what to run: an image of a framework mostly starts a shell, which ends at once."""
    trainer = job.view.spec.trainer
    if trainer is not None and (trainer.command or trainer.args or trainer.image):
        return
    template = JobSetTemplate(trees.get(runtime.tree, "spec", "template") or {})
    for trains in template.jobs_of(names.ANCESTOR_TRAINER):
        container = trains.container(names.CONTAINER_NODE)
        if container and not container.command and not container.args:
            yield (
                "spec.trainer.command: neither this TrainJob nor its runtime says what to run, so each node runs what "
                f"the image starts by itself, which may train nothing: {container.image}"
            )
            return


def _not_a_number(text: str) -> str:
    if text == "gpu":
        return (
            "gpu means one process per GPU, but neither spec.trainer.resourcesPerNode nor the runtime asks for a GPU: "
            "ask for GPUs there, or write the number of processes"
        )
    return (
        f'"{text}" is no number: write how many processes each node runs, or leave it out for one per GPU, '
        "or per CPU without GPUs"
    )


def _counts_processes(runtime: Runtime) -> bool:
    """Return whether the runtime's framework is told how many processes a node runs."""
    policy = runtime.view.spec.ml_policy
    return bool(policy and (policy.torch or policy.mpi or policy.flux))


def _by_snapshot(job: Document[TrainJob]) -> str:
    name = job.view.metadata.name
    return (
        f"TrainJob {name} is judged by the runtime as it was when it began (ConfigMap {names.snapshot_name(name)}), "
        "not as it is today"
    )
