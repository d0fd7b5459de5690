"""The proof of a result: its form, admission's word, and its pods beside those that it stands for.

Nothing is promised that was not judged: a result that the schema or admission would refuse, or whose pods differ in a
way that no note announces, is refused here.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from trainplane.admission import default_trainjob, validate_runtime, validate_trainjob
from trainplane.admission.schema_validation import judge
from trainplane.api import document, names
from trainplane.api.crds.schema import schema_of
from trainplane.api.errors import DecodeError
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.legacy.migrate.comparison import compare
from trainplane.legacy.migrate.outcome import Migration, RefusedError
from trainplane.legacy.migrate.pods import pods_of_trainjob
from trainplane.legacy.migrate.shipped import shipped_runtime
from trainplane.render.findings import MOST_FINDINGS, Finding, written
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.draft import Draft
    from trainplane.legacy.migrate.pods import Pod
    from trainplane.render.plan import Runtime

_NOW: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The time that admission stamps on patches: of no account, for the API server's stamps are taken."""
_SAMPLE: Final = {"namespace": "default", "uid": "00000000-0000-0000-0000-000000000000"}
"""What an API server adds to an object."""


def proven(draft: Draft, before: Callable[[], list[Pod]]) -> Migration:
    """Return the result of a draft, judged; `before` returns the pods of the job whose place it takes.

    Those are made last: of a job that nobody would admit, there may be too many.

    Raises:
        RefusedError: it would not be admitted, or its pods would be others.
    """
    trainjob, own = draft.trainjob(), draft.runtime()
    after = pods_of_trainjob(rendered(trainjob, own or shipped_runtime(draft.framework)), draft.order)
    differences = compare(before(), after)
    announced = frozenset[str]().union(*(note.alters for note in draft.notes))
    surprises = [one for one in differences if one.field not in announced]
    if surprises:
        raise RefusedError(Finding("spec", f"the TrainJob's pods would not be the same: {one}") for one in surprises)
    objects = (trainjob,) if own is None else (own, trainjob)
    return Migration(draft.kind.name, objects, tuple(draft.notes), tuple(differences), len(after))


def rendered(trainjob: Tree, runtime: Tree) -> Tree:
    """Return the JobSet that a TrainJob becomes on a runtime, after all that an API server asks of both.

    Raises:
        RefusedError: one of the two would be refused; every reason that was found.
    """
    judge_form(trainjob, TrainJob)
    judge_runtime(runtime)
    spec = {"suspend": False, "managedBy": names.MANAGED_BY_TRAINER, **trainjob["spec"]}
    stored = {**trainjob, "metadata": {**_SAMPLE, **trainjob["metadata"]}, "spec": spec}
    pipeline, read = _pipeline(), _read(runtime)
    try:
        admitted = default_trainjob(stored, None, now=_NOW, runtime=read).tree
        verdict = validate_trainjob(admitted, None, runtime=read, runtime_source="live", jobset=None, pipeline=pipeline)
        _refuse(names.TRAIN_JOB, verdict.errors)
        jobset: Tree = pipeline.render(document.read(admitted, TrainJob), read).jobset.tree
    except DecodeError as error:
        raise RefusedError([Finding(f"the TrainJob's {error.path}", error.problem)]) from error
    return jobset


def judge_runtime(runtime: Tree) -> None:
    """Judge a runtime by its schema and by admission.

    Raises:
        RefusedError: an API server would refuse it.
    """
    judge_form(runtime, ClusterTrainingRuntime if _is_clusters(runtime) else TrainingRuntime)
    _refuse(runtime["kind"], validate_runtime(runtime, None).errors)


def judge_form(tree: Tree, kind: type) -> None:
    """Judge an object by its schema.

    Raises:
        RefusedError: it has another form; every part that has.
    """
    found = [Finding(written(one.path), one.text) for one in judge(tree, _schema(kind))]
    _refuse("" if tree["apiVersion"] != names.API_VERSION else tree["kind"], found)


def _refuse(kind: str, errors: Any) -> None:
    """Refuse for errors, if there are any; those of the result say whose field they mean."""
    whose = f"the {kind}'s " if kind else ""
    found = [Finding(f"{whose}{one.path}", one.problem, one.cause) for one in errors]
    if found:
        raise RefusedError(found[:MOST_FINDINGS])


def _is_clusters(runtime: Tree) -> bool:
    return bool(runtime["kind"] == names.CLUSTER_TRAINING_RUNTIME)


def _read(runtime: Tree) -> Runtime:
    if _is_clusters(runtime):
        return document.read(runtime, ClusterTrainingRuntime)
    return document.read(runtime, TrainingRuntime)


@functools.cache
def _pipeline() -> Pipeline:
    """Return the plugins that are installed here; a list of jobs is judged by the same."""
    return Pipeline.default()


@functools.cache
def _schema(kind: type) -> Tree:
    return schema_of(kind)
