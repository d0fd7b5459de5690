"""What `python -m release build` left in dist/ is what a release must be: proved on the files themselves."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from release import checksums, packages
from release.build import WORK
from release.errors import UntrustedError
from release.sbom import LISTS
from release.source import REPOSITORY, Source
from release.verify import PUBLIC_KEY, SIGNATURE, verify
from tests.fenced import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

DIST = REPOSITORY / "dist"
Tree = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Tree:
    made: Tree = json.loads((WORK / "made.json").read_text())
    return made


@pytest.fixture(scope="module")
def source(made: Tree) -> Source:
    return Source(**made["source"])


def one(pattern: str) -> Path:
    (found,) = DIST.glob(pattern)
    return found


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another folder, time zone, language and set of rights: nothing of these may show."""
    monkeypatch.setenv("TZ", "Pacific/Chatham")
    monkeypatch.setenv("LANG", "C")
    before = os.umask(0o077)
    yield tmp_path / "made"
    os.umask(before)


def test_the_sdist_is_the_same_when_built_again(source: Source, elsewhere: Path, report: SuiteReport) -> None:
    source.export(elsewhere / "tree")
    (again,) = packages.build(elsewhere / "tree", elsewhere, source.epoch, "sdist")
    report.figure("sdist_reproducible", checksums.digest(again) == checksums.digest(one("*.tar.gz")))
    assert checksums.digest(again) == checksums.digest(one("*.tar.gz"))


def test_the_sdist_alone_gives_the_wheel_without_git(source: Source, elsewhere: Path, report: SuiteReport) -> None:
    with tarfile.open(one("*.tar.gz")) as content:
        content.extractall(elsewhere, filter="data")
    (tree,) = elsewhere.iterdir()
    (again,) = packages.build(tree, elsewhere / "out", source.epoch, "wheel")
    report.figure("wheel_reproducible", checksums.digest(again) == checksums.digest(one("*.whl")))
    assert checksums.digest(again) == checksums.digest(one("*.whl"))


def test_the_wheel_installs_and_says_its_version(source: Source, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "uv", "venv", "--quiet", tmp_path], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", f"--python={tmp_path}/bin/python"]
    subprocess.run([*install, "--require-hashes", f"--requirement={REPOSITORY}/requirements/base.txt"], check=True)
    subprocess.run([*install, "--no-deps", str(one("*.whl"))], check=True)
    shown = subprocess.run([tmp_path / "bin/trainplane", "version"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"trainplane {source.version}, ")


def test_the_wheel_holds_the_product_alone() -> None:
    with zipfile.ZipFile(one("*.whl")) as content:
        tops = {name.split("/")[0] for name in content.namelist()}
    assert len(tops) == 2
    assert "trainplane" in tops


def test_the_images_have_the_wheel_that_is_published(made: Tree) -> None:
    inside = list((WORK / "work/image").glob("*/dist/*.whl"))
    assert [checksums.digest(path) for path in inside] == [checksums.digest(one("*.whl"))] * len(made["images"])


def test_nothing_names_the_machine_that_made_it(source: Source, tmp_path: Path) -> None:
    """What the build itself wrote has no path of the checkout, a home or a temporary folder in it."""
    source.export(tmp_path)
    committed = {path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    paths = re.compile(b"|".join(re.escape(str(path).encode()) for path in (REPOSITORY, Path.home(), "/tmp/")))
    written = [
        (f"{path.name}: {name}", content)
        for path in DIST.iterdir()
        for name, content in contents(path)
        if content not in committed and "/charts/jobset/" not in name  # JobSet's own words
    ]
    assert len(written) > 5
    assert [name for name, content in written if paths.search(content)] == []


def contents(path: Path) -> list[tuple[str, bytes]]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return [(name, archive.read(name)) for name in archive.namelist()]
    if path.suffix in {".gz", ".tgz"}:
        with tarfile.open(path) as archive:
            files = [(member.name, archive.extractfile(member)) for member in archive]
            return [(name, file.read()) for name, file in files if file]
    return [] if path.suffix == ".tar" else [("", path.read_bytes())]


@pytest.mark.parametrize(("name", "whose"), LISTS.items())
def test_the_sbom_names_what_the_list_pins(source: Source, name: str, whose: str, report: SuiteReport) -> None:
    path = DIST / f"trainplane-{source.version}-{whose}.cdx.json"
    tree = json.loads(path.read_text())
    pinned = dict(
        re.findall(r"^([a-z0-9-]+)==(\S+)", (REPOSITORY / f"requirements/{name}.txt").read_text(), re.MULTILINE)
    )
    listed = {re.sub(r"[-_.]+", "-", part["name"]).lower(): part["version"] for part in tree["components"]}
    assert listed.items() <= pinned.items()
    root = tree["metadata"]["component"]
    assert (tree["specVersion"], root["name"], root["version"]) == ("1.6", "trainplane", source.version)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(project["optional-dependencies"]["operator"] if name == "operator" else ())]
    assert {re.split(r"[>=<]", line)[0] for line in wanted} <= listed.keys()
    report.figure(f"{whose}_libraries", len(listed))


def test_the_key_signed_what_is_there(made: Tree) -> None:
    assert verify(DIST, (DIST / PUBLIC_KEY).read_bytes()) == made["sums"]


def test_openssl_and_sha256sum_say_so_too(tmp_path: Path) -> None:
    (tmp_path / "der").write_bytes(base64.b64decode((DIST / SIGNATURE).read_text()))
    words = ["openssl", "dgst", "-sha256", "-verify", f"{DIST / PUBLIC_KEY}", "-signature", f"{tmp_path}/der"]
    subprocess.run([*words, str(DIST / checksums.NAME)], capture_output=True, check=True)
    subprocess.run(["sha256sum", "--check", "--strict", checksums.NAME], cwd=DIST, capture_output=True, check=True)


def test_the_page_s_commands_verify_the_files(tmp_path: Path) -> None:
    """docs/releasing.md, "Verify": as a user would, with the files in a folder of their own."""
    shutil.copytree(DIST, tmp_path / "dist")
    commands = blocks(REPOSITORY / "docs/releasing.md", "sh")[-1]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY)}
    words = ["bash", "-euo", "pipefail", "-c", commands]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Verified OK" in done.stdout
    assert "files are what the key signed" in done.stdout


def test_a_changed_byte_of_the_wheel_is_refused(tmp_path: Path) -> None:
    for path in DIST.iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    wheel = tmp_path / one("*.whl").name
    content = bytearray(wheel.read_bytes())
    content[1000] ^= 1
    wheel.write_bytes(content)
    with pytest.raises(UntrustedError, match=r"\.whl: has been changed"):
        verify(tmp_path, (DIST / PUBLIC_KEY).read_bytes())


def test_what_was_made_and_what_not_is_told(made: Tree, report: SuiteReport) -> None:
    there = {"chart": "*.tgz", "image": "*-image.tar", "sbom": "*.cdx.json"}
    for part, pattern in there.items():
        assert bool(list(DIST.glob(pattern))) != (part in made["left_out"]), part
    assert bool(made["audits"]) != ("audit" in made["left_out"])
    for part in (*there, "audit"):
        report.figure(f"{part}_made", part not in made["left_out"])
    for part, why in made["left_out"].items():
        report.row(part=part, left_out=why)
    for name in made["sums"]:
        report.row(file=name, bytes=(DIST / name).stat().st_size)
    report.figure("wheel_kb", one("*.whl").stat().st_size / 1000)
    report.figure("sdist_kb", one("*.tar.gz").stat().st_size / 1000)
    report.figure("files", len(made["sums"]))
    for program, facts in made["images"].items():
        report.figure(f"{program}_image_mb", facts["megabytes"])
        report.row(image=facts["name"], digest=facts["digest"])
