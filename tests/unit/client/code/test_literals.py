from __future__ import annotations

import ast
import math
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainplane.client.code import literals

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.integers() | st.text() | st.binary() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    SCALARS | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner) | st.tuples(inner) | st.dictionaries(KEYS, inner) | st.sets(KEYS) | st.frozensets(KEYS)
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    back = eval(literals.write(value), {})  # noqa: S307 that is what the node does
    assert back == value
    assert type(back) is type(value)


def test_it_fits_on_one_line() -> None:
    assert "\n" not in literals.write({"text": "a\nb\r\u2028", "bytes": b"\n"})


def test_not_a_number_stays_one() -> None:
    back = eval(literals.write([math.nan, -math.inf]), {})  # noqa: S307 as above
    assert math.isnan(back[0])
    assert back[1] == -math.inf


def test_sets_are_written_in_one_order() -> None:
    assert literals.write({"b", "a", "c"}) == "set(['a', 'b', 'c'])"


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "where", "kind"),
    [
        (object(), "", "object"),
        ({"a": [1, {"b": object()}]}, "['a'][1]['b']", "object"),
        ((1, len), "[1]", "builtin_function_or_method"),
        ({Number.ONE: 1}, "", "Number"),
        (range(3), "", "range"),
    ],
)
def test_what_cannot_be_written_is_named(value: Any, where: str, kind: str) -> None:
    with pytest.raises(literals.NotPlainError) as caught:
        literals.write(value)
    assert caught.value.where == where
    assert type(caught.value.value).__name__ == kind


def test_a_list_that_holds_itself_is_no_plain_data() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(literals.NotPlainError):
        literals.write(endless)


def test_what_python_itself_reads_as_literal_is_written_so() -> None:
    value = {"layers": [1, 2], "name": "x", "rate": 0.1, "on": True, "none": None}
    assert ast.literal_eval(literals.write(value)) == value
