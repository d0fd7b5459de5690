"""The parts of a release: what is refused, what is left out and said, and what is the same twice."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest
import yaml

from deploy import package
from release import audit, chart, image, sbom, source
from release.__main__ import main, told
from release.build import Made
from release.errors import MissingToolError, ReleaseError
from release.order import Order
from release.source import Source

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = Source("c" * 40, 1_700_000_000, "1.2.3")


def order(folder: Path, version: str = "1") -> Order:
    return Order(folder, folder, folder, folder, 1, version)


@pytest.mark.parametrize(
    ("tag", "version", "agree"),
    [("v1.2.3", "1.2.3", True), ("v1.2.3rc1", "1.2.3rc1", True), ("v1.2.3", "1.2.3.dev0", False), ("v2", "1", False)],
)
def test_a_tag_is_v_and_the_version(tag: str, version: str, *, agree: bool) -> None:
    assert (source.disagreement(tag, version) == "") == agree


def test_the_checkout_s_tag_agrees_with_its_version() -> None:
    assert source.version_of((source.REPOSITORY / "pyproject.toml").read_text())
    if (source.REPOSITORY / ".git").exists():
        assert len(source.read().commit) == 40


def test_a_tag_that_names_another_version_stops_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"rev-parse": "c", "show": '[project]\nversion = "1.0.0.dev0"', "tag": "nightly\nv1.0.0", "log": "1"}
    monkeypatch.setattr(source, "_git", lambda verb, *_: answers[verb])
    with pytest.raises(ReleaseError, match=r"tag v1.0.0: pyproject.toml has version 1.0.0.dev0: set it to 1.0.0,"):
        source.read()
    answers["tag"] = "nightly"
    assert source.read().tag == ""
    answers["tag"] = "v1.0.0.dev0"
    assert source.read().tag == "v1.0.0.dev0"


def test_what_is_no_checkout_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "REPOSITORY", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ReleaseError, match=r"git rev-parse: .*: a release is made of a commit, in a checkout"):
        source.read()


# -- the chart


def archive(path: Path, names: list[str], mtime: int) -> Path:
    with tarfile.open(path, "w:gz") as content:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = len(name), mtime, "somebody"
            content.addfile(member, io.BytesIO(name.encode()))
    return path


def test_a_chart_is_the_same_whenever_it_is_packed(tmp_path: Path) -> None:
    first = chart.repack(archive(tmp_path / "1", ["a", "b"], 1), tmp_path / "first", 7)
    second = chart.repack(archive(tmp_path / "2", ["b", "a"], 2), tmp_path / "second", 7)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as content:
        assert [(one.name, one.mtime, one.uname) for one in content] == [("a", 7, ""), ("b", 7, "")]


def test_without_a_chart_or_helm_it_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingToolError, match="this commit has no chart"):
        chart.build(order(tmp_path))
    (tmp_path / chart.CHART).mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("lab.engines._OWNERS", {})
    with pytest.raises(MissingToolError, match="run `make engines`"):
        chart.build(order(tmp_path))


def subchart(folder: Path) -> Path:
    path = folder / "jobset"
    (path / "tests").mkdir(parents=True)
    (path / "Chart.yaml").write_text(yaml.safe_dump({"name": "jobset", "version": "0.12.0"}))
    return path


def test_jobset_s_chart_is_put_inside_behind_its_switch(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "Chart.yaml").write_text("name: trainplane\n")
    whole = package.assemble(ours, tmp_path / "whole", subchart(tmp_path))
    facts = yaml.safe_load((whole / "Chart.yaml").read_text())
    assert facts["name"] == "trainplane"
    assert facts["dependencies"] == [{"name": "jobset", "version": "0.12.0", "condition": "jobset.install"}]
    assert [path.name for path in (whole / "charts/jobset").iterdir()] == ["Chart.yaml"]
    assert "dependencies" not in (ours / "Chart.yaml").read_text()


def test_without_jobset_s_chart_ours_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lab.engines.cache_root", lambda: tmp_path)
    with pytest.raises(MissingToolError, match="JobSet's chart: the manifests of jobset are not in the cache"):
        chart.jobset()


def test_a_chart_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / chart.CHART).mkdir(parents=True)
    (tmp_path / chart.CHART / "Chart.yaml").write_text(yaml.safe_dump({"appVersion": "1.2.2"}))
    monkeypatch.setattr(chart, "helm", lambda: "false")
    monkeypatch.setattr(chart, "jobset", lambda: subchart(tmp_path))
    with pytest.raises(ReleaseError, match=r"Chart.yaml: appVersion is 1.2.2: set it to 1.2.3"):
        chart.build(order(tmp_path, "1.2.3"))
    with pytest.raises(ReleaseError, match="helm package ended with 1"):
        chart.build(order(tmp_path, "1.2.2"))


# -- image and SBOM


def test_without_a_recipe_podman_or_a_base_the_image_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MissingToolError, match="this commit has no image"):
        image.build(order(tmp_path), "")
    (tmp_path / "images").mkdir()
    (tmp_path / "images/build.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="run `make packages`"):
        image.build(order(tmp_path), "")
    (tmp_path / "podman").touch(0o755)
    with pytest.raises(MissingToolError, match="BASE: names no image"):
        image.build(order(tmp_path), "")
    with pytest.raises(ReleaseError, match="the build ended with 3"):
        image.build(order(tmp_path), "python@sha256:0")


def test_without_tools_there_is_no_sbom_and_no_audit(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="cyclonedx-py: is not installed"):
        sbom.build(order(tmp_path))
    with pytest.raises(MissingToolError, match="pip-audit: is not installed"):
        audit.run(tmp_path, tmp_path)


# -- the audit


CLEAN = '{"name": "a", "version": "1", "vulns": []}'
UNKNOWN = '{"name": "b", "version": "2", "skip_reason": "not found"}'
BROKEN = '{"name": "c", "version": "3", "vulns": [{"id": "PYSEC-1", "fix_versions": ["4"]}]}'


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    """A checkout with a pip-audit that prints the list that it is given."""
    (tmp_path / "requirements").mkdir()
    program = tmp_path / "pip-audit"
    program.write_text('#!/bin/sh\nfor word; do case $word in --requirement=*) cat "${word#*=}"; esac; done\nexit 1\n')
    program.chmod(0o755)
    for name in ("base", "cache", "dev", "initializers", "operator"):
        say(tmp_path, name, CLEAN)
    return tmp_path


def say(folder: Path, name: str, *libraries: str) -> None:
    (folder / f"requirements/{name}.txt").write_text(f'{{"dependencies": [{", ".join(libraries)}]}}')


def test_lists_that_are_shipped_stop_a_release_and_others_are_told(audited: Path) -> None:
    say(audited, "dev", CLEAN, BROKEN, UNKNOWN)
    audits = {one.name: one for one in audit.run(audited, audited)}
    assert list(audits) == ["operator", "base", "initializers", "cache", "dev"]
    assert (audits["dev"].judged, audits["dev"].unknown) == (2, 1)
    assert audits["dev"].findings == ("requirements/dev.txt: c 3: PYSEC-1, mended in 4",)
    say(audited, "base", BROKEN)
    with pytest.raises(ReleaseError, match=r"requirements/base.txt: c 3: PYSEC-1, mended in 4"):
        audit.run(audited, audited)


def test_what_was_not_judged_is_not_called_clean(audited: Path) -> None:
    say(audited, "operator", CLEAN, UNKNOWN)
    with pytest.raises(ReleaseError, match="1 libraries were not judged"):
        audit.run(audited, audited)
    say(audited, "operator", UNKNOWN)
    with pytest.raises(MissingToolError, match="the service knows none of 1 libraries: nothing was audited"):
        audit.run(audited, audited)
    (audited / "requirements/operator.txt").write_text("Traceback")
    with pytest.raises(MissingToolError, match="pip-audit: ended with 1: it said nothing"):
        audit.run(audited, audited)


# -- the command


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    made = Made(SOURCE)
    assert made.try_part("chart", lambda: chart.build(order(tmp_path))) is None
    text = told(made, tmp_path, rehearsed=True)
    assert "NOT MADE: chart: charts/trainplane: this commit has no chart\n" in text
    assert "no tag: a rehearsal" in text
    assert text.endswith("KEY=FILE signs with yours\n")
    with pytest.raises(ReleaseError, match="broken"):
        made.try_part("image", broken)


def broken() -> None:
    raise ReleaseError("broken")


def test_a_folder_with_anything_else_in_it_is_not_emptied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "notes.txt"
    kept.write_text("mine")
    (tmp_path / "trainplane-0.1.0.tar.gz").touch()
    assert main(["build", "--output", str(tmp_path)]) == 1
    assert "has 'notes.txt' in it: name another folder" in capsys.readouterr().err
    assert kept.exists()


def test_keys_are_made_and_folders_verified_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", str(tmp_path / "key")]) == 0
    assert capsys.readouterr().out.startswith("-----BEGIN PUBLIC KEY-----")
    assert main(["key", str(tmp_path / "key")]) == 1
    assert "cannot be made: File exists" in capsys.readouterr().err
    assert main(["verify", str(tmp_path), "--key", str(tmp_path / "none")]) == 1
    assert "none: cannot be read" in capsys.readouterr().err
