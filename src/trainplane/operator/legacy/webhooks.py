"""Admission of jobs of older kinds over HTTP, and the conversion of MPIJobs between their two versions.

What may be is decided by `legacy` alone: nothing is read for it, so nothing can be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.admission.jsonpatch import json_patch
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import MPI
from trainplane.kube.admission import allow, mutate
from trainplane.legacy import judgement
from trainplane.legacy.mpi import judgement as mpi_judgement
from trainplane.legacy.mpi import review as conversion
from trainplane.operator.budget import Budget
from trainplane.operator.reviews import answer_of, named, new_of, old_of, refusing
from trainplane.render.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.kube.admission import AdmissionRequest
    from trainplane.kube.admission import Verdict as Answer
    from trainplane.kube.webhook import Conversion, Review
    from trainplane.legacy.decision import Settings
    from trainplane.render.findings import Finding

_WRITTEN = frozenset({"CREATE", "UPDATE"})


def routes(kinds: Iterable[Kind], settings: Settings) -> Mapping[str, Review]:
    """Return the handlers for a webhook server."""
    reviews: dict[str, Review] = {}
    for kind in kinds:
        judge = _Judge(kind, settings)
        reviews[kind.review_path("mutate")] = refusing(judge.default)
        reviews[kind.review_path("validate")] = refusing(judge.validate)
    return reviews


def conversions(kinds: Iterable[Kind]) -> Mapping[str, Conversion]:
    """Return the conversions for a webhook server."""
    return {names.CONVERT_PATH: _convert} if MPI in kinds else {}


def _convert(review: Any) -> Tree:
    with Budget("a list of MPIJobs"):
        return conversion.answered(review)


class _Judge:
    """Reviews jobs of one kind."""

    def __init__(self, kind: Kind, settings: Settings) -> None:
        self._kind = kind
        self._settings = settings

    def default(self, request: AdmissionRequest) -> Answer:
        """Fill in what a job leaves out."""
        if request.operation not in _WRITTEN:
            return allow()
        job = new_of(request)
        with Budget(named(request)):
            return mutate(json_patch(job, self._defaulted(job)))

    def validate(self, request: AdmissionRequest) -> Answer:
        """Return whether a job may be as it is, and what its author should know."""
        if request.operation not in _WRITTEN:
            return allow()
        new, old = new_of(request), old_of(request)
        with Budget(named(request)):
            verdict = Verdict.of([*self._problems(new, old), *(self._warnings(new) if _is_news(new, old) else ())])
        return answer_of(verdict, self._kind.name)

    def _defaulted(self, job: Tree) -> Tree:
        return mpi_judgement.default(job) if self._kind is MPI else judgement.default(self._kind, job)

    def _problems(self, new: Tree, old: Tree | None) -> Iterable[Finding]:
        if self._kind is MPI:
            return mpi_judgement.problems(new, old, self._settings)
        return judgement.problems(self._kind, new, old, self._settings)

    def _warnings(self, job: Tree) -> Iterable[str]:
        return mpi_judgement.warnings(job) if self._kind is MPI else judgement.warnings(self._kind, job)


def _is_news(new: Tree, old: Tree | None) -> bool:
    """Return whether a job's author hears warnings: not Kueue with each resume, nor who labels a job."""
    return old is None or new.get("spec") != old.get("spec")
