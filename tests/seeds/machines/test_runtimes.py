"""docs/runtimes.md: its examples run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.seeds.machines.site import examples

if TYPE_CHECKING:
    from tests.seeds.machines.site import Site

PAGE = examples("runtimes.md")
PRINTED = {
    "A runtime of the cluster": "PET_NNODES=2",
    "A runtime of a team": "for the team",
    "Steps": "trains --epochs=3",
}


@pytest.mark.parametrize("heading", PRINTED)
def test_what_the_guide_shows_runs(site: Site, heading: str) -> None:
    site.apply_example(*PAGE[heading])
    site.wait_state("guide", "Succeeded")
    assert PRINTED[heading] in site.logs("guide")
    if heading == "Steps":
        assert site.logs("guide", "dataset-initializer") == ["fetches s3://bucket/rows"]


def test_no_example_is_left_out() -> None:
    assert {heading for heading, documents in PAGE.items() if documents} == PRINTED.keys()
