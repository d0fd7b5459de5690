"""How a page is read: a page that is misread would pass whatever it says."""

from __future__ import annotations

import pytest

from tests.fleet.guide.page import Page, says

_PAGE = Page("""# Title

```sh
first
```
## Part one
```sh
second
```
```text
two
```
```yaml
a: 1
```
```text
not what anything prints
```

```sh
third
```

```text
apart, so not what the third prints
```
## Table
Words.

| a | b |
|---|---|
| `x` | y |
| z | |

| another | table |
""")


def test_commands_come_in_order_with_their_lines_and_sections() -> None:
    found = [(command.line, command.section, command.script) for command in _PAGE.commands()]
    assert found == [(3, "", "first\n"), (7, "Part one", "second\n"), (20, "Part one", "third\n")]


def test_a_command_prints_what_follows_it_at_once() -> None:
    assert [command.prints for command in _PAGE.commands()] == [None, "two\n", None]


def test_a_table_is_the_first_below_its_heading() -> None:
    assert _PAGE.table("Table") == [("`x`", "y"), ("z", "")]


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a b\n", "a    b\n"),
        ("a\n", "a   \n"),
        ("age …\n", "age 3s\n"),
        ('on "…"\nb\n', 'on "east"\nb\n'),
        ("… c\n", "a\nb c\n"),
    ],
)
def test_what_a_page_shows_is_what_is_printed(expected: str, printed: str) -> None:
    assert says(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a\n", "a\nb\n"),
        ("a\nb\n", "a\n"),
        ("a b\n", "ab\n"),
        ("yes\n", "no\n"),
        ("a.c\n", "abc\n"),
        ("True …\n", "False 3s\n"),
    ],
)
def test_what_a_page_shows_differs_from_what_is_printed(expected: str, printed: str) -> None:
    assert not says(expected, printed)
