from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.api import document
from trainplane.api.bounds import MOST_VALUES, check_size, weigh
from trainplane.api.errors import DecodeError
from trainplane.api.trainjob import TrainJob

TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(alphabet='a,[{"\\')),
    lambda below: st.one_of(st.lists(below), st.dictionaries(st.text(alphabet='b,[{"\\'), below)),
    max_leaves=20,
)


@pytest.mark.parametrize("entry", ["[]", "{}", "0", '""', '"\\\\"', '{"a":0}'])
def test_too_many_values_are_refused(entry: str) -> None:
    with pytest.raises(DecodeError, match=f"has more than {MOST_VALUES} values"):
        check_size(f"[{','.join([entry] * (MOST_VALUES + 1))}]".encode())


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(["1,2,3," * 200_000, "[{" * 200_000]),
        json.dumps({"annotation": json.dumps([{"a": "b,c"}] * 50_000)}),
        json.dumps([0] * (MOST_VALUES - 1)),
    ],
    ids=["a text of commas", "an object as a text", "as many as there may be"],
)
def test_what_stands_in_texts_does_not_count(text: str) -> None:
    check_size(text.encode())


@given(TREES)
def test_a_small_object_is_never_refused(tree: Any) -> None:
    check_size(json.dumps(tree).encode())


@given(TREES)
def test_a_weight_is_that_of_every_value(tree: Any) -> None:
    def values(part: Any) -> int:
        below = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        return 1 + sum(map(values, below))

    assert weigh(tree)[0] == values(tree)


def test_a_weight_has_the_letters_of_texts_and_names() -> None:
    assert weigh({"ab": ["cde", 1], "f": "g"}) == (5, 7)


@pytest.mark.parametrize("depth", [2000, 10_000])
def test_nesting_is_refused_in_words(depth: int) -> None:
    with pytest.raises(DecodeError, match="nested too deep"):
        document.decode(b"[" * depth + b"]" * depth, TrainJob)
