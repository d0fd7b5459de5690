"""What is sent of a folder, to a claim; what is refused, and what is said."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers.sending import check, contents
from trainplane.initializers.errors import ChangedError
from trainplane.initializers.outputs.folder import OutputFolder
from trainplane.initializers.outputs.manifest import CHECKPOINT, FINAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.initializers.conftest import Step
    from tests.unit.initializers.sending import Ended, Output

FILES = {
    "model.safetensors": b"2" * 3_000_000,
    "config.json": b"{}",
    "checkpoint-1/state": b"3",
    "checkpoint-1/deep/x": b"",
    "checkpoint-2/state": b"4",
}


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    (tmp_path / "pvc" / "models").mkdir(parents=True)
    return tmp_path / "pvc" / "models"


def send(output: Output, claim: Path, uri: str = "pvc://models/runs/1", **env: str) -> Ended:
    return output.send(uri, {"PVC_ROOT": str(claim.parent), **env})


def test_a_folder_arrives_with_its_manifest(output: Output, claim: Path) -> None:
    output.write(FILES)
    told = {"namespace": "team", "name": "tune", "uid": "1-2", "runtime": "torchtune"}
    ended = send(output, claim, OUTPUT_PROVENANCE=json.dumps(told))
    there = contents(claim / "runs/1")
    manifest = check(there, FILES)
    assert manifest is not None, ended
    size = sum(map(len, FILES.values()))
    assert ended.message == {
        "output": "sent",
        "uri": "pvc://models/runs/1",
        "files": 5,
        "bytes": size,
        "digest": ended.message["digest"],
    }
    assert manifest["provenance"] == {**told, "data": {}}
    assert [checkpoint["path"] for checkpoint in manifest["checkpoints"]] == ["checkpoint-1", "checkpoint-2"]
    assert set(there) - set(FILES) == {FINAL, f"checkpoint-1/{CHECKPOINT}", f"checkpoint-2/{CHECKPOINT}"}
    again = send(output, claim, OUTPUT_PROVENANCE=json.dumps(told))
    assert again.message == ended.message
    assert "sent 0 B" in again.said


def test_which_data_it_was_trained_on_is_told(output: Output, claim: Path, step: Step, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a").write_text("a")
    step.folder = output.folder.parent / "dataset"
    assert step.run(f"file://{tmp_path}/set").code == 0
    output.write(FILES)
    (output.folder.parent / "model/.trainplane").mkdir(parents=True)
    os.mkfifo(output.folder.parent / "model/.trainplane/complete")
    assert send(output, claim).output == "sent"
    told = json.loads((claim / "runs/1" / FINAL).read_text())["provenance"]["data"]
    assert told["dataset"]["uri"] == f"file://{tmp_path}/set"
    assert (told["dataset"]["files"], told["dataset"]["bytes"]) == (1, 1)
    assert len(told["dataset"]["digest"]) == 64
    assert set(told) == {"dataset"}


def test_an_older_output_loses_its_manifest_before_its_files(output: Output, claim: Path) -> None:
    output.write(FILES)
    assert send(output, claim).output == "sent"
    (output.folder / ".trainplane/sent").unlink()
    for path in ("model.safetensors", "checkpoint-1/state"):
        (output.folder / path).write_bytes(b"newer")
    os.mkfifo(output.folder / "pipe")
    ended = send(output, claim)
    assert (ended.output, ended.cause) == ("unsent", "Invalid")
    assert not (claim / "runs/1" / FINAL).exists()
    there = contents(claim / "runs/1")
    assert check(there, {}) is None
    assert there["model.safetensors"] == b"newer"
    (output.folder / "pipe").unlink()
    assert send(output, claim).output == "sent"
    assert check(contents(claim / "runs/1"), output.content())


def test_what_was_sent_and_is_gone_is_sent_again(output: Output, claim: Path) -> None:
    output.write(FILES)
    assert send(output, claim).output == "sent"
    (claim / "runs/1/model.safetensors").unlink()
    assert send(output, claim).output == "sent"
    assert check(contents(claim / "runs/1"), FILES)


def test_a_file_that_went_since_is_not_in_the_manifest(output: Output, claim: Path) -> None:
    output.write(FILES)
    assert send(output, claim).output == "sent"
    (output.folder / "config.json").unlink()
    assert send(output, claim).output == "sent"
    manifest = check(contents(claim / "runs/1"), {name: body for name, body in FILES.items() if name != "config.json"})
    assert manifest is not None


def test_links_inside_are_sent_and_told(output: Output, claim: Path) -> None:
    output.write(FILES)
    (output.folder / "last.safetensors").symlink_to("model.safetensors")
    (output.folder / "latest").symlink_to(output.folder / "checkpoint-2")
    assert send(output, claim).output == "sent"
    manifest = check(contents(claim / "runs/1"), {**FILES, "last.safetensors": FILES["model.safetensors"]})
    assert manifest is not None
    assert manifest["links"] == {"latest": "checkpoint-2"}
    assert not (claim / "runs/1/last.safetensors").is_symlink()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)  # the whole path may be too long for a socket
    try:
        server.bind(path.name)
    finally:
        os.chdir(here)
        server.close()


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "Hostile"),
        (lambda path: path.symlink_to("/etc"), "Hostile"),
        (lambda path: path.symlink_to("../../termination-log"), "Hostile"),
        (lambda path: path.symlink_to("."), "Hostile"),
        (lambda path: path.symlink_to(".trainplane/sent"), "Hostile"),
        (lambda path: path.symlink_to("/proc/self/environ"), "Hostile"),
        (lambda path: path.symlink_to("nothing"), "Invalid"),
        (lambda path: path.symlink_to(path.name), "Invalid"),
        (_pipe, "Invalid"),
        (_socket, "Invalid"),
        (lambda path: path.with_name("a\nb").write_text("x"), "Hostile"),
        (lambda path: path.with_name("a\\b").write_text("x"), "Hostile"),
        (lambda path: path.with_name(os.fsdecode(b"\xff")).write_text("x"), "Hostile"),
    ],
)
def test_what_cannot_be_sent_keeps_the_manifest_back_and_not_the_rest(
    output: Output, claim: Path, make: object, cause: str
) -> None:
    output.write(FILES)
    make(output.folder / "checkpoint-2" / "bad" if cause == "Invalid" else output.folder / "bad")  # type: ignore[operator]
    ended = send(output, claim)
    assert (ended.code, ended.output, ended.cause) == (0, "unsent", cause), ended
    assert ended.message["remedy"]
    there = contents(claim / "runs/1")
    assert there.keys() - {f"checkpoint-1/{CHECKPOINT}", f"checkpoint-2/{CHECKPOINT}"} == FILES.keys()
    assert (f"checkpoint-2/{CHECKPOINT}" in there) == (cause != "Invalid")
    assert check(there, FILES) is None


@pytest.mark.parametrize(
    ("uri", "env", "cause"),
    [
        ("", {}, "Invalid"),
        ("https://host/x", {}, "Invalid"),
        ("pvc://nowhere/x", {}, "NotFound"),
        ("pvc://models/../x", {}, "Invalid"),
        ("pvc:///x", {}, "Invalid"),
        ("pvc://models/x", {"OUTPUT_PROVENANCE": "[]"}, "Invalid"),
        ("pvc://models/x", {"OUTPUT_PROVENANCE": "{"}, "Invalid"),
        ("pvc://models/x", {"SETTLE_SECONDS": "-1"}, "Invalid"),
        ("pvc://models/x", {"MAX_FILES": "4"}, "Invalid"),
    ],
)
def test_what_cannot_be_meant_is_named(output: Output, claim: Path, uri: str, env: dict[str, str], cause: str) -> None:
    output.write(FILES)
    ended = send(output, claim, uri, **env)
    assert (ended.code, ended.output, ended.cause) == (0, "unsent", cause), ended
    assert contents(claim) == {}


def test_nothing_is_no_output(output: Output, claim: Path) -> None:
    ended = send(output, claim)
    assert (ended.output, ended.cause) == ("unsent", "NotFound")
    assert "OUTPUT_DIR" in ended.message["remedy"]


def test_a_destination_in_the_folder_itself_is_refused(output: Output) -> None:
    output.write(FILES)
    assert output.send(f"file://{output.folder}/sub").cause == "Invalid"


def test_other_pods_than_the_first_send_nothing(output: Output, claim: Path) -> None:
    output.write(FILES)
    ended = send(output, claim, JOB_COMPLETION_INDEX="1")
    assert (ended.code, ended.message) == (0, {})
    assert contents(claim) == {}


def test_links_planted_at_the_destination_are_not_written_through(output: Output, claim: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (claim / "runs/1").mkdir(parents=True)
    (claim / "runs/1/checkpoint-1").symlink_to(tmp_path / "outside")
    output.write(FILES)
    assert send(output, claim).cause == "Volume"
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("line", ['{"sent": ["model.safetensors", 1]}', "[]", "\0", '{"sent": {}}', "{", "x" * 100_000])
def test_a_ledger_that_others_wrote_to_does_no_harm(output: Output, claim: Path, line: str) -> None:
    output.write(FILES)
    assert send(output, claim).output == "sent"
    with (output.folder / ".trainplane/sent").open("a") as ledger:
        ledger.write(f"{line}\n{line}")
    output.write({"late": b"x"})
    assert send(output, claim).output == "sent"
    assert check(contents(claim / "runs/1"), {**FILES, "late": b"x"})


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), lambda path: path.mkdir()])
def test_a_ledger_that_is_no_file_is_done_without(output: Output, claim: Path, plant: object) -> None:
    output.write(FILES)
    (output.folder / ".trainplane").mkdir()
    plant(output.folder / ".trainplane/sent")  # type: ignore[operator]
    ended = send(output, claim)
    assert ended.output == "sent", ended
    assert "cannot be noted" in ended.said
    assert check(contents(claim / "runs/1"), FILES)


def test_the_message_is_whole_and_bounded_however_long_the_reason(output: Output, tmp_path: Path) -> None:
    name = "ü" * 120
    output.write(FILES)
    ended = output.send(f"pvc://{name}/{'/'.join([name] * 5)}", {"PVC_ROOT": str(tmp_path / "/".join([name] * 10))})
    assert (ended.output, ended.cause) == ("unsent", "NotFound")


def test_bytes_that_change_while_they_are_read_are_not_taken(output: Output) -> None:
    output.write({"model": b"1" * 3000})
    folder = OutputFolder(output.folder, 10)
    (file,) = folder.look().files

    async def read(change: Callable[[], object]) -> None:
        with closing(folder.open(file, lambda _: None)) as content:
            async for _ in content.blocks(1000):
                change()

    asyncio.run(read(lambda: None))
    with pytest.raises(ChangedError):
        asyncio.run(read(lambda: os.utime(output.folder / "model", ns=(1, 1))))
    with pytest.raises(ChangedError):
        # Not even opened: it is another one since it was found.
        asyncio.run(read(lambda: None))


def test_a_path_that_became_a_link_is_not_followed(output: Output, tmp_path: Path) -> None:
    output.write({"deep/model": b"1"})
    folder = OutputFolder(output.folder, 10)
    (file,) = folder.look().files
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/model").write_text("2")
    (output.folder / "deep").rename(tmp_path / "away")
    (output.folder / "deep").symlink_to(tmp_path / "secret")
    with pytest.raises(ChangedError):
        folder.open(file, lambda _: None)
