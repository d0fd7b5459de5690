from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.initializers.conftest import Step

FILES = {"a.txt": b"one", "deep/er/b.bin": b"2" * 3_000_000, "empty": b"", "deep/c.pt": b"3"}


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    root = tmp_path / "pvc" / "shared"
    for name, content in FILES.items():
        path = root / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "set-2").mkdir()
    (root / "set-2" / "sibling").write_text("not wanted")
    return root


def test_a_folder_of_a_claim_arrives(step: Step, claim: Path) -> None:
    outcome = step.run("pvc://shared/set", PVC_ROOT=str(claim.parent))
    assert outcome.code == 0, outcome
    assert step.content() == FILES


def test_one_file_arrives(step: Step, claim: Path) -> None:
    assert step.run(f"file://{claim}/set/a.txt", "model").code == 0
    assert step.content() == {"a.txt": b"one"}


def test_patterns_choose(step: Step, claim: Path) -> None:
    outcome = step.run(f"file://{claim}/set", ALLOW_PATTERNS="*.txt, deep/", IGNORE_PATTERNS="*.pt")
    assert outcome.code == 0, outcome
    assert set(step.content()) == {"a.txt", "deep/er/b.bin"}
    nothing = step.run(f"file://{claim}/set", ALLOW_PATTERNS="*.parquet")
    assert nothing.cause == "Occupied"


def test_patterns_that_want_nothing_fail(step: Step, claim: Path) -> None:
    outcome = step.run(f"file://{claim}/set", ALLOW_PATTERNS="*.parquet")
    assert outcome.cause == "NotFound"
    assert "patterns" in outcome.message


def test_a_claim_that_is_not_mounted_names_the_mount(step: Step) -> None:
    outcome = step.run("pvc://nowhere/set")
    assert (outcome.cause, outcome.code) == ("NotFound", 1)
    assert "mounts it at /pvc/nowhere" in outcome.message.lower()


def test_a_link_out_of_the_folder_is_refused(step: Step, claim: Path) -> None:
    (claim / "set" / "token").symlink_to(claim / "set-2" / "sibling")
    assert step.run(f"file://{claim}/set").cause == "Hostile"
    (claim / "set" / "token").unlink()
    (claim / "set" / "same").symlink_to("a.txt")
    assert step.run(f"file://{claim}/set").code == 0
    assert step.content() == {**FILES, "same": b"one"}


@pytest.mark.parametrize(
    "uri", ["file://host/x", "file:///a/../b", "pvc:///x", "pvc://a:b@c/x", "pvc://c/../../etc", "file:///a%00b"]
)
def test_a_uri_that_means_nothing_is_refused(step: Step, uri: str) -> None:
    assert step.run(uri).cause == "Invalid"


def test_what_others_planted_on_the_volume_is_not_written_through(step: Step, claim: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    step.folder.mkdir()
    (step.folder / "deep").symlink_to(outside)
    outcome = step.run(f"file://{claim}/set")
    assert outcome.cause == "Volume"
    assert list(outside.iterdir()) == []


def test_a_file_that_the_source_no_longer_has_goes_when_a_run_is_taken_up(step: Step, claim: Path) -> None:
    """The first run dies before its marker; what it brought of a file that is gone is no part of the source."""
    assert step.run(f"file://{claim}/set").code == 0
    (step.folder / ".trainplane" / "complete").unlink()
    (step.folder / "of-a-person").write_text("kept")
    (claim / "set" / "a.txt").unlink()
    (claim / "set" / "empty").write_bytes(b"longer")
    assert step.run(f"file://{claim}/set").code == 0
    expected = {**FILES, "empty": b"longer", "of-a-person": b"kept"}
    del expected["a.txt"]
    assert step.content() == expected


def test_what_an_unfinished_run_for_something_else_brought_is_no_part_of_this_one(step: Step, claim: Path) -> None:
    assert step.run(f"file://{claim}/set-2").code == 0
    (step.folder / ".trainplane" / "complete").unlink()
    (step.folder / "of-a-person").write_text("kept")
    assert step.run(f"file://{claim}/set").code == 0
    assert step.content() == {**FILES, "of-a-person": b"kept"}


@pytest.mark.parametrize(
    "line",
    ['{"file": ["x", "../../outside", 3]}', '{"part": ["x", "y"]}', '{"file": 1}', "[]", "null", '{"part": ["x', "\0"],
)
def test_a_journal_that_others_wrote_to_does_no_harm(step: Step, claim: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "outside").write_text("abc")
    assert step.run(f"file://{claim}/set").code == 0
    (step.folder / ".trainplane" / "complete").unlink()
    with (step.folder / ".trainplane" / "journal").open("a") as journal:
        journal.write(line + "\n" + line)
    assert step.run(f"file://{claim}/set").code == 0
    assert step.content() == FILES
    assert (tmp_path / "outside").read_text() == "abc"
    assert "nothing to do" in step.run(f"file://{claim}/set").out
