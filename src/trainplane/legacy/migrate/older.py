"""TrainJobs and runtimes of the older shape, `kubeflow.org/v2alpha1`: what they are served as, as objects of their own.

They are lowered to today's objects when they are served (`legacy.older`), so moving one is writing down what it is
lowered to, without the owner, and with names that people chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.admission.conversion import convert
from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.errors import DecodeError
from trainplane.api.legacy import v2alpha1
from trainplane.api.objectname import is_object_name
from trainplane.api.trainjob import TrainJob
from trainplane.legacy.migrate.comparison import compare
from trainplane.legacy.migrate.outcome import Migration, Note, RefusedError
from trainplane.legacy.migrate.pods import pods_of_trainjob
from trainplane.legacy.migrate.proof import judge_form, judge_runtime, rendered
from trainplane.legacy.older.lowering import ANNOTATION_DIGEST, judge, lower_runtime, lower_train_job, settled
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

TYPES: Final[dict[str, type]] = {
    names.TRAIN_JOB: v2alpha1.TrainJob,
    names.TRAINING_RUNTIME: v2alpha1.TrainingRuntime,
    names.CLUSTER_TRAINING_RUNTIME: v2alpha1.ClusterTrainingRuntime,
}
_BECOMES: Final = {
    "numNodes": "as trainer.numNodes",
    "datasetConfig": "as initializer.dataset",
    "podSpecOverrides": "as runtimePatches",
    "labels": "as runtimePatches",
    "annotations": "as runtimePatches",
}
_ORDER: Final = (names.JOB_DATASET, names.JOB_MODEL, names.JOB_NODE)


def migrate_older(source: Tree, *, initializers: str) -> Migration:
    """Move an object of the older shape.

    Raises:
        RefusedError: it is none, or what it becomes would be refused.
    """
    kind = TYPES.get(trees.text(source, "kind") or "")
    if kind is None:
        raise RefusedError([Finding("kind", f"must be {', '.join(TYPES)} in {v2alpha1.API_VERSION}")])
    source = trees.drop(trees.without_nulls(source), "status")
    judge_form(source, kind)
    for key in ("name", "namespace"):
        said = trees.get(source, "metadata", key)
        if not (is_object_name(said) if isinstance(said, str) else said is None and key == "namespace"):
            problem = "must be there and a name: small letters, digits, - and ."
            raise RefusedError([Finding(f"metadata.{key}", problem, "Required")])
    try:
        return _moved_job(source, initializers) if kind is v2alpha1.TrainJob else _moved_runtime(source, kind)
    except DecodeError as error:
        raise RefusedError([Finding(error.path, error.problem)]) from error


def _moved_runtime(source: Tree, kind: type) -> Migration:
    lowered = lower_runtime(document.read(source, kind))
    runtime = _by_itself(lowered, source["metadata"]["name"])
    judge_runtime(runtime)
    text = "the runtime is the same under today's apiVersion; TrainJobs name it with apiGroup trainer.kubeflow.org"
    return Migration(source["kind"], (runtime,), (Note("spec", "carried"), Note("apiVersion", "changed", text)))


def _moved_job(source: Tree, initializers: str) -> Migration:
    job = document.read(source, v2alpha1.TrainJob)
    problems = judge(job)
    if problems:
        raise RefusedError(problems)
    ref = job.view.spec.runtime_ref
    meant = None if ref is None else settled(ref, is_older=False)
    lowered = lower_train_job(job, meant, initializers=initializers)
    trainjob = convert(_by_itself(lowered.train_job, job.view.metadata.name)).tree
    notes = [*_notes(source)]
    if lowered.runtime is None:
        text = "names a runtime that is not looked at here: it must be there as one of trainer.kubeflow.org"
        notes.append(Note("spec.runtimeRef", "changed", text))
        judge_form(trainjob, TrainJob)
        return Migration(names.TRAIN_JOB, (trainjob,), tuple(notes))
    runtime = _by_itself(lowered.runtime, job.view.metadata.name)
    runtime = trees.put(runtime, "metadata", "labels", names.LABEL_FRAMEWORK, value="torch")
    trainjob = trees.put(trainjob, "spec", "runtimeRef", "name", value=job.view.metadata.name)
    before = pods_of_trainjob(rendered(_unowned(lowered.train_job), _unowned(lowered.runtime)), _ORDER)
    after = pods_of_trainjob(rendered(trainjob, runtime), _ORDER)
    differences = compare(before, after)
    if differences:
        raise RefusedError(Finding("spec", f"the TrainJob's pods would not be the same: {one}") for one in differences)
    text = "made for this TrainJob as a TrainingRuntime of its name, which further TrainJobs may use"
    notes.append(Note("spec.runtimeRef", "changed", text))
    return Migration(names.TRAIN_JOB, (runtime, trainjob), tuple(notes), pods=len(after))


def _notes(source: Tree) -> Iterator[Note]:
    for field in sorted(source["spec"].keys() - {"runtimeRef", "modelConfig"}):
        yield Note(f"spec.{field}", "carried", _BECOMES.get(field, ""))
    config = trees.fields(source, "spec", "modelConfig")
    if "input" in config:
        yield Note("spec.modelConfig.input", "carried", "as initializer.model")
    if "output" in config:
        yield Note("spec.modelConfig.output", "carried", f"as the annotation {names.ANNOTATION_OUTPUT}")


def _by_itself(lowered: Tree, name: str) -> Tree:
    """Return what an object was lowered to as one of its own: without owner and digest, by the name that it had."""
    tree: Tree = trees.put(_unowned(lowered), "metadata", "name", value=name)
    return tree


def _unowned(lowered: Tree) -> Tree:
    tree: Tree = trees.drop(lowered, "metadata", "ownerReferences")
    tree = trees.drop(tree, "metadata", "annotations", ANNOTATION_DIGEST)
    metadata = {key: value for key, value in tree["metadata"].items() if value}
    return {**tree, "metadata": metadata}
