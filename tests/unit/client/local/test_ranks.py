"""How many ranks a node runs here."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.client.backends.process.ranks import are_counted, bounded, processors


def documents(said: Any, runtimes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    trainer = {"numProcPerNode": said} if said is not None else {}
    policy = {"numProcPerNode": runtimes} if runtimes is not None else {}
    return {"spec": {"trainer": trainer}}, {"spec": {"mlPolicy": {"torch": policy}}}


@pytest.mark.parametrize(
    ("said", "runtimes", "counted"),
    [
        (None, None, True),
        (None, "auto", True),
        (None, "cpu", True),
        (None, 4, False),
        (None, "gpu", False),
        (4, None, False),
        (4, "cpu", False),
    ],
)
def test_whoever_says_how_many_is_heard(said: Any, runtimes: Any, *, counted: bool) -> None:
    assert are_counted(*documents(said, runtimes)) is counted


@pytest.mark.parametrize(("asked", "given"), [("100", "4"), ("4", "4"), ("2", "2"), ("auto", "auto"), ("9" * 999, "4")])
def test_a_node_runs_no_more_than_there_are_processors(asked: str, given: str) -> None:
    assert bounded({"A": "1", "PET_NPROC_PER_NODE": asked}, 4) == {"A": "1", "PET_NPROC_PER_NODE": given}
    assert bounded({"A": "1"}, 4) == {"A": "1"}


def test_there_is_one_at_least() -> None:
    assert processors() >= 1
