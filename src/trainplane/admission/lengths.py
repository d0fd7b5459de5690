"""Names that a TrainJob's own name goes into, judged before JobSet refuses them one by one, for ever, out of sight.

JobSet makes of TrainJob `T` and replicated job `J`: Jobs `T-J-0`, pods `T-J-0-12-abcde`, claims `volume-T`, and the
label of a coordinator. Each may have 63 characters. How long a TrainJob's name may be therefore depends on its runtime
and its number of nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.jobset import JobSetTemplate
from trainplane.render.errors import RenderError
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.jobset import ReplicatedJob
    from trainplane.api.trainjob import TrainJob
    from trainplane.render.pipeline import Pipeline, Runtime

LONGEST: Final = 63
"""Characters of a DNS label, and of a label's value."""

_PART: Final = re.compile(r"[-a-z0-9]+")
_SUFFIX: Final = "abcde"
"""What a pod's random ending looks like."""
_ROOM: Final = len("-2147483647-") + len(_SUFFIX)
"""The most that a pod's index and ending take."""


@dataclass(frozen=True, slots=True)
class Made:
    """A name made of the TrainJob's: what it is, and how often the TrainJob's name stands in it."""

    what: str
    name: str
    times: int = 1


def judge_names(job: Document[TrainJob], runtime: Runtime, pipeline: Pipeline) -> Iterator[Finding]:
    """Yield a finding if a name that JobSet makes of the TrainJob's would be refused."""
    name = job.view.metadata.name
    template = JobSetTemplate(trees.get(runtime.tree, "spec", "template") or {})
    for one in template.jobs:
        if not _PART.fullmatch(one.name):
            yield Finding(
                "spec.runtimeRef",
                f'the runtime\'s job "{one.name}" cannot be run: Jobs and pods are named after it. '
                "Its name may have small letters, digits and hyphens",
            )
            return
    if not name or (all(_is_short(name, one) for one in template.jobs) and not _has_more_names(template)):
        return
    try:
        rendered = pipeline.plan(job, runtime).template
    except RenderError:
        return  # the pipeline's own validation says what is wrong
    longest = max(_names(name, rendered), key=lambda made: len(made.name), default=None)
    if longest is not None and len(longest.name) > LONGEST:
        yield _finding(name, longest)


def _is_short(name: str, job: ReplicatedJob) -> bool:
    """Return whether no number of nodes could make a name of this job too long."""
    return len(name) + len(job.name) + len(str(max(job.replicas - 1, 0))) + len("--") + _ROOM <= LONGEST


def _has_more_names(template: JobSetTemplate) -> bool:
    return bool(template.get("spec", "volumeClaimPolicies") or template.get("spec", "coordinator"))


def _names(name: str, jobset: JobSetTemplate) -> Iterator[Made]:
    """Yield the longest name of each kind that JobSet makes."""
    for job in jobset.jobs:
        index = max(job.replicas - 1, 0)
        yield Made("Job", f"{name}-{job.name}-{index}")
        completions = job.get("template", "spec", "completions")
        if completions is not None and job.get("template", "spec", "completionMode") in {None, "Indexed"}:
            yield Made("pod", f"{name}-{job.name}-{index}-{completions - 1}-{_SUFFIX}")
    for policy in jobset.get("spec", "volumeClaimPolicies") or []:
        for claim in policy.get("templates") or []:
            yield Made("PersistentVolumeClaim", f"{trees.get(claim, 'metadata', 'name')}-{name}")
    coordinator = jobset.get("spec", "coordinator")
    if coordinator:
        host = f"{name}-{coordinator.get('replicatedJob')}-{coordinator.get('jobIndex', 0)}"
        domain = jobset.subdomain or name
        pod = coordinator.get("podIndex", 0)
        yield Made("coordinator label", f"{host}-{pod}.{domain}", times=1 if jobset.subdomain else 2)


def _finding(name: str, made: Made) -> Finding:
    room = len(name) - -(-(len(made.name) - LONGEST) // made.times)
    becomes = f'{made.what} "{made.name}" would have {len(made.name)} characters, and {LONGEST} are allowed'
    if room < 1:
        return Finding("spec.runtimeRef", f"names in the runtime are too long for any TrainJob: {becomes}")
    return Finding("metadata.name", f"is too long for what it becomes: {becomes}. Use a name of at most {room}")
