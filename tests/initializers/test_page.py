"""What docs/data.md shows as a command is run as it stands there, on servers here in the place of those it names."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pytest

from tests.fenced import blocks
from tests.initializers import emulators
from tests.unit.initializers.hubwrite import WritableHub
from tests.unit.initializers.servers import Site, hub, serving
from tests.unit.initializers.versity import KEY, SECRET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.initializers.versity import Store

PAGE = Path(__file__).parents[2] / "docs/data.md"
SET = {"train.parquet": b"rows of a table", "deep/test.parquet": b"other rows"}
COMMANDS = [block for block in blocks(PAGE, "sh") if "trainplane.initializers" in block]


def scheme(command: str) -> str:
    """Return the scheme that a command reads or writes."""
    found = re.search(r"_URI='?(\w+)://", command)
    assert found is not None, command
    return found[1]


def direction(command: str) -> str:
    """Return whether it brings or sends."""
    return "out" if "OUTPUT_URI" in command else "in"


class Here:
    """Servers and folders in the place of those that the page names."""

    def __init__(self, tmp: Path, store: Store, stack: ExitStack) -> None:
        self.tmp, self.store, self.stack = tmp, store, stack
        self.words: dict[str, str] = {}
        """What the page says → what is said here."""
        self.env: dict[str, str] = {}
        self.hub = Site()
        """One that is written to."""

    def s3(self) -> None:
        for name, content in SET.items():
            obstore.put(self.store.bucket, f"sets/alpaca/{name}", content)
        self.words = {
            "https://minio.example.org": self.store.endpoint,
            "=reader": f"={KEY}",
            "=its-secret": f"={SECRET}",
        }

    def hf(self) -> None:
        files = {f"tatsu-lab/alpaca/{name}": content for name, content in SET.items()}
        self.env["HF_ENDPOINT"] = self.stack.enter_context(hub(Site(files), Site(files))).url

    def hf_out(self) -> None:
        self.hub = self.stack.enter_context(serving(Site(token="hf_of-a-writer"), WritableHub))
        self.env["HF_ENDPOINT"] = self.hub.url

    def https(self) -> None:
        site = self.stack.enter_context(serving(Site({"train.parquet": SET["train.parquet"]})))
        self.words = {"https://example.org": site.url, "<64 digits>": hashlib.sha256(SET["train.parquet"]).hexdigest()}

    def pvc(self) -> None:
        write(self.tmp / "pvc/datasets/alpaca", SET)
        (self.tmp / "pvc/models").mkdir()
        self.env["PVC_ROOT"] = str(self.tmp / "pvc")

    def file(self) -> None:
        write(self.tmp / "data/alpaca", SET)
        self.words = {"file:///data": f"file://{self.tmp}/data"}

    def gs(self) -> None:
        objects = {f"sets/alpaca/{name}": content for name, content in SET.items()}
        self.env |= self.stack.enter_context(emulators.google(self.tmp / "google", objects)).google

    def az(self) -> None:
        emulator = self.stack.enter_context(emulators.azure(self.tmp / "azure"))
        self.env["ENDPOINT"] = emulator.azure["ENDPOINT"]
        self.words = {"=trainings": f"={emulators.ACCOUNT}", "=its-key": f"={emulators.ACCOUNT_KEY}"}


HERE: dict[str, Callable[[Here], None]] = {
    "hf-out": Here.hf_out,
    "s3": Here.s3,
    "hf": Here.hf,
    "https": Here.https,
    "pvc": Here.pvc,
    "file": Here.file,
    "gs": Here.gs,
    "az": Here.az,
}
EMULATED = ("gs", "az")
"""Those whose servers are there with FULL=1."""
NOT_HERE = {("gs", "out")}
"""What the page says was not run."""


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".trainplane" not in path.parts
    }


@contextmanager
def here(tmp: Path, store: Store, name: str) -> Iterator[Here]:
    with ExitStack() as stack:
        place = Here(tmp, store, stack)
        HERE[name](place)
        yield place


def run(place: Here, command: str) -> None:
    for word, here in place.words.items():
        command = command.replace(word, here)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **place.env}
    ended = subprocess.run(
        ["bash", "-euc", command], cwd=place.tmp, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    (place.tmp / "said.out").write_text(ended.stdout + ended.stderr)
    assert ended.returncode == 0, ended
    assert '"unsent"' not in ended.stdout, ended


def test_every_scheme_has_an_example() -> None:
    ways = {(scheme(command), direction(command)) for command in COMMANDS}
    assert {name for name, way in ways if way == "in"} == {"hf", "s3", "gs", "az", "https", "pvc", "file"}
    assert {name for name, way in ways if way == "out"} == {"hf", "s3", "gs", "az", "pvc"}


def examples(way: str) -> list[Any]:
    """Return the page's commands of a direction, as parameters of a test."""
    return [
        pytest.param(command, id=scheme(command), marks=[pytest.mark.full] if scheme(command) in EMULATED else [])
        for command in COMMANDS
        if direction(command) == way and (scheme(command), way) not in NOT_HERE
    ]


@pytest.mark.parametrize("command", examples("in"))
def test_an_example_of_the_page_brings_what_it_says(tmp_path: Path, store: Store, command: str) -> None:
    name = scheme(command)
    with here(tmp_path, store, name) as place:
        if name == "az":
            write(tmp_path / "model", SET)
            run(place, example("az", "out"))
            command = command.replace("sets/alpaca", "tuned/alpaca")
        run(place, command)
    (folder,) = re.findall(r"initializers \w+ \./(\S+)", command)
    expected = {"train.parquet": SET["train.parquet"]} if name == "https" else SET
    assert contents(tmp_path / folder).items() >= expected.items()


@pytest.mark.parametrize("command", examples("out"))
def test_an_example_of_the_page_sends_what_it_says(tmp_path: Path, store: Store, command: str) -> None:
    name = scheme(command)
    write(tmp_path / "model", SET)
    with here(tmp_path, store, "hf-out" if name == "hf" else name) as place:
        run(place, command)
    if name == "hf":
        sent_names = {path.removeprefix("tuned/alpaca/") for path in place.hub.files}
        assert sent_names >= {*SET, "trainplane-output.json"}
    sent = {"s3": store.root / "bucket/tuned/alpaca", "pvc": tmp_path / "pvc/models/tuned/alpaca"}.get(name)
    if sent is not None:
        assert contents(sent).items() >= SET.items()
        assert (sent / "trainplane-output.json").exists()


def example(name: str, way: str) -> str:
    """Return the page's command for a scheme and direction."""
    (found,) = [command for command in COMMANDS if (scheme(command), direction(command)) == (name, way)]
    return found
