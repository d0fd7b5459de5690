"""Quantities as Kubernetes counts them: `500m` of CPU, `1.5Gi` of memory, `2` GPUs.

A quantity is a whole number of billionths and a family of suffixes to write it with. Numbers finer than a billionth are
rounded up, away from zero, as the API server does; a binary quantity ends at 2⁶³-1. The text that comes out is the API
server's, including its habit to keep some texts as they were written (`1.500` stays, `1.50` becomes `1500m`).

Quantities compare and hash by amount alone: `1` equals `1000m`.

Where we differ on purpose: an amount past the last suffix (1000E, 1024Ei) is written with an exponent or in full, where
the API server's library drops the suffix and so the magnitude; and a text longer than 256 characters or an amount
of more than 999 digits is refused, where the library begins to compute and does not end.
"""

from __future__ import annotations

import enum
import re
from functools import cache, lru_cache, total_ordering
from typing import Final

from trainplane.api.errors import QuantityError

NANO: Final = 10**9
"""Billionths in one: the finest amount there is."""

_LARGEST_BINARY: Final = (2**63 - 1) * NANO
_LONGEST_TEXT: Final = 256
_LARGEST_EXPONENT: Final = 999

_FORM = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)")
_BYTES = re.compile(r"(?P<number>[0-9]{1,18}(\.[0-9]{1,9})?) ?(?P<letter>[kKmMgGtTpP])i?[bB]?")
_WORDS = re.compile(r"(?P<number>[0-9]{1,18}(\.[0-9]{1,9})?) ?(v?cpus?|cores?|gpus?)", re.IGNORECASE)
_EXPONENT = re.compile(r"[eE](?P<power>[+-]?[0-9]+)")

_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX_OF = {power: suffix for suffix, power in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIX_OF = ("", *_BINARY_SUFFIXES)


class Family(enum.Enum):
    """The suffixes that a quantity is written with."""

    DECIMAL = "DecimalSI"
    """n u m k M G T P E"""
    BINARY = "BinarySI"
    """Ki Mi Gi Ti Pi Ei"""
    EXPONENT = "DecimalExponent"
    """e3, e6, …"""


@total_ordering
class Quantity:
    """An amount of a resource. Immutable; made by `parse`, `of` and arithmetic."""

    __slots__ = ("_kept", "family", "nanos")

    def __init__(self, nanos: int, family: Family = Family.DECIMAL, *, kept: str = "") -> None:
        """Take an amount in billionths; `kept` is a text to print as it was read."""
        self.nanos = nanos
        self.family = family
        self._kept = kept

    @classmethod
    def of(cls, value: str | float | Quantity) -> Quantity:
        """Return the quantity that a value from JSON or YAML means: the SDK sends numbers, people write texts."""
        if isinstance(value, Quantity):
            return value
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise QuantityError(f"{value!r} is no quantity: write a number or a text such as 500m or 2Gi")
        return parse(value.strip() if isinstance(value, str) else repr(value))

    def __str__(self) -> str:
        """Return the text that the API server writes."""
        return self._kept or self.canonical()

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def canonical(self) -> str:
        """Return the one text of this amount in its family: no fraction, and the largest suffix that allows it."""
        if self.nanos == 0:
            return "0"
        if self.family is Family.BINARY and abs(self.nanos) >= 1024 * NANO and self.nanos % NANO == 0:
            return _binary_text(self.nanos // NANO)
        return _decimal_text(self.nanos, exponents=self.family is Family.EXPONENT)

    def value(self) -> int:
        """Return whole units, rounded away from zero: what a count of GPUs or bytes is."""
        return self.scaled(0)

    def milli_value(self) -> int:
        """Return thousandths, rounded away from zero: what a count of CPU is."""
        return self.scaled(-3)

    def scaled(self, power: int) -> int:
        """Return how many times ten to the `power` fits, rounded away from zero."""
        return _divided(self.nanos, 10 ** (power + 9)) if power >= -9 else self.nanos * 10 ** (-9 - power)

    def round_up(self, power: int) -> Quantity:
        """Return the amount rounded away from zero to a multiple of ten to the `power`, which is at least -9."""
        step = 10 ** (power + 9)
        return Quantity(_divided(self.nanos, step) * step, self.family)

    def is_zero(self) -> bool:
        """Return whether the amount is zero."""
        return self.nanos == 0

    def __float__(self) -> float:
        return self.nanos / NANO

    def __add__(self, other: Quantity) -> Quantity:
        """Add; the sum is written as the first, or as the second if the first is zero."""
        return Quantity(self.nanos + other.nanos, self.family if self.nanos else other.family)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.family if self.nanos else other.family)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nanos * times, self.family)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.family)

    def __abs__(self) -> Quantity:
        return Quantity(abs(self.nanos), self.family)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


ZERO: Final = Quantity(0)


@lru_cache(maxsize=1024)
def parse(text: str) -> Quantity:
    """Read a quantity. The same few are read over and over: those of a runtime, each time that a TrainJob is judged.

    Raises:
        QuantityError: the text is none, or larger than any resource; the message says which.
    """
    match = _FORM.fullmatch(text) if 0 < len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise QuantityError(f"{text[:64]!r} is no quantity: {advise(text)}")
    whole = match["whole"].lstrip("0") or "0"
    fraction = match["fraction"] or ""
    base, power, family = _suffix(text, match["suffix"])
    digits = whole + fraction
    if base == 2:
        amount = int(digits) * 2**power * NANO
        fast = not fraction and 15 - len(whole) - int(power * 0.3) - 1 >= 0
        keep = fast and int(whole) & 0b111 != 0
        nanos = min(_divided(amount, 10 ** len(fraction)), _LARGEST_BINARY)
        if 0 < nanos < NANO:
            family = Family.DECIMAL
    else:
        scale = power - len(fraction)
        fast = len(digits) <= 18 and scale >= -9
        keep = fast and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        if len(digits) + scale > _LARGEST_EXPONENT and digits.strip("0"):
            raise QuantityError(f"{text[:64]!r} is larger than any resource: write at most {_LARGEST_EXPONENT} digits")
        nanos = _shifted(int(digits), scale + 9)
    if not fast and not (match["whole"] or match["fraction"]):
        raise QuantityError(f"{text!r} is no quantity: it has a suffix and no number")
    return Quantity(-nanos if match["sign"] == "-" else nanos, family, kept=text if keep else "")


def advise(text: str) -> str:
    """Return what to write in place of a text that is no quantity: what it seems to mean, or how one looks."""
    if size := _BYTES.fullmatch(text[:_LONGEST_TEXT]):
        letter = size["letter"].upper()
        return f"write {size['number']}{letter}i or {size['number']}{letter.replace('K', 'k')}"
    if count := _WORDS.fullmatch(text[:_LONGEST_TEXT]):
        return f"write {count['number']}"
    return "write one such as 500m, 2 or 4Gi"


def _suffix(text: str, suffix: str) -> tuple[int, int, Family]:
    """Return the base and power that a suffix multiplies by, and its family."""
    if suffix in _DECIMAL_SUFFIXES:
        return 10, _DECIMAL_SUFFIXES[suffix], Family.DECIMAL
    if suffix in _BINARY_SUFFIXES:
        return 2, _BINARY_SUFFIXES[suffix], Family.BINARY
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        known = " ".join([*filter(None, _DECIMAL_SUFFIXES), *_BINARY_SUFFIXES])
        raise QuantityError(f"{text!r} is no quantity: suffix {suffix!r} is none of {known} nor an exponent")
    power = int(exponent["power"])
    if power > _LARGEST_EXPONENT:
        raise QuantityError(f"{text!r} is larger than any resource: write an exponent of at most {_LARGEST_EXPONENT}")
    return 10, power, Family.EXPONENT


def _shifted(number: int, power: int) -> int:
    """Return a number times ten to a power, rounded up."""
    if power >= 0:
        return number * _ten_to(power)
    if -power > _LONGEST_TEXT:
        return 1 if number else 0
    return _divided(number, 10**-power)


@cache
def _ten_to(power: int) -> int:
    """Return ten to a power; the largest there is has a thousand digits, which take longer to find than to use."""
    return int(10**power)


def _divided(number: int, divisor: int) -> int:
    """Divide and round away from zero."""
    quotient, rest = divmod(abs(number), divisor)
    magnitude = quotient + bool(rest)
    return magnitude if number >= 0 else -magnitude


def _decimal_text(nanos: int, *, exponents: bool) -> str:
    digits = str(nanos)
    significant = digits.rstrip("0")
    power = len(digits) - len(significant) - 9
    padding = power % 3
    number, power = significant + "0" * padding, power - padding
    if not exponents and power in _DECIMAL_SUFFIX_OF:
        return number + _DECIMAL_SUFFIX_OF[power]
    return f"{number}e{power}" if power else number


def _binary_text(number: int) -> str:
    steps = 0
    while number % 1024 == 0 and steps < len(_BINARY_SUFFIX_OF) - 1:
        number //= 1024
        steps += 1
    return f"{number}{_BINARY_SUFFIX_OF[steps]}"
