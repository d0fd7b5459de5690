"""From one older job to a Migration: read, convert, judge by admission, render both, compare.

    older job ─► draft ─► TrainJob (+ TrainingRuntime) ─► schema, admission ─► pods of both ─► Migration
                  └──────────────── RefusedError, with every reason ────────────────┘

Nothing is promised that was not judged: a result that admission would refuse, or whose pods differ in a way that no
note announces, is refused here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import kinds, v2alpha1
from trainplane.api.legacy import names as old
from trainplane.api.legacy.jaxjob import JAXJob
from trainplane.api.legacy.mpijob import MPIJob, MPIJobV1
from trainplane.api.legacy.paddlejob import PaddleJob
from trainplane.api.legacy.pytorchjob import PyTorchJob
from trainplane.api.legacy.tfjob import TFJob
from trainplane.api.legacy.xgboostjob import XGBoostJob
from trainplane.legacy.decision import Settings
from trainplane.legacy.judgement import problems
from trainplane.legacy.migrate import run_policy, torch
from trainplane.legacy.migrate.draft import begin
from trainplane.legacy.migrate.mpi import take_mpi, take_v1
from trainplane.legacy.migrate.nodes import settle, take_nodes
from trainplane.legacy.migrate.older import migrate_older
from trainplane.legacy.migrate.outcome import Migration, RefusedError
from trainplane.legacy.migrate.pods import pods_of_job
from trainplane.legacy.migrate.proof import judge_form, proven
from trainplane.legacy.migrate.roles import max_restarts, roles_of
from trainplane.legacy.migrate.shipped import FRAMEWORKS, shipped_name
from trainplane.legacy.migrate.tensorflow import take_tensorflow
from trainplane.legacy.mpi.conversion import converted
from trainplane.legacy.mpi.judgement import problems as mpi_problems
from trainplane.render.findings import Finding, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.draft import Draft
    from trainplane.legacy.migrate.roles import Role

TYPES: Final[dict[str, dict[str, type]]] = {
    kinds.PYTORCH.api_version: {
        kinds.PYTORCH.name: PyTorchJob,
        kinds.TENSORFLOW.name: TFJob,
        kinds.XGBOOST.name: XGBoostJob,
        kinds.PADDLE.name: PaddleJob,
        kinds.JAX.name: JAXJob,
        kinds.MPI.name: MPIJobV1,
    },
    kinds.MPI.api_version: {kinds.MPI.name: MPIJob},
}
"""The kinds that are moved, by apiVersion: by its schema a job is judged before anything is made of it."""


def migrate(source: Any, *, gang: str = "", initializers: str = names.INITIALIZERS_IMAGE) -> Migration:
    """Move one older job, or one object of the older TrainJob shape.

    Args:
        source: the object, as a file or an API server has it.
        gang: the scheduler of the old operator's `--gang-scheduler-name`: volcano, coscheduling, or nobody.
        initializers: the image that fetches data, for TrainJobs of the older shape.

    Raises:
        RefusedError: it cannot be moved; every reason that was found.
    """
    try:
        if trees.text(source, "apiVersion") == v2alpha1.API_VERSION:
            return migrate_older(source, initializers=initializers)
        kind, source = _read_source(source)
        job = _served(kind, source)
        _judge(kind, job)
        draft = _draft(kind, job, gang)
        if job is not source:
            take_v1(trees.fields(source, "spec"), draft)
        notes_of_names(source, draft)
        return proven(draft, lambda: pods_of_job(kind, job, joined=len(draft.order) == 1))
    except RecursionError as error:
        raise RefusedError([Finding("spec", "is nested too deep to be read")]) from error


def _read_source(source: Any) -> tuple[Kind, Tree]:
    """Return a job's kind, and the job as an API server would have it."""
    name = trees.text(source, "kind") or ""
    type_ = TYPES.get(trees.text(source, "apiVersion") or "", {}).get(name)
    if type_ is None:
        known = ", ".join(kinds.KINDS)
        problem = f"must be {known}, TrainJob or a runtime, of group {old.GROUP} and a version that it has"
        raise RefusedError([Finding("kind", problem)])
    source = trees.drop(trees.without_nulls(source), "status")
    judge_form(source, type_)
    return kinds.KINDS[name], source


def _served(kind: Kind, source: Tree) -> Tree:
    """Return a job in the version in which its kind is served; what is only kept for the way back is left out."""
    if source["apiVersion"] == kind.api_version:
        return source
    turned = converted({**source, "metadata": {}}, kind.api_version)
    return {**turned, "metadata": trees.fields(source, "metadata")}


def _judge(kind: Kind, job: Tree) -> None:
    """Judge a job as it is judged where it is served: what has no pods there has none here."""
    found = mpi_problems(job) if kind is kinds.MPI else problems(kind, job, None, Settings())
    if found:
        raise RefusedError(found)


def _draft(kind: Kind, source: Tree, gang: str) -> Draft:
    framework = FRAMEWORKS[kind.name]
    draft = begin(kind, source, framework=framework, shipped=shipped_name(framework))
    spec = trees.fields(source, "spec")
    roles = roles_of(kind, source, draft)
    backoff = trees.number(spec, "runPolicy", "backoffLimit")
    draft.max_restarts = max_restarts(roles, backoff)
    if kind is kinds.MPI:
        take_mpi(spec, roles, draft, backoff=backoff)
    elif kind is kinds.TENSORFLOW:
        take_tensorflow(spec, roles, draft, backoff=backoff)
    elif kind is kinds.PYTORCH:
        _take_torch(spec, roles, draft, backoff)
    else:
        take_nodes(roles, draft, backoff=backoff)
    if kind is kinds.PADDLE:
        _take_paddle_elastic(spec, draft)
    pods = sum(role.count for role in roles)
    run_policy.take_run_policy(trees.fields(spec, "runPolicy"), draft, gang=gang or _gang_of(roles), pods=pods)
    settle(draft)
    return draft


def _take_torch(spec: Tree, roles: list[Role], draft: Draft, backoff: int | None) -> None:
    processes = torch.processes_of(spec)
    take_nodes(roles, draft, backoff=backoff, nproc=processes)
    torch.take_elastic(spec.get("elasticPolicy"), roles, draft)
    torch.take_processes(spec, processes, draft)


def _take_paddle_elastic(spec: Tree, draft: Draft) -> None:
    for field in sorted(trees.fields(spec, "elasticPolicy")):
        text = "the nodes of a TrainJob with Paddle are fixed: trainer.numNodes says how many"
        draft.note(f"spec.elasticPolicy.{field[:63]}", "left out", text)


def _gang_of(roles: list[Role]) -> str:
    """Return the gang scheduler that the pods name; the old operator wrote it there itself if they named none."""
    schedulers = {trees.text(role.template, "spec", "schedulerName") for role in roles}
    if run_policy.VOLCANO in schedulers:
        return run_policy.VOLCANO
    return run_policy.COSCHEDULING if "scheduler-plugins-scheduler" in schedulers else ""


def notes_of_names(source: Tree, draft: Draft) -> None:
    """Note where a job speaks of its pods by their old names: nobody has those any more."""
    types = "|".join(one.lower() for one in draft.kind.types)
    pattern = re.compile(rf"\b{re.escape(draft.name)}-(?:{types})-\d")
    for path, text in _texts(trees.fields(source, "spec"), ("spec",)):
        if pattern.search(text):
            first = names.pod_hostname(draft.name, draft.order[0], 0, 0)
            problem = f"speaks of a pod by its old name: the first one is {first}.{draft.name} now. Write that there"
            draft.note(written(path), "changed", problem)


def _texts(tree: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from _texts(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _texts(value, (*path, index))
