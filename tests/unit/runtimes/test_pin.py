"""The images of the shipped runtimes stand in one place."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "runtimes"
LIST = "# a comment\nnode example.com/node:1\nside example.com/side:2\n"
RUNTIME = """\
containers:
  - name: node
    image: old/node # images.txt: node
  - image: old/side:9 # images.txt: side
    command: ["echo", "image: kept"]
"""


def load() -> Any:
    spec = importlib.util.spec_from_file_location("pin", FOLDER / "pin.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pin = load()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "images.txt").write_text(LIST)
    (tmp_path / "mine.yaml").write_text(RUNTIME)
    return tmp_path


def test_the_shipped_ones_are_up_to_date() -> None:
    assert pin.main(["--check"]) == 0


def test_images_are_written_and_nothing_else(folder: Path) -> None:
    assert pin.main([str(folder)]) == 0
    assert (folder / "mine.yaml").read_text() == RUNTIME.replace("old/node", "example.com/node:1").replace(
        "old/side:9", "example.com/side:2"
    )
    assert pin.main(["--check", str(folder)]) == 0


def test_a_check_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pin.main(["--check", str(folder)]) == 1
    assert (folder / "mine.yaml").read_text() == RUNTIME
    assert "mine.yaml has other images than images.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("runtime", "images", "said"),
    [
        ("image: a\n", LIST, "an image has no name"),
        ("image: a # images.txt: nobody\n", LIST, "images.txt has no nobody"),
        (RUNTIME, f"{LIST}more example.com/more:3\n", "no runtime has the image more"),
    ],
)
def test_what_cannot_be_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], runtime: str, images: str, said: str
) -> None:
    (folder / "mine.yaml").write_text(runtime)
    (folder / "images.txt").write_text(images)
    assert pin.main([str(folder)]) == 1
    assert said in capsys.readouterr().err


def test_our_own_images_are_of_this_version() -> None:
    version = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"]["version"]
    ours = [line for line in (FOLDER / "images.txt").read_text().splitlines() if "/trainplane/" in line]
    assert ours == [f"{name} ghcr.io/trainplane/{name}:v{version}" for name in ("initializers", "cache")]
