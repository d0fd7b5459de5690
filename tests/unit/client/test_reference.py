"""docs/reference.py: the page has every public name, and is as the code is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pytest

from docs import reference
from trainplane import client, options

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def page() -> str:
    return reference.write_page()


def test_the_page_in_docs_is_as_the_code_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_page_is_told_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    path.write_text("old")
    assert reference.main(["--check", str(path)]) == 1
    assert "is stale: run `make manifests`" in capsys.readouterr().err
    assert path.read_text() == "old"
    assert reference.main([str(path)]) == 0
    assert reference.main(["--check", str(path)]) == 0


def test_a_public_name_without_a_place_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(client, "__all__", [*client.__all__, "Brand_New"])
    monkeypatch.setattr(client, "Brand_New", "x", raising=False)
    assert reference.main([str(tmp_path / "page.md")]) == 1
    assert "Brand_New" in capsys.readouterr().err


def test_every_type_stands_there_with_every_field(page: str) -> None:
    for module in (client, options):
        for name in module.__all__:
            value: Any = getattr(module, name)
            for one in fields(value) if hasattr(value, "__dataclass_fields__") else ():
                section = page.partition(f"### `{name}`")[2].partition("\n##")[0]
                assert not one.init or f"| `{one.name}` |" in section, f"{name}.{one.name}"


def test_every_method_stands_there_in_both_forms(page: str) -> None:
    for name in vars(client.AsyncTrainerClient):
        if not name.startswith("_"):
            section = page.partition(f"### `{name}`")[2].partition("\n##")[0]
            assert re.search(rf"`(for \w+ in )?client\.{name}\(.*\)` · `(await|async for \w+ in) client", section), name


def test_tables_are_whole(page: str) -> None:
    rows = [line for line in page.splitlines() if line.startswith("|")]
    blocks = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    assert sum(block.count("\n") for block in blocks) == len(rows)
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block


def test_links_lead_somewhere(page: str) -> None:
    headings = {line.removeprefix("## ").lower() for line in page.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\]\(#(\w+)\)", page)) == headings


@dataclass
class Sample:
    """A type."""

    plain: int
    """Words that
    go on."""
    bare: str | None = None
    listed: list[int] = field(default_factory=lambda: [1])
    """A list."""
    hidden: int = field(default=1, init=False)


def test_fields_have_the_words_below_them_and_their_defaults() -> None:
    found = [(one.name, one.kind, one.default, one.words) for one in reference._fields(Sample)]
    assert found == [
        ("plain", "int", None, "Words that go on."),
        ("bare", "str | None", "None", ""),
        ("listed", "list[int]", "[1]", "A list."),
    ]


def test_long_signatures_have_an_argument_to_a_line() -> None:
    async def short(self: Any, name: str, *, tail: int | None = None) -> str:
        return name

    assert reference._signature("short", short) == "short(name: str, *, tail: int | None = None) -> str"
    shown = reference._signature("train", client.AsyncTrainerClient.train)
    assert shown.splitlines()[1] == "    runtime: str | Runtime | None = None,"


def test_sections_of_docstrings_become_lists() -> None:
    text = "Do it.\n\nArgs:\n    name: The\n        name.\n    other: It.\n\nRaises:\n    ValueError: no."
    assert (
        reference._words(text) == "Do it.\n\nArgs:\n- `name`: The name.\n- `other`: It.\n\nRaises:\n- `ValueError`: no."
    )
