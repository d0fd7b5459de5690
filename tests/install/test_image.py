"""Our images: small, for nobody's shell, the same whenever they are built."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lab.images import trainplane
from tests.install.image import Archive

if TYPE_CHECKING:
    from tests.suite import SuiteReport

MOST_MEGABYTES = 150


def test_initializers_have_an_image_that_is_small_and_trusts_the_worlds_authorities(report: SuiteReport) -> None:
    image = Archive.read(trainplane.archive("initializers"))
    report.figure("initializers_image_mb", image.megabytes)
    assert image.megabytes < MOST_MEGABYTES
    assert image.config["config"]["Entrypoint"] == ["python", "-m", "trainplane.initializers"]
    trusted = dict(one.split("=", 1) for one in image.config["config"]["Env"])["SSL_CERT_FILE"]
    (listed,) = (file for file in image.files if f"/{file.name.strip('/')}" == trusted)
    assert listed.size > 100_000
    assert not [file.name for file in image.files if "/cryptography/" in file.name], "it holds what operators need"


def test_the_image_is_small(archive: Archive, report: SuiteReport) -> None:
    report.figure("image_mb", archive.megabytes)
    assert archive.megabytes < MOST_MEGABYTES


def test_nobody_is_root_in_it(archive: Archive) -> None:
    user, _, group = archive.config["config"]["User"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert all(file.uid == 0 and not file.mode & 0o6000 for file in archive.files)
    writable = [file.name for file in archive.files if file.mode & 0o022 and not file.issym()]
    assert [name.strip("/") for name in writable] == ["tmp"]


def test_there_is_no_program_in_it_but_python(archive: Archive) -> None:
    programs = {
        PurePosixPath(file.name).name
        for file in archive.files
        if PurePosixPath(file.name).parent.name in {"bin", "sbin"}
    }
    assert {"python", "python3", "python3.13"} == programs
    assert not [file.name for file in archive.files if PurePosixPath(file.name).name in {"sh", "bash", "dash", "apt"}]


def test_a_second_build_has_the_same_digest(archive: Archive, report: SuiteReport, tmp_path: Path) -> None:
    trainplane.build(tmp_path, ("operator",))
    again = Archive.read(tmp_path / "operator/trainplane.tar")
    report.figure("digests_equal", again.digest == archive.digest)
    assert again.digest == archive.digest
