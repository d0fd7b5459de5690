"""`trainplane runtime check`: its page, word by word, and files that are none."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from trainplane.cli import main
from trainplane.lint.yaml_lines import MOST_LETTERS

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs/runtime-check.md").read_text()
COMMANDS = re.findall(r"^\$ trainplane (.*)\n((?:[^`].*\n)*)", PAGE, re.MULTILINE)
(BROKEN,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page, and the working directory."""
    (tmp_path / "runtimes").symlink_to(REPOSITORY / "runtimes")
    (tmp_path / "broken.yaml").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "printed"), COMMANDS)
def test_the_page_is_true(command: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == (1 if ": error:" in printed else 0)
    assert capsys.readouterr().out == printed


def test_the_page_shows_both_ends() -> None:
    assert [": error:" in printed for _, printed in COMMANDS] == [False, True]


def test_every_shipped_runtime_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(map(str, (REPOSITORY / "runtimes").glob("*.yaml")))
    assert len(files) > 10
    assert main(["runtime", "check", *files]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{file}: good to install" for file in files]


@pytest.mark.usefixtures("folder")
def test_programs_read_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "check", "--output", "json", "runtimes/torch-distributed.yaml", "broken.yaml"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["files"] == ["runtimes/torch-distributed.yaml", "broken.yaml"]
    assert {remark["file"] for remark in report["remarks"]} == {"broken.yaml"}
    first = report["remarks"][0]
    assert (first["line"], first["field"], first["severity"]) == (9, "spec.mlPolicy.torch.numProcPerNod", "error")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(BROKEN))
    assert main(["runtime", "check", "-"]) == 1
    assert capsys.readouterr().out.startswith("-:9: error: spec.mlPolicy.torch.numProcPerNod: ")


def test_warnings_do_not_refuse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shipped = (REPOSITORY / "runtimes/torch-distributed.yaml").read_text()
    (folder / "bare.yaml").write_text(shipped.replace("trainer.kubeflow.org/framework:", "example.com/framework:"))
    assert main(["runtime", "check", "bare.yaml"]) == 0
    warning, good = capsys.readouterr().out.splitlines()
    assert re.match(r"bare\.yaml:\d+: warning: metadata\.labels: without the label", warning)
    assert good == "bare.yaml: good to install"


@pytest.mark.parametrize("name", ["absent.yaml", ".", "binary"])
def test_what_is_no_text_cannot_be_read(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    assert main(["runtime", "check", name]) == 2
    assert capsys.readouterr().err.startswith(f"trainplane: cannot read {name}: ")


def test_a_file_without_end_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "long.yaml").write_text("a" * (MOST_LETTERS + 9))
    assert main(["runtime", "check", "long.yaml"]) == 1
    assert capsys.readouterr().out.startswith(f"long.yaml:1: error: the file has more than {MOST_LETTERS} characters")
