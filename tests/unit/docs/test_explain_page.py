"""docs/explain.md is what the report's own writer writes, and the rule by which others are judged can fail."""

from __future__ import annotations

import re

import pytest

from tests.explain.failures import FAILURES, WITH_TORCH, Failure
from tests.explain.peers import FACTS, PEERS, is_named
from tests.explain.table import COLUMNS, HEAD, PAGE, write_page

FIGURES = dict.fromkeys(
    (
        *("failures", "named_right", "confidently_wrong", "gone", "named_right_when_gone", "generated"),
        *("generated_right", "compared"),
        *(f"{peer}_named{when}" for peer in PEERS for when in ("", "_with_pods")),
    ),
    7.0,
)


def test_the_page_is_of_the_writers_form() -> None:
    text = PAGE.read_text()
    failed = {"failure": "a", "named": "X", "certainty": "likely", "says": "a | b"}
    asked = {"compared": "a", **{name: True for peer in PEERS for name in (peer, f"{peer}_when_gone")}}
    written = write_page({"figures": FIGURES, "rows": [failed, {**asked, "kubectl_when_gone": False}]})
    assert text.startswith(HEAD)
    assert re.sub(r"\d+(\.\d+)?", "7", text.partition("\n| ")[0]) == re.sub(
        r"\d+(\.\d+)?", "7", written.partition("\n| ")[0]
    )
    assert f"| {' | '.join(COLUMNS)} |" in text
    assert written.endswith("| a | X (likely) | a \\| b | until its pods go | yes | yes |\n")


def test_every_failure_has_a_row_and_a_telling_fact() -> None:
    rows = set(re.findall(r"^\| ([\w-]+) \|", PAGE.read_text(), re.MULTILINE))
    names = {one.name for one in (*FAILURES, *WITH_TORCH)}
    assert names <= rows
    assert FACTS.keys() == names


@pytest.mark.parametrize("failure", [*FAILURES, *WITH_TORCH], ids=lambda one: one.name)
def test_no_name_and_no_command_is_a_fact(failure: Failure) -> None:
    """`describe` shows both, of a job that is well, too."""
    shown = f"{failure.trainjob()}\n{failure.runtime()}\n{failure.name}-node-0-0-abcde {failure.name}-node-0-1-abcde"
    assert not is_named(failure, [f"{shown}\nnode-0 node-1 dataset-initializer"])


def test_the_fact_and_whose_it_is_must_stand_together() -> None:
    failure = next(one for one in FAILURES if one.name == "traceback")
    assert is_named(failure, ["pod traceback-node-0-1-abcde: KeyError: 1"])
    assert is_named(failure, ["node-1 raised KeyError"])
    assert not is_named(failure, ["node-1", "KeyError: 1"])
    assert not is_named(failure, ["first failed job: traceback-node-0: KeyError"])
    assert not is_named(failure, ["pod traceback-node-0-0-abcde: KeyError: 1"])
