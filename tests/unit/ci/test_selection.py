"""What the gate runs: the fixed set, what changed last, and a share that the tree draws."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests import selection
from tests.selection import CHANGED_FILES, Selection, is_named, select

if TYPE_CHECKING:
    from pathlib import Path

LIVE = [f"tests/fleet/test_{number}.py" for number in range(100)]


def chosen(tree: str = "a", newest: tuple[str, ...] = ()) -> Selection:
    return select(["tests/unit/test_a.py", *LIVE], ["tests/unit"], newest, tree)


@pytest.mark.parametrize(
    ("test", "entry", "named"),
    [
        ("tests/unit/a/test_b.py::test_c", "tests/unit", True),
        ("tests/unit/a/test_b.py", "tests/unit/a/test_b.py", True),
        ("tests/unit/a/test_b.py::test_c[1]", "tests/unit/a/test_b.py::test_c", True),
        ("tests/unit/a/test_b.py::test_cd", "tests/unit/a/test_b.py::test_c", False),
        ("tests/units/test_b.py::test_c", "tests/unit", False),
        ("tests/unit/a/test_b.py", "tests/unit/a/test_b.py::test_c", False),
    ],
)
def test_entry_names_its_folder_file_and_function_alone(test: str, entry: str, named: bool) -> None:
    assert is_named(test, (entry,)) is named


def test_same_tree_draws_the_same_share() -> None:
    assert chosen() == chosen()


def test_other_tree_draws_another_share() -> None:
    assert chosen("a").share != chosen("b").share


def test_share_is_about_a_tenth_of_other_files() -> None:
    drawn = [len(chosen(str(number)).share) for number in range(20)]
    assert 0.08 * len(LIVE) < sum(drawn) / len(drawn) < 0.12 * len(LIVE)


def test_ten_trees_draw_most_files() -> None:
    drawn = {file for number in range(10) for file in chosen(str(number)).share}
    assert len(drawn) > 0.5 * len(LIVE)


def test_changed_files_run_newest_first_up_to_their_bound() -> None:
    found = chosen(newest=("tests/suite.py", "tests/unit/test_a.py", *LIVE[7:70]))
    assert found.changed == tuple(LIVE[7 : 7 + CHANGED_FILES])
    assert not set(found.changed) & set(found.share)


def test_kind_of_a_test_is_why_it_runs() -> None:
    found = chosen(newest=(LIVE[3],))
    (left_out, *_) = set(LIVE) - {*found.changed, *found.share}
    assert found.kind("tests/unit/test_a.py::test_b[1]") == "fixed"
    assert found.kind(f"{LIVE[3]}::test_b") == "changed"
    assert found.kind(f"{found.share[0]}::test_b") == "share"
    assert found.kind(f"{left_out}::test_b") is None


def test_entries_of_the_fixed_set_exist() -> None:
    for entry in selection.read_fixed():
        file, _, function = entry.partition("::")
        path = selection.REPOSITORY / file
        assert path.exists(), f"{selection.FIXED}: {entry} does not exist: correct or remove the line"
        name = function.partition("[")[0]
        assert not name or f"def {name}(" in path.read_text(), f"{selection.FIXED}: no such test: {entry}"


def test_shallow_clone_has_no_changed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    (origin / "tests").mkdir(parents=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "init", "--quiet"], cwd=origin, check=True)
    for number in range(3):
        (origin / f"tests/test_{number}.py").write_text("")
        subprocess.run(["git", "add", "."], cwd=origin, check=True)
        subprocess.run(["git", *author, "commit", "--quiet", "--message=a"], cwd=origin, check=True)
    monkeypatch.setattr(selection, "REPOSITORY", origin)
    assert selection._newest() == [f"tests/test_{number}.py" for number in (2, 1, 0)]
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{origin}", clone], check=True)
    monkeypatch.setattr(selection, "REPOSITORY", clone)
    assert selection._newest() == []
    assert "shallow clone" in capsys.readouterr().err
