"""How much of an object is read. A text is weighed before a tree is made of it, at the price of a glance.

The API server lets objects of 1.5 MB in, and requests of 3 MB. As texts they cost little; what costs is the number of
values in them: `[[],[],...]` is a million lists, 70 MB, and some microseconds of whoever walks over each. Everything
that reads, merges and compares objects here takes a time in proportion to their values, so one number bounds it all.

A TrainJob or runtime that people write has some hundred values, and the largest that anybody has shown some thousand.
"""

from __future__ import annotations

import re
from typing import Any, Final

from trainplane.api.errors import DecodeError

MOST_VALUES: Final = 16_384
"""Values (objects, lists, texts, numbers) of one object, its managedFields left out: a hundred times what our runtimes
have, several times the largest that people write, and what a review walks over in a few tenths of a second."""

MOST_PODS: Final = 32_768
"""Pods of one TrainJob, all replicated jobs together, unless an admin says otherwise: more than twice the nodes of the
largest trainings known (100,000 GPUs, eight to a node), and a third of what Kubernetes takes of one Job."""

MOST_LETTERS: Final = 3 << 20
"""Characters of all texts of an object: an API server takes no request of more than 3 MiB."""

_TEXTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


def check_size(text: bytes) -> None:
    """Refuse the JSON of an object that has too many values to be read.

    Raises:
        DecodeError: it has.
    """
    values = 1 + _separators(text)
    if values <= MOST_VALUES:
        return
    for count, one in enumerate(_TEXTS.finditer(text)):
        values -= _separators(one[0])
        if count > 2 * MOST_VALUES:  # each is a value, or the name of one
            break
    if values > MOST_VALUES:
        raise DecodeError("", too_many())


def weigh(tree: Any) -> tuple[int, int]:
    """Return how many values a tree has, itself among them, and how many characters its texts and keys have."""
    values, letters, below = 1, 0, [tree]
    while below:
        one = below.pop()
        if isinstance(one, str):
            letters += len(one)
        elif isinstance(one, dict | list):
            values += len(one)
            if isinstance(one, dict):
                letters += sum(map(len, one))
                below.extend(one.values())
            else:
                below.extend(one)
    return values, letters


def too_many() -> str:
    """Return what is wrong with an object of too many values."""
    return (
        f"has more than {MOST_VALUES} values, and such an object is not read: take out what is not needed, or keep it "
        "in a ConfigMap, a file or the image"
    )


def too_deep() -> str:
    """Return what is wrong with an object that is nested deeper than can be walked."""
    return "is nested too deep to be read: no field of it is nested so"


def _separators(text: bytes) -> int:
    """Return how many commas and opening brackets a text has: every value of JSON but the first follows one."""
    return text.count(b",") + text.count(b"{") + text.count(b"[")
