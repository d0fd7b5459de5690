"""Which cases are likely to show a fault: the one that did, those of its subject, those that speak of the same things.

A guess, so that a hunt is short; whatever the order is, every case is asked before a fault counts as not found.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from tests.conformance.mutation.known import FOUND_BY
from tests.conformance.written import DEADLINES, SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conformance.cases import Case
    from tests.conformance.mutation.fault import Fault

FIRST_BATCH, BATCH = 6, 18
"""Cases at once. Most faults show in any case of their subject, so the first batch is small."""
_DEADLINE = "deadline"
_ALL = {**SUBJECTS, _DEADLINE: DEADLINES}
_NEAR = (
    ("render.plugins.torch", ("torch",)),
    ("render.plugins.jax", ("jax",)),
    ("render.plugins.xgboost", ("xgboost",)),
    ("render.plugins.flux", ("flux",)),
    ("render.plugins.mpi", ("mpi",)),
    ("render.plugins.coscheduling", ("gang",)),
    ("render.plugins.volcano", ("gang",)),
    ("render.gang", ("gang",)),
    ("render.demand", ("gang",)),
    ("render.rendezvous", ("jax", "xgboost", "torch", "flux")),
    ("render.resources", ("torch", "mpi", "xgboost")),
    ("api.names", ("mpi", "flux", "controller")),
    ("render", ("plain", "mutation", "torch", "admission", "found", "weakness")),
    ("lifecycle.deadline", (_DEADLINE, "controller")),
    ("lifecycle", ("controller", "mutation", "found")),
    ("operator", ("controller", "found", "mpi", "weakness")),
    ("admission", ("admission", "weakness", "found")),
)
"""Where a fault of a module is likely to show: the first entry that the module's name begins with."""
_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}")


def by_relevance(fault: Fault) -> list[Sequence[Case]]:
    """Return all cases in batches: the one that found the fault, some of its subject, the rest by their words."""
    known = FOUND_BY.get(fault.id, {}).get("case")
    batches = [[case for case in batch if case.id != known] for batch in _by_likeness(fault)]
    first = [case for cases in _ALL.values() for case in cases if case.id == known]
    return [batch for batch in (first, *batches) if batch]


def _by_likeness(fault: Fault) -> list[Sequence[Case]]:
    near = next((subjects for start, subjects in _NEAR if fault.module.startswith(start)), ())
    order = [*near, *(subject for subject in _ALL if subject not in near)]
    cases = [case for subject in order for case in _spread(_ALL[subject])]
    said = _words(f"{fault.module} {fault.what} {fault.text} {fault.instead}")
    close = {case.id for subject in near for case in _ALL[subject]}
    rest = sorted(cases[FIRST_BATCH:], key=lambda case: -_in_common(said, case) * (3 if case.id in close else 1))
    return [cases[:FIRST_BATCH], *(rest[start : start + BATCH] for start in range(0, len(rest), BATCH))]


def _spread(cases: Sequence[Case]) -> list[Case]:
    """Return the cases so that the first are of all kinds, which stand together where they are written; short ones."""
    stride = -(-len(cases) // FIRST_BATCH)
    mixed = [case for start in range(stride) for case in cases[start::stride]]
    return sorted(mixed, key=lambda case: len(case.steps) > 1)


def _in_common(said: frozenset[str], case: Case) -> float:
    """Return how much a case speaks of what was said; a word that few cases have counts more."""
    return sum(1 / _uses()[word] for word in said & _words_of(case.id))


@cache
def _uses() -> Counter[str]:
    return Counter(word for cases in _ALL.values() for case in cases for word in _words_of(case.id))


@cache
def _words_of(case_id: str) -> frozenset[str]:
    return _words(next(repr(case) for cases in _ALL.values() for case in cases if case.id == case_id))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))
