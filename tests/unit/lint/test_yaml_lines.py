"""Which line a part of a file stands on."""

from __future__ import annotations

import pytest

from trainplane.lint.yaml_lines import MOST_LETTERS, UnreadableError, read

TEXT = """\
# a comment
kind: A
spec:
  list:
    - name: one
    -
      name: two
  flow: {a: 1, b: [x, y]}
---
kind: B
"""


def test_every_part_has_the_line_of_its_name_or_its_beginning() -> None:
    first, second = read(TEXT)
    assert first.tree == {
        "kind": "A",
        "spec": {"list": [{"name": "one"}, {"name": "two"}], "flow": {"a": 1, "b": ["x", "y"]}},
    }
    lines = {
        (): 2,
        ("kind",): 2,
        ("spec",): 3,
        ("spec", "list"): 4,
        ("spec", "list", 0): 5,
        ("spec", "list", 0, "name"): 5,
        ("spec", "list", 1): 7,
        ("spec", "list", 1, "name"): 7,
        ("spec", "flow"): 8,
        ("spec", "flow", "a"): 8,
        ("spec", "flow", "b"): 8,
        ("spec", "flow", "b", 0): 8,
        ("spec", "flow", "b", 1): 8,
    }
    assert first.lines == lines
    assert second.line_of(()) == 10


def test_what_is_not_there_has_the_line_of_what_is_around_it() -> None:
    first, _ = read(TEXT)
    assert first.line_of(("spec", "list", 1, "image", "tag")) == 7
    assert first.line_of(("status",)) == 2


def test_values_are_read_as_kubectl_reads_them() -> None:
    (source,) = read("a: 2001-02-03\nb: yes\nc: '1'\nd: 0x10\ne:\nf: 1.5\n1: one\n")
    assert source.tree == {"a": "2001-02-03", "b": True, "c": "1", "d": 16, "e": None, "f": 1.5, "1": "one"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "---\n# nothing\n"])
def test_empty_documents_are_left_out(text: str) -> None:
    assert list(read(text)) == []


def test_a_field_that_is_there_twice_is_told_by_its_second_line() -> None:
    (source,) = read("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert source.tree["b"]["c"] == 3
    assert source.repeated == ((("b", "c"), 5),)


def test_anchors_and_merges_are_followed() -> None:
    (source,) = read("base: &base\n  a: 1\n  b: 2\nmine:\n  <<: *base\n  b: 3\n")
    assert source.tree["mine"] == {"a": 1, "b": 3}
    assert source.repeated == ()
    assert source.line_of(("mine", "b")) == 6


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("a: *nobody\n", 1),
        ("a: 1\n? [x]\n: 2\n", 2),
        ("a: 1\nb: &loop\n  c: *loop\n", 3),
        ("a: 1\nb: \x07\n", 2),
        ("a: b\nc: d: e\n", 2),
    ],
)
def test_what_cannot_be_read_says_where(text: str, line: int) -> None:
    with pytest.raises(UnreadableError) as caught:
        list(read(text))
    assert caught.value.line in {line, line - 1} if "loop" in text else caught.value.line == line
    assert str(caught.value).startswith(f"line {caught.value.line}: ")


def test_documents_before_it_are_read() -> None:
    documents = read("a: 1\n---\nb: [\n")
    assert next(documents).tree == {"a": 1}
    with pytest.raises(UnreadableError):
        next(documents)


BOMBS = {
    "aliases": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    "merges": "a0: &a0 {x: 1, y: 2}\n"
    + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 60)),
    "merges into each other": "a: &a\n  <<: *a\n  b: 1\n",
    "nesting": "[" * 20_000,
    "nested fields": "{a: " * 20_000,
    "digits": f"a: {'9' * 200_000}\n",
    "digits of base 60": f"a: 1{':1' * 50_000}\n",
    "digits of base 16": f"a: 0x{'f' * 200_000}\n",
    "length": "# " + "x" * MOST_LETTERS,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.timeout(20)
def test_what_costs_more_than_it_is_worth_is_not_read(name: str) -> None:
    with pytest.raises(UnreadableError):
        list(read(BOMBS[name]))


def test_of_what_is_merged_the_first_wins_and_the_object_itself_over_all() -> None:
    (found,) = read("a: &a {x: 1, y: 1, z: 1}\nb: &b {<<: *a, x: 2, y: 2}\nc: {z: 3, <<: [*b, *a]}\n")
    assert found.tree["c"] == {"x": 2, "y": 2, "z": 3}


def test_only_objects_are_merged() -> None:
    with pytest.raises(UnreadableError, match="`<<` can bring objects only"):
        list(read("a: {<<: [1]}\n"))
