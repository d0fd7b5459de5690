from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainplane.kube.strictyaml import Bare, Bounds, Mapping, read


def test_plain_data_is_what_it_says() -> None:
    text = """
    text: a b
    quoted: "1"
    also: 'yes'
    day: 2026-09-01
    nothing: ~
    none:
    yes it is: true
    no: False
    list: [a, {b: c}]
    block: |
      two
      lines
    """
    assert read(text) == (
        {
            "text": "a b",
            "quoted": "1",
            "also": "yes",
            "day": "2026-09-01",
            "nothing": None,
            "none": None,
            "yes it is": True,
            "no": False,
            "list": ["a", {"b": "c"}],
            "block": "two\nlines\n",
        },
        (),
    )


@pytest.mark.parametrize("word", ["1", "0x10", "1.5", ".inf", "-3", "yes", "off", "1:30"])
def test_what_readers_disagree_about_is_neither_text_nor_truth(word: str) -> None:
    assert read(word).content is Bare.AMBIGUOUS


def test_keys_know_their_lines() -> None:
    content = read("a: 1\nb:\n  c: d\n  'e': f\n").content
    assert isinstance(content, Mapping)
    assert content.lines == {"a": 1, "b": 2}
    assert content["b"].lines == {"c": 3, "e": 4}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b\na: c", "line 2: a key that stands on line 1 already: keep one"),
        ("x: {a: b, 'a': c}", "line 1: a key that stands on line 1 already: keep one"),
        ('- a: b\n  "a": c', "line 2: a key that stands on line 1 already: keep one"),
        ("a: &x b", "line 1: an anchor: remove it"),
        ("a: *x", "line 1: an alias: write the value out"),
        ("b: {<<: {a: c}}", "line 1: a merge key: write the values out"),
        ("a: !!str b", "line 1: a tag: remove it"),
        ("a: !x {}", "line 1: a tag: remove it"),
        ("a: !!python/object/apply:os.system [id]", "line 1: a tag: remove it"),
        ("%TAG ! tag:x,2000:\n---\na: b", "line 1: a %TAG directive: remove it"),
        ("a\n---\nb", "line 2: a second document begins: keep one"),
        ("? [a]\n: b", "line 1: a key that is no text"),
        ("? {a: b}\n: c", "line 1: a key that is no text"),
        ("a:\n- b\n c: [", "line 3: this is not YAML"),
        ("a\x00", "it has characters that YAML does not allow"),
        ("a\ud800", "it has characters that YAML does not allow"),
        ("a" * (256 * 1024 + 1), "it is longer than 262144 characters"),
        ("[" * 17, "line 1: more than 16 levels of values within values"),
        ("- a\n" * 10001, "line 10000: here it has more than 10000 values"),
    ],
)
def test_what_is_refused_is_told_by_its_line(text: str, problem: str) -> None:
    assert problem in read(text).problems


def test_the_bounds_are_the_callers() -> None:
    assert read("[[a]]", Bounds(depth=2)).problems == ()
    assert read("[[a]]", Bounds(depth=1)).problems == ("line 1: more than 1 levels of values within values",)
    assert read("[a, b]", Bounds(values=3)).problems == ()
    assert read("[a, b]", Bounds(values=2)).problems == ("line 1: here it has more than 2 values",)
    assert read("ab", Bounds(characters=1)).problems == ("it is longer than 1 characters",)


DEAR = {
    "lists": "[" * 250_000,
    "mappings": "{a: " * 60_000,
    "blocks": "- " * 120_000,
    "questions": "? " * 120_000,
    "entries": "- a\n" * 60_000,
    "keys": "".join(f"k{number}: v\n" for number in range(25_000)),
    "number": "1" * 250_000,
    "time": "1:1" * 80_000,
    "tags": "!" * 250_000,
    "quoted": "'" + "\n" * 250_000,
    "one key": "x" * 250_000 + ":",
    "comment": "#" * 250_000,
    "anchors": "- &a b\n" * 35_000,
    "laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)),
}


@pytest.mark.parametrize("text", DEAR.values(), ids=DEAR)
def test_no_text_is_dear(text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 1, "of CPU; most take milliseconds"


TEXTS = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("\n\t\u00e9\u4e2d"))


@given(
    st.recursive(
        st.none() | st.booleans() | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
        max_leaves=20,
    )
)
def test_json_is_read_as_it_is(tree: Any) -> None:
    if '"<<": ' not in json.dumps(tree):
        assert read(json.dumps(tree)) == (tree, ())


@given(st.text(alphabet="{}[]:,-?&*!|>'\"%@`#\n\t ab1~"))
def test_what_is_read_is_what_a_loader_reads(text: str) -> None:
    """No text has two meanings: what we accept, PyYAML's own loader reads alike, but for what we call ambiguous."""
    document = read(text)
    if not document.problems:
        assert _alike(document.content, yaml.load(text, yaml.CSafeLoader))


def _alike(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, Mapping):
        loaded = {key if isinstance(key, str) else None for key in theirs}
        return isinstance(theirs, dict) and all(
            key not in loaded or _alike(value, theirs[key]) for key, value in ours.items()
        )
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(_alike, ours, theirs))
    return ours is Bare.AMBIGUOUS or ours == theirs
