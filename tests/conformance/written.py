"""The cases that are written down, by subject; generated ones are in `generated`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.conformance import (
    admission_cases,
    controller_cases,
    flux_cases,
    found_cases,
    gang_cases,
    jax_cases,
    mpi_cases,
    mutation_cases,
    plain_cases,
    seed_cases,
    torch_cases,
    weakness_cases,
    xgboost_cases,
)
from tests.conformance.generated import generate
from tests.day import FIXED

if TYPE_CHECKING:
    from tests.conformance.cases import Case

SUBJECTS = {
    "controller": controller_cases.CASES,
    "plain": plain_cases.CASES,
    "torch": torch_cases.CASES,
    "jax": jax_cases.CASES,
    "xgboost": xgboost_cases.CASES,
    "flux": flux_cases.CASES,
    "mpi": mpi_cases.CASES,
    "gang": gang_cases.CASES,
    "admission": admission_cases.CASES,
    "weakness": weakness_cases.CASES,
    "found": found_cases.CASES,
    "seed": seed_cases.CASES,
    "mutation": mutation_cases.CASES,
}
WRITTEN = tuple(case for cases in SUBJECTS.values() for case in cases)
DEADLINES = (*controller_cases.DEADLINES, *mutation_cases.DEADLINES)
"""These run by themselves: they wait."""
GENERATED: Final = 40
"""How many cases of the fixed day's seed are recorded."""


def recorded_cases() -> dict[str, tuple[Case, ...]]:
    """Return the cases that are recorded, by the name of their file."""
    drawn = tuple(generate(number, of=FIXED.toordinal()) for number in range(GENERATED))
    return {**SUBJECTS, "deadline": DEADLINES, "generated": drawn}
