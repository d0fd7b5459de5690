from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.code.stage import ship
from trainplane.client.code import gitignore, payload, workspace
from trainplane.client.code.payload import File
from trainplane.client.code.shipment import ship_script
from trainplane.client.errors import CodeError
from trainplane.client.types.trainers import Workspace

if TYPE_CHECKING:
    from tests.unit.client.code.stage import Laptop, Node


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.log", "a.log", True),
        ("*.log", "deep/er/a.log", True),
        ("*.log", "a.logs", False),
        ("/a", "a", True),
        ("/a", "b/a", False),
        ("a/b", "a/b", True),
        ("a/b", "x/a/b", False),
        ("**/b", "x/y/b", True),
        ("**/b", "b", True),
        ("a/**", "a/x/y", True),
        ("a/**", "a", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a*c", "a/c", False),
        ("[ab].py", "a.py", True),
        ("[!ab].py", "a.py", False),
        ("[!ab].py", "c.py", True),
        (r"\#x", "#x", True),
        (r"\!x", "!x", True),
        ("# comment", "# comment", False),
        ("a.b", "aXb", False),
        ("trailing   ", "trailing", True),
        ("dir/", "dir", False),
    ],
)
def test_patterns_mean_what_they_mean_to_git(pattern: str, path: str, matches: bool) -> None:
    assert gitignore.ignores(gitignore.parse([pattern]), path, is_folder=False) is matches


def test_the_last_word_counts() -> None:
    rules = gitignore.parse(["*.bin", "!keep.bin", "dir/"])
    assert gitignore.ignores(rules, "x.bin", is_folder=False)
    assert not gitignore.ignores(rules, "keep.bin", is_folder=False)
    assert gitignore.ignores(rules, "a/dir", is_folder=True)


@pytest.mark.finding("hub-and-sdk", 6, "tokens in code, requirements and files of the workspace were shipped")
def test_caches_secrets_and_ignored_files_stay(laptop: Laptop) -> None:
    for path in (
        "train.py",
        "conf/a.yaml",
        ".git/config",
        "__pycache__/a.pyc",
        "venv/lib/x.py",
        "venv/pyvenv.cfg",
        ".env",
        ".env.local",
        "data/big.bin",
        "data/keep.bin",
        "sub/tmp/x",
        "sub/y",
        "logs/l.txt",
        "own.txt",
        ".hidden",
    ):
        laptop.write(path, "x")
    laptop.write(".gitignore", "*.bin\n")
    laptop.write(".trainplaneignore", "!keep.bin\nlogs\n")
    laptop.write("sub/.gitignore", "/tmp\n")
    (laptop.folder / "linked.txt").symlink_to(laptop.folder / "own.txt")
    (laptop.folder / "loop").symlink_to(laptop.folder)
    (laptop.folder / "broken").symlink_to(laptop.folder / "nowhere")
    (laptop.folder / "train.py").chmod(0o755)
    files = workspace.read(Workspace(laptop.folder, ignore=["own.txt"]))
    assert list(files) == [
        ".gitignore",
        ".hidden",
        ".trainplaneignore",
        "conf/a.yaml",
        "data/keep.bin",
        "linked.txt",
        "sub/.gitignore",
        "sub/y",
        "train.py",
    ]
    assert files["train.py"].executable
    assert not files["sub/y"].executable


def test_a_script_runs_in_its_workspace(laptop: Laptop, node: Node) -> None:
    laptop.write("proj/conf/a.txt", "settings")
    laptop.write("proj/lib/__init__.py", "WORD = 'lib'")
    laptop.write(
        "proj/jobs/train.py",
        """
        import os, sys
        import lib
        import beside
        print(open("conf/a.txt").read(), lib.WORD, beside.WORD, sys.argv[1:], os.path.basename(os.getcwd()))
        """,
    )
    laptop.write("proj/jobs/beside.py", "WORD = 'beside'")
    shipment = ship_script("jobs/train.py", ["--rate", "$HOME", "$(X)"], folder=laptop.folder / "proj")
    assert node.says(shipment) == "settings lib beside ['--rate', '$HOME', '$(X)'] workspace\n"
    assert shipment.annotations["trainplane.dev/function"] == "jobs/train.py"


def test_a_function_finds_the_files_beside_its_module(laptop: Laptop, node: Node) -> None:
    """A module of the workspace is shipped once, in its place."""
    laptop.write("src/mine/__init__.py", "")
    laptop.write("src/mine/data.txt", "beside")
    laptop.write("top.txt", "top")
    laptop.write(
        "src/mine/train.py",
        """
        from pathlib import Path
        def train():
            print((Path(__file__).parent / "data.txt").read_text(), Path("top.txt").read_text())
        """,
    )
    import sys  # noqa: PLC0415 for this test alone

    sys.path.insert(0, str(laptop.folder / "src"))
    try:
        shipment = ship(laptop.function("mine.train"), folder=laptop.folder)
    finally:
        del sys.path[0]
    assert not [path for path in shipment.files if path.startswith("code/")]
    assert node.says(shipment) == "beside top\n"


def test_modules_outside_the_workspace_go_along_too(laptop: Laptop, node: Node) -> None:
    laptop.write("proj/a.txt", "a")
    laptop.write("outside.py", "def train():\n    print(open('a.txt').read())\n")
    assert node.says(ship(laptop.function("outside"), folder=laptop.folder / "proj")) == "a\n"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("none.py", r"script 'none.py' is no file in .*laptop: name it relative to the workspace"),
        ("../x.py", r"script '../x.py' is no file in .*laptop"),
        ("left.py", "script 'left.py' stays behind by an ignore file"),
    ],
)
def test_a_script_that_is_not_there(laptop: Laptop, script: str, message: str) -> None:
    laptop.write("left.py", "")
    laptop.write(".gitignore", "left.py")
    with pytest.raises(CodeError, match=message):
        ship_script(script, folder=laptop.folder)


def test_a_folder_that_is_not_there(laptop: Laptop) -> None:
    with pytest.raises(CodeError, match=r"workspace 'no/where' is no folder here \(in /"):
        ship_script("x", folder="no/where")


def test_arguments_must_be_texts(laptop: Laptop) -> None:
    laptop.write("a.py", "")
    with pytest.raises(CodeError, match=r"args of a\.py must be texts, as on a command line, and are"):
        ship_script("a.py", [3], folder=laptop.folder)  # type: ignore[list-item] # that is the point


def noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)  # noqa: S311 no secret, only something that does not compress


def test_large_code_goes_in_chunks_that_linux_takes(laptop: Laptop, node: Node) -> None:
    (laptop.folder / "noise.bin").write_bytes(noise(600 * 1024))
    laptop.write("train.py", "import zlib\nprint(zlib.crc32(open('noise.bin', 'rb').read()))\n")
    shipment = ship_script("train.py", folder=laptop.folder)
    assert len(shipment.args) > 8
    assert max(map(len, shipment.args)) < 128 * 1024
    import zlib  # noqa: PLC0415 for this test alone

    assert node.says(shipment) == f"{zlib.crc32(noise(600 * 1024))}\n"


def test_code_that_is_too_large_names_the_largest_files() -> None:
    files = {"big.bin": File(noise(700 * 1024)), "small.py": File(b"x"), "mid.bin": File(noise(4096))}
    with pytest.raises(CodeError) as caught:
        payload.pack(files)
    message = str(caught.value)
    assert "KiB when packed, and 900 KiB can be" in message
    assert "The largest files: big.bin (700 KiB), mid.bin (4 KiB), small.py (0 KiB)." in message
    assert ".trainplaneignore" in message


def test_a_huge_workspace_is_not_even_read(laptop: Laptop) -> None:
    with (laptop.folder / "huge.bin").open("wb") as file:
        os.truncate(file.fileno(), 100 * 1024 * 1024)
    with pytest.raises(
        CodeError, match=r"it is 100 MiB before it is packed. The largest files: huge.bin \(102400 KiB\)"
    ):
        workspace.read(laptop.folder)


def test_packing_gives_the_same_every_time() -> None:
    files = {"b": File(b"2"), "a": File(b"1", executable=True)}
    assert payload.pack(files) == payload.pack(dict(reversed(files.items())))
    assert payload.pack(files) != payload.pack({**files, "a": File(b"1")})
