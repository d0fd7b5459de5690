"""The table of promises can be read, and each of its proofs is a test of ours; `make check` holds docs/promises.md."""

from __future__ import annotations

import pytest

from tests.seeds.documents.promises import HOLDS, SAYS_NOTHING, WAITING, Promise, named_in, promises

PROMISES = promises()
SAYING = [one for one in PROMISES if one.verdict != SAYS_NOTHING]


def test_each_statement_is_there_once() -> None:
    assert len({one.id for one in PROMISES}) == len(PROMISES) > 200


@pytest.mark.parametrize("one", SAYING, ids=lambda one: one.id)
def test_it_has_words_a_verdict_and_a_proof(one: Promise) -> None:
    verdict, proof = one.verdict, one.proof
    assert one.words
    if one.untried:
        assert one.untried[0].parent.is_dir()
    else:
        module, _, name = proof.partition("::")
        assert name in named_in(module)
        assert (module == WAITING) == (verdict != HOLDS)
    assert verdict == HOLDS or one.issue in range(18, 30)
