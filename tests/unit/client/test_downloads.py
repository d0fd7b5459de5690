"""An output that is fetched is what was sent, or nothing is said of it but why not."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api.output import read_output
from trainplane.client.downloads import Download, choose, inside_of, verify
from trainplane.client.errors import InvalidError, RefusedError, TrainplaneError, UnsupportedError
from trainplane.client.submission.job import compose
from trainplane.client.types.outputs import JobOutput, Output

if TYPE_CHECKING:
    from pathlib import Path


def sent(folder: Path, files: dict[str, bytes], **listed: Any) -> str:
    """Write an output as a store has it, and return its digest."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    entries = [
        {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in {**files, **listed}.items()
    ]
    text = json.dumps({"version": 1, "files": entries}).encode()
    (folder / "trainplane-output.json").write_bytes(text)
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


async def test_from_a_store_to_a_folder(tmp_path: Path) -> None:
    """`file://` stands for a store: no TrainJob sends there, and the program reads it in the same way."""
    digest = sent(tmp_path / "store", {"model.bin": b"weights" * 1000, "step-1/a.bin": b"a"})
    folder = tmp_path / "mine"
    await Download(JobOutput(f"file://{tmp_path}/store", "Sent", 2, 7001, digest), folder, {})._fetch()
    verify(folder, digest)
    assert (folder / "model.bin").read_bytes() == b"weights" * 1000


async def test_what_cannot_be_fetched_is_told_in_the_programs_words(tmp_path: Path) -> None:
    missing = Download(JobOutput(f"file://{tmp_path}/absent", "Sent", 1, 1, ""), tmp_path / "mine", {})
    with pytest.raises(TrainplaneError, match="NotFound"):
        await missing._fetch()


@pytest.mark.parametrize(
    ("uri", "inside"),
    [
        ("s3://bucket/a/b", ""),
        ("hf://me/model", ""),
        ("hf://me/model@main/a/b", "a/b"),
        ("hf://datasets/me/set", ""),
        ("hf://datasets/me/set/a", "a"),
    ],
)
def test_files_of_the_hub_keep_their_place(uri: str, inside: str) -> None:
    assert inside_of(read_output(uri)) == inside


async def test_a_claim_is_not_reached_from_here(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="mount it"):
        await Download(JobOutput("pvc://models/x", "Sent", 1, 1, ""), tmp_path, {}).run()


def test_what_was_changed_since_is_refused(tmp_path: Path) -> None:
    digest = sent(tmp_path, {"a": b"one", "b/c": b"two"})
    verify(tmp_path, digest)
    (tmp_path / "a").write_bytes(b"eno")
    with pytest.raises(TrainplaneError, match="differs"):
        verify(tmp_path, digest)
    (tmp_path / "a").unlink()
    with pytest.raises(TrainplaneError, match="was not there"):
        verify(tmp_path, digest)
    sent(tmp_path, {"a": b"another"})
    with pytest.raises(TrainplaneError, match="replaced"):
        verify(tmp_path, digest)
    (tmp_path / "trainplane-output.json").unlink()
    with pytest.raises(TrainplaneError, match="removed or replaced"):
        verify(tmp_path, digest)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b", "", "a//b", "./a", "a\0b"])
def test_a_manifest_leads_nowhere_else(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_bytes(b"s")
    digest = sent(tmp_path / "mine", {}, **{path: b"s"})
    with pytest.raises(TrainplaneError, match="leads out"):
        verify(tmp_path / "mine", digest)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s")
    digest = sent(tmp_path / "mine", {}, **{"link": b"s", "folder/secret": b"s"})
    (tmp_path / "mine/link").symlink_to(tmp_path / "secret")
    with pytest.raises(TrainplaneError, match="no plain file"):
        verify(tmp_path / "mine", digest)
    (tmp_path / "mine/link").unlink()
    (tmp_path / "mine/link").write_bytes(b"s")
    (tmp_path / "mine/folder").symlink_to(tmp_path)
    with pytest.raises(TrainplaneError, match="no plain file"):
        verify(tmp_path / "mine", digest)


def test_what_is_no_manifest_is_refused(tmp_path: Path) -> None:
    for text in (b"", b"[]", b'{"files": [{"path": 1}]}', b"\xff", b"[" * 100_000):
        (tmp_path / "trainplane-output.json").write_bytes(text)
        with pytest.raises(TrainplaneError):
            verify(tmp_path, f"sha256:{hashlib.sha256(text).hexdigest()}")


def test_there_must_be_one() -> None:
    there = JobOutput("s3://bucket/x", "Sent", 1, 1, "sha256:0")
    assert choose("job", (there,)) == there
    with pytest.raises(InvalidError, match="has no output"):
        choose("job", ())
    with pytest.raises(RefusedError, match="Waiting"):
        choose("job", (JobOutput("s3://bucket/x"),))
    with pytest.raises(RefusedError, match="the bucket refused"):
        choose("job", (JobOutput("s3://bucket/x", "NotSent", message="the bucket refused"),))


@pytest.mark.parametrize("uri", ["s3://key:secret@bucket/x", "s3://bucket/a\nb", "file:///x", "models", ""])
def test_an_output_is_judged_where_it_is_written(uri: str) -> None:
    with pytest.raises(InvalidError, match="uri of an Output") as caught:
        Output(uri)
    assert "secret@" not in str(caught.value)


def test_a_secret_is_a_name() -> None:
    with pytest.raises(InvalidError, match="name of a Secret"):
        Output("s3://bucket/x", secret="other/keys")


def composed(backend: Any, **given: Any) -> dict[str, Any]:
    return compose("torch", None, None, backend=backend, name=lambda: "job", **given)


def test_a_trainjob_says_where_its_output_goes() -> None:
    job = composed("kubernetes", output=Output("s3://bucket/x", secret="keys"))
    assert job["metadata"]["annotations"] == {
        "trainplane.dev/output": "s3://bucket/x",
        "trainplane.dev/output-secret": "keys",
    }
    assert "annotations" not in composed("kubernetes")["metadata"]
    for backend in ("process", "container"):
        with pytest.raises(UnsupportedError, match="kubernetes backend"):
            composed(backend, output=Output("s3://bucket/x"))
    with pytest.raises(InvalidError, match="must be an Output"):
        composed("kubernetes", output="s3://bucket/x")


S3 = read_output("s3://bucket/models")


class TestAPart:
    async def test_a_folder_of_it_comes_alone_and_is_compared(self, tmp_path: Path) -> None:
        digest = sent(tmp_path / "store", {"model.bin": b"weights", "step-1/a.bin": b"a", "step-10/a.bin": b"b"})
        output = JobOutput(f"file://{tmp_path}/store", "Sent", 3, 9, digest)
        part = Download(output, tmp_path / "mine", {}, "step-1")
        await part._fetch(part._patterns(S3))
        found = {path.relative_to(tmp_path / "mine").as_posix() for path in (tmp_path / "mine").rglob("*.bin")}
        assert found == {"step-1/a.bin"}
        verify(tmp_path / "mine", digest, "step-1")
        with pytest.raises(TrainplaneError, match=r"'model\.bin' is in the manifest, and was not there"):
            verify(tmp_path / "mine", digest)

    def test_what_the_output_has_not_got(self, tmp_path: Path) -> None:
        digest = sent(tmp_path, {"model.bin": b"weights"})
        with pytest.raises(TrainplaneError, match="the output has no 'other'"):
            verify(tmp_path, digest, "other")

    def test_a_name_is_no_pattern(self, tmp_path: Path) -> None:
        output = JobOutput(S3.text, "Sent")
        assert Download(output, tmp_path, {}, "a*")._patterns(S3) == "a[*],a[*]/*,trainplane-output.json"
        hub = read_output("hf://me/model/run")
        assert Download(output, tmp_path, {}, "a")._patterns(hub) == "run/a,run/a/*,run/trainplane-output.json"
        with pytest.raises(InvalidError, match="has a comma"):
            Download(output, tmp_path, {}, "a,b")._patterns(S3)
