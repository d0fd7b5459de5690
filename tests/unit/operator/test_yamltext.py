from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from trainplane.operator import yamltext


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1]\nb: *x", "line 1: an anchor"),
        ("a: *x", "line 1: an alias"),
        ("a: !!str 1", "line 1: a tag"),
        ("a: 1\na: 2", "line 2: 'a' is there twice"),
        ("<<: {a: 1}", "line 1: a merge"),
        ("? [a]\n: 1", "line 1: the name of a field must be a text"),
        ("a: 1\n---\nb: 2", "line 2: a second document"),
        ("%YAML 1.1\n---\na: 1", "line 1: a directive"),
        ("a:\n%TAG ! b", "line 2: a directive"),
        ("[" * 200, "line 1: is nested too deep"),
        (f"a: {'9' * 100_000}", "is no number that an object can have"),
        (f"a: 0x{'f' * 17}", "is no number that an object can have"),
        ("a: .inf", "is no number that an object can have"),
        ("a: 1.0e+999", "is no number that an object can have"),
        (f"[{'x,' * 20_000}]", "has more than 16384 values"),
        ("x" * (1 << 21), "no ConfigMap holds more"),
    ],
)
def test_what_no_objects_yaml_has_is_refused(text: str, said: str) -> None:
    with pytest.raises(yaml.YAMLError, match=re.escape(said)):
        yamltext.load(text)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("1", 1),
        ("-0x1F", -31),
        ("0777", 511),
        ("0b11", 3),
        ("1_000", 1000),
        ("18446744073709551615", 2**64 - 1),
        ("1.5", 1.5),
        ("1.0e+300", 1e300),
        ("1e3", "1e3"),
        ("1:30", "1:30"),
        ("yes", True),
        ("~", None),
        ("", None),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
        ("'1'", "1"),
    ],
)
def test_bare_words_mean_what_they_meant(word: str, meant: Any) -> None:
    found = yamltext.load(f"a: {word}")["a"]
    assert found == meant
    assert type(found) is type(meant)
