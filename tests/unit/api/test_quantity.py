from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import NANO, ZERO, Family, Quantity, advise, parse

amounts = st.integers(min_value=-(10**30), max_value=10**30)
quantities = st.builds(Quantity, amounts, st.sampled_from(Family))

MULTIPLIERS: dict[str, Fraction | int] = {
    "": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, Fraction, str]:
    whole = draw(st.integers(min_value=0, max_value=10**6))
    fraction = draw(st.text("0123456789", max_size=12))
    suffix = draw(st.sampled_from(sorted(MULTIPLIERS)))
    text = f"{whole}.{fraction}{suffix}" if fraction else f"{whole}{suffix}"
    exact = (Fraction(whole) + Fraction(int(fraction or 0), 10 ** len(fraction))) * MULTIPLIERS[suffix]
    return text, exact, suffix


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1500", "1500"),
        ("2000", "2k"),
        ("1.5Gi", "1536Mi"),
        ("0.1Ki", "102400m"),
        ("0.5Ki", "512"),
        ("1024Ki", "1Mi"),
        ("1536", "1536"),
        ("8Gi", "8Gi"),
        ("1e3", "1e3"),
        ("1.5e3", "1500"),
        ("12000e3", "12e6"),
        ("0.1n", "1n"),
        ("1e-1000", "1e-9"),
        ("-0.1n", "-1n"),
        ("-1.5", "-1500m"),
        ("9Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        # Texts that the API server keeps as they came.
        ("1.500", "1.500"),
        ("+1", "+1"),
        ("007", "007"),
        ("1.", "1."),
        # Texts without a digit that it reads as zero.
        ("+", "0"),
        (".", "0"),
        ("Ki", "0"),
    ],
)
def test_writes_as_the_api_server(text: str, written: str) -> None:
    assert str(parse(text)) == written


def test_canonical_form_ignores_how_it_was_written() -> None:
    assert parse("1.500").canonical() == parse("1500m").canonical() == "1500m"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is no quantity"),
        ("abc", "is no quantity"),
        ("1 Gi", "is no quantity"),
        ("1\n", "is no quantity"),
        ("1" * 300, "is no quantity"),
        ("1Kii", "suffix 'Kii'"),
        ("1K", "suffix 'K'"),
        ("1e", "suffix 'e'"),
        ("Ei", "no number"),
        ("e-10", "no number"),
        ("1e1000", "larger than any resource"),
        ("1e99999999999", "larger than any resource"),
        ("7832873430093408000e999", "larger than any resource"),
    ],
)
def test_refuses_and_says_why(text: str, problem: str) -> None:
    with pytest.raises(QuantityError, match=problem):
        parse(text)


@pytest.mark.parametrize(
    ("value", "written"), [(2, "2"), (2.0, "2"), (0.5, "500m"), (" 8Gi ", "8Gi"), (parse("1"), "1"), (1e22, "10e21")]
)
def test_takes_what_json_gives(value: str | float | Quantity, written: str) -> None:
    assert str(Quantity.of(value)) == written


@pytest.mark.parametrize("value", [True, None, [], {}, float("nan"), float("inf")])
def test_refuses_what_is_no_number(value: Any) -> None:
    with pytest.raises(QuantityError):
        Quantity.of(value)


@given(texts())
def test_reads_the_exact_amount_rounded_up_to_a_billionth(case: tuple[str, Fraction, str]) -> None:
    text, exact, suffix = case
    nanos = parse(text).nanos
    if suffix.endswith("i") and exact > 2**63 - 1:
        assert nanos == (2**63 - 1) * NANO
    else:
        assert 0 <= nanos - exact * NANO < 1


@given(texts())
def test_a_sign_turns_the_amount_around(case: tuple[str, Fraction, str]) -> None:
    assert parse("-" + case[0]).nanos == -parse(case[0]).nanos


@given(quantities)
def test_writing_and_reading_gives_the_same_amount(quantity: Quantity) -> None:
    limit = 2**63 - 1
    if quantity.family is Family.BINARY and abs(quantity.nanos) > limit * NANO:
        return
    assert parse(str(quantity)) == quantity


@given(quantities)
def test_canonical_is_a_fixed_point(quantity: Quantity) -> None:
    once = quantity.canonical()
    if quantity.family is Family.BINARY and abs(quantity.nanos) > (2**63 - 1) * NANO:
        return
    assert parse(once).canonical() == once


@given(quantities)
def test_canonical_text_has_no_fraction_and_no_needless_zeros(quantity: Quantity) -> None:
    text = quantity.canonical()
    assert "." not in text
    number = text.lstrip("-").rstrip("numkMGTPEi").partition("e")[0]
    if quantity.family is not Family.BINARY and number != "0":
        assert not number.endswith("000")


@given(quantities, quantities)
def test_arithmetic_is_exact(a: Quantity, b: Quantity) -> None:
    assert (a + b).nanos == a.nanos + b.nanos
    assert (a - b).nanos == a.nanos - b.nanos
    assert (-a).nanos == -a.nanos
    assert (a * 3).nanos == (3 * a).nanos == 3 * a.nanos
    assert abs(a).nanos == abs(a.nanos)
    assert (a < b) == (a.nanos < b.nanos)
    assert (a >= b) == (a.nanos >= b.nanos)
    assert (a == b) == (a.nanos == b.nanos)


def test_a_sum_is_written_as_its_first_part_unless_that_is_zero() -> None:
    assert str(parse("1Gi") + parse("1000000")) == str(Quantity(1074741824 * NANO, Family.BINARY)) == "1074741824"
    assert (parse("1Gi") + parse("1G")).family is Family.BINARY
    assert (ZERO + parse("1Gi")).family is Family.BINARY
    assert (ZERO - parse("1Gi")).family is Family.BINARY


def test_equal_amounts_are_equal_and_hash_alike() -> None:
    assert parse("1") == parse("1000m")
    assert len({parse("1"), parse("1000m"), parse("1e0")}) == 1
    assert parse("1") != "1"


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [("500m", 1, 500), ("2500m", 3, 2500), ("1n", 1, 1), ("-500m", -1, -500), ("2k", 2000, 2000000)],
)
def test_counts_round_away_from_zero(text: str, value: int, milli: int) -> None:
    assert parse(text).value() == value
    assert parse(text).milli_value() == milli


def test_rounds_up_to_a_power_of_ten() -> None:
    assert str(parse("1.0001").round_up(-3)) == "1001m"
    assert str(parse("-1.0001").round_up(0)) == "-2"
    assert parse("1").scaled(-12) == 10**12
    assert parse("1500").scaled(3) == 2


def test_amounts_past_the_last_suffix_keep_their_magnitude() -> None:
    assert str(parse("1000E")) == "1e21"
    assert str(Quantity(2**70 * NANO, Family.BINARY)) == "1024Ei"


def test_says_what_it_is() -> None:
    assert repr(parse("1Gi")) == "Quantity('1Gi')"
    assert float(parse("1500m")) == 1.5
    assert ZERO.is_zero()
    assert not parse("1n").is_zero()


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("4GB", "write 4Gi or 4G"),
        ("4 Gi", "write 4Gi or 4G"),
        ("1.5gb", "write 1.5Gi or 1.5G"),
        ("512kb", "write 512Ki or 512k"),
        ("2cores", "write 2"),
        ("2 vCPU", "write 2"),
        ("lots", "write one such as 500m, 2 or 4Gi"),
        ("9" * 300 + "GB", "write one such as 500m, 2 or 4Gi"),
    ],
)
def test_what_is_none_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(QuantityError, match=f"is no quantity: {re.escape(advice)}$"):
        parse(text)


@pytest.mark.parametrize("number", ["4", "1.5"])
@pytest.mark.parametrize("unit", ["KB", "kb", "MB", "mb", "GiB", "TB", "pb", "cores", "CPU"])
def test_what_it_says_to_write_is_a_quantity(number: str, unit: str) -> None:
    for text in advise(number + unit).removeprefix("write ").split(" or "):
        parse(text)
