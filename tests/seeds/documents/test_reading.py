"""The rules by which documents are read, on a page made up here: they hold in a clone without the documents, too."""

from __future__ import annotations

from tests.seeds.documents.commands import command_of
from tests.seeds.documents.reading import Statement, pieces

PAGE = """\
---
title: not read
---
A heading
This is one sentence that says something.
Then a block:
```bash
kubectl get nodes
```
apiVersion: example.com/v1
kind: Thing
spec:
- |
echo hello
Another heading
from somewhere import (
Names, Others,
)
name = Names().make(
one=1,
)
After it another sentence with enough words.
helm install it there \\
--namespace here
| What | Why |
|---|---|
one | because |
two | also because |
Name Type Description
field string what it is for

Key points:
- First: use
kubectl get podsshows nothing (Alone) - Second:
kubectl describe pod <name>— tells all
first(a)— does this
one(b)— and thattwo(c)— and more
- last — with a dash
"""


def test_each_piece_is_told_apart() -> None:
    assert [(kind, text.splitlines()[0]) for kind, text in pieces(PAGE)] == [
        ("sentence", "This is one sentence that says something."),
        ("command", "kubectl get nodes"),
        ("yaml", "apiVersion: example.com/v1"),
        ("python", "from somewhere import ("),
        ("sentence", "After it another sentence with enough words."),
        ("command", "helm install it there \\"),
        ("row", "one | because |"),
        ("row", "two | also because |"),
        ("row", "field string what it is for"),
        ("item", "First: use kubectl get podsshows nothing (Alone)"),
        ("item", "Second: kubectl describe pod <name>— tells all first(a)— does this one(b)— and thattwo(c)— and more"),
        ("item", "last — with a dash"),
    ]


def test_a_piece_has_all_its_lines() -> None:
    texts = {kind: text for kind, text in pieces(PAGE) if kind in {"yaml", "python"}}
    assert texts["yaml"].splitlines()[-1] == "echo hello"
    assert texts["python"].splitlines()[-1] == ")"


def test_entries_that_were_run_together_are_one_for_each_dash() -> None:
    found = list(pieces("Heading\na(x)— does thisb(y)— does thatc(z)— ends"))
    assert found == [
        ("item", "a(x)— does thisb(y)"),
        ("item", "does thisb(y)— does thatc(z)"),
        ("item", "does thatc(z)— ends"),
    ]


def test_white_space_is_no_change_and_a_word_is() -> None:
    one, same, other = (Statement("000", "row", 1, text).digest for text in ("a | b", "a |  b\n", "a | c"))
    assert one == same != other


def test_a_command_ends_where_the_next_word_was_run_into_it() -> None:
    assert command_of(Statement("000", "item", 1, "Look: kubectl get jobsetsshows them")) == ["get", "jobsets"]
    said = Statement("000", "item", 2, "before itkubectl logs <pod> -c node— says more")
    assert command_of(said, pod="mine") == ["logs", "mine", "-c", "node"]
