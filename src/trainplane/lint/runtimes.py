"""Is this file good to install? Every rule that a runtime meets in its life, before it is in a cluster, with lines.

    form        YAML; the CRD's schema; names, labels and annotations as the API server wants them
    meaning     admission's rules; what JobSet and pods refer to is there
    plugins     a TrainJob that leaves all to the runtime is judged and rendered on it
    SDK         what keeps the official SDK from showing the runtime: warnings

What comes later is judged only where the form lets it be read. Nothing is fetched: that images, claims and priority
classes are there is not known.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from trainplane.admission.runtimes import validate_runtime
from trainplane.admission.schema_validation import Problem, judge
from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.crds.schema import schema_of
from trainplane.api.jobset import JobSetTemplate
from trainplane.api.objectname import is_object_name
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.lint.yaml_lines import UnreadableError, read
from trainplane.render.findings import written
from trainplane.render.pipeline import Pipeline
from trainplane.render.references import POD
from trainplane.render.refused import OF_RUNTIME, faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.admission.schema_validation import Path
    from trainplane.api.tree import Tree
    from trainplane.lint.yaml_lines import YamlDocument
    from trainplane.render.findings import Finding
    from trainplane.render.plan import Runtime

_KINDS: Final = {names.TRAINING_RUNTIME: TrainingRuntime, names.CLUSTER_TRAINING_RUNTIME: ClusterTrainingRuntime}
_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Final = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
"""What an author writes in an object's metadata."""
_SERVERS: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"}
)
"""What the API server writes there; a file that was taken from a cluster has it."""
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True, order=True)
class Remark:
    """Something to say about a line of the file."""

    line: int
    """From 1."""
    path: str
    """The field; empty for the document as a whole."""
    problem: str
    severity: Literal["error", "warning"] = "error"
    """An error keeps the runtime, or every TrainJob on it, from working; a warning something else."""

    def __str__(self) -> str:
        field = f"{self.path}: " if self.path else ""
        return f"line {self.line}: {self.severity}: {field}{self.problem}"


def validate(text: str, *, pipeline: Pipeline | None = None) -> list[Remark]:
    """Return what is to be said about a file of runtimes, in the order of its lines; empty if it is good.

    `pipeline` has the plugins to judge by; without one, those that are installed here.
    """
    remarks: list[Remark] = []
    found: list[YamlDocument] = []
    try:
        found += (one for one in read(text) if not _is_of_others(one.tree))
    except UnreadableError as error:
        remarks.append(Remark(error.line, "", error.problem))
    if not found and not remarks:
        remarks.append(Remark(1, "", f"there is no {' and no '.join(_KINDS)} in this file"))
    for one in found:
        remarks += _judge(one, pipeline or Pipeline.default())
    return sorted(set(remarks))


@functools.cache
def _schema(kind: str) -> dict[str, Any]:
    return schema_of(_KINDS[kind])


def _is_of_others(tree: object) -> bool:
    """Return whether a document is an object of another kind, such as a TrainJob beside its runtime."""
    return isinstance(tree, dict) and isinstance(tree.get("kind"), str) and "runtime" not in tree["kind"].lower()


def _judge(one: YamlDocument, pipeline: Pipeline) -> Iterator[Remark]:
    tree = one.tree
    for path, line in one.repeated:
        yield Remark(line, written(path), "is there twice: the first one is lost")
    kind = tree.get("kind") if isinstance(tree, dict) else None
    if kind not in _KINDS or tree.get("apiVersion") != names.API_VERSION:
        wanted = f"must be apiVersion {names.API_VERSION} and kind {' or '.join(_KINDS)}"
        yield Remark(one.line_of(("kind",)), "kind", wanted)
        return
    problems = [*judge(tree, _schema(kind)), *_judge_metadata(tree)]
    for problem in problems:
        yield Remark(one.line_of(problem.path), written(problem.path), problem.text)
    if not any(problem.is_misshapen for problem in problems):
        yield from _judge_meaning(one)
    if not problems:
        yield from _judge_use(one, kind, pipeline)


def _judge_metadata(tree: Tree) -> Iterator[Problem]:
    """Yield problems of what the API server checks in every object and no CRD says."""
    metadata = tree.get("metadata", {})
    if not isinstance(metadata, dict):
        return  # the schema says so
    authors = {key: value for key, value in metadata.items() if key not in _SERVERS}
    yield from judge(authors, _METADATA, ("metadata",))
    name = metadata.get("name")
    if isinstance(name, str) and not is_object_name(name):
        yield Problem(("metadata", "name"), f"{name!r} is no name: write small letters, digits, - and .")
    if tree["kind"] == names.CLUSTER_TRAINING_RUNTIME and metadata.get("namespace"):
        yield Problem(("metadata", "namespace"), "a ClusterTrainingRuntime has no namespace: leave it out")
    for place, values in (("labels", _VALUE), ("annotations", None)):
        entries = metadata.get(place)
        for key, value in entries.items() if isinstance(entries, dict) else ():
            if not _KEY.fullmatch(key):
                yield Problem(("metadata", place, key), f"{key!r} is no key: write one such as example.com/team")
            elif values and isinstance(value, str) and not values.fullmatch(value):
                problem = f"{value!r} is no value of a label: write up to 63 letters, digits, -, _ and ."
                yield Problem(("metadata", place, key), problem)


def _judge_meaning(one: YamlDocument) -> Iterator[Remark]:
    verdict = validate_runtime(one.tree, None)
    for finding in verdict.errors:
        yield Remark(one.line_of(steps(finding.path)), finding.path, finding.problem)
    for warning in verdict.warnings:
        yield Remark(one.line_of(()), "", warning, "warning")
    yield from _judge_template(one)


def _judge_template(one: YamlDocument) -> Iterator[Remark]:
    """Yield what JobSet or the API server would refuse in every TrainJob; an image for training may come with one."""
    template = trees.get(one.tree, "spec", "template") or {}
    brought = set(_missing_images(template))
    for path, problem in faults(template):
        if path not in brought:
            where: Path = ("spec", "template", *path)
            yield Remark(one.line_of(where), written(where), problem)


def _missing_images(template: Tree) -> Iterator[Path]:
    """Yield where a template has no image for training, so that a TrainJob has to bring one."""
    for index, job in enumerate(JobSetTemplate(template).jobs):
        for place, container in enumerate(job.containers):
            trains = job.ancestor == names.ANCESTOR_TRAINER and container.name == names.CONTAINER_NODE
            if trains and not container.image:
                yield ("spec", "replicatedJobs", index, *POD, "containers", place, "image")


def _judge_use(one: YamlDocument, kind: str, pipeline: Pipeline) -> Iterator[Remark]:
    """Yield what plugins and the SDK say of a runtime whose form is right."""
    tree = one.tree
    runtime: Runtime = document.read(tree, _KINDS[kind])  # type: ignore[assignment] # one of the two
    verdict = pipeline.validate(document.read(_sample(tree), TrainJob), None, runtime)
    for finding in verdict.errors:
        if not finding.problem.startswith(OF_RUNTIME):  # `_judge_template` has said it, with its line
            path = _of_runtime(finding, tree)
            yield Remark(one.line_of(path), written(path), finding.problem)
    for warning in verdict.warnings:
        yield Remark(one.line_of(()), "", warning, "warning")
    for path, problem in _judge_for_sdk(tree):
        yield Remark(one.line_of(path), written(path), problem, "warning")


def _sample(runtime: Tree) -> Tree:
    """Return a TrainJob that leaves all to the runtime, but for an image if that has none."""
    trainer = {"image": "sample"} if any(_missing_images(trees.get(runtime, "spec", "template") or {})) else {}
    reference = {"apiGroup": names.GROUP, "kind": runtime["kind"], "name": runtime["metadata"].get("name", "")}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TRAIN_JOB,
        "metadata": {"name": "sample", "namespace": "sample", "uid": "sample"},
        "spec": {"runtimeRef": reference, "trainer": trainer},
    }


def _of_runtime(finding: Finding, tree: Tree) -> Path:
    """Return the part of the runtime that a finding about a TrainJob means: an annotation that it names, or all."""
    for key in trees.get(tree, "metadata", "annotations") or ():
        if key in finding.problem:
            return ("metadata", "annotations", key)
    return ("spec",)


def _judge_for_sdk(tree: Tree) -> Iterator[tuple[Path, str]]:
    """Yield what the official SDK stumbles over, and what a TrainJob then cannot set."""
    if not trees.get(tree, "metadata", "labels", names.LABEL_FRAMEWORK):
        yield ("metadata", "labels"), f"without the label {names.LABEL_FRAMEWORK} the SDK does not list this runtime"
    if trees.get(tree, "spec", "mlPolicy") is None:
        yield ("spec",), "without mlPolicy the SDK lists no runtime at all: write at least `mlPolicy: {}`"
    template = JobSetTemplate(trees.get(tree, "spec", "template") or {})
    at: Path = ("spec", "template", "spec", "replicatedJobs")
    if not template.jobs_of(names.ANCESTOR_TRAINER):
        problem = f"no job has the label {names.LABEL_ANCESTOR}: {names.ANCESTOR_TRAINER} in its template.metadata"
        yield at, f"{problem}, so spec.trainer of a TrainJob has no effect"
    for path in _missing_images(trees.get(tree, "spec", "template") or {}):
        problem = "has no image: every TrainJob must bring one, and the SDK does not list this runtime"
        yield ("spec", "template", *path[:-1]), problem


def steps(path: str) -> Path:
    """Return a path as it is written in messages as steps: `a.b[0]` is a, b, 0."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(path))
