from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.initializers import paths
from trainplane.initializers.errors import HostileError, VolumeError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["a", "a/b.c", "ü/日本", "...", "a b", "-rf", "~", ".gitattributes", "x/.trainplane"])
def test_an_honest_name_stays_as_it_is(name: str) -> None:
    assert paths.safe(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            "a\0b",
            "a\nb",
            "a\\..\\b",
            "\ud800",
            "\x7f",
        ),
        *(".trainplane/journal", ".TRAINPLANE/complete", "x" * 256, "日" * 86, "a/" * 100 + "a"),
        "/".join(["x" * 200] * 11),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(HostileError):
        paths.safe(name)


@given(st.text(max_size=40) | st.from_regex(r"[./a\\]{0,12}", fullmatch=True))
def test_whatever_is_let_through_stays_below_the_folder(name: str) -> None:
    from pathlib import PurePosixPath  # noqa: PLC0415 here alone

    try:
        path = PurePosixPath("/target") / paths.safe(name)
    except HostileError:
        return
    assert path.parts[:2] == ("/", "target")
    assert not {"..", "."} & set(path.parts)
    assert str(path) == f"/target/{name}"


@pytest.mark.parametrize(
    ("names", "case_matters", "fine"),
    [
        (["a", "b", "c/a"], True, True),
        (["a", "a"], True, False),
        (["a", "a/b"], True, False),
        (["a/b/c", "a"], True, False),
        (["Model", "model"], True, True),
        (["Model", "model"], False, False),
        (["Model/x", "model"], False, False),
        (["caf\u00e9", "cafe\u0301"], False, False),
    ],
)
def test_two_files_in_one_place_are_refused(names: list[str], case_matters: bool, fine: bool) -> None:
    if fine:
        paths.check_collisions(names, case_matters=case_matters)
        return
    with pytest.raises(HostileError):
        paths.check_collisions(names, case_matters=case_matters)


def test_links_on_the_volume_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "file").symlink_to(outside / "file")
    with pytest.raises(VolumeError):
        paths.make_parents(folder, "link/deep/file")
    assert paths.size_there(folder, "link/file") is None
    assert paths.size_there(folder, "file") is None
    assert paths.case_matters(folder)
