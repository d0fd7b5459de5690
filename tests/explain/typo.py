"""What a user ships: a function with a typo, in a module of its own."""

from __future__ import annotations


def train() -> None:
    rows = {"label": 1}
    print(rows["lable"])  # noqa: T201 what a user writes
