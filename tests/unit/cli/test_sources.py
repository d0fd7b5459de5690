"""What `trainplane run` is given: told apart by how it is written, and refused in a line where it is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.sources import (
    find_script,
    in_its_namespace,
    kind_of,
    load_function,
    read_arguments,
    read_document,
    read_env,
)

JOB = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("train.py", "script"),
        ("./a:b/train.py", "script"),
        ("C:/train.py", "script"),
        ("train:fit", "function"),
        ("my.train:fit", "function"),
        ("job.yaml", "document"),
        ("job.yml", "document"),
        ("job.json", "document"),
        ("-", "document"),
    ],
)
def test_how_it_is_written_says_what_it_is(source: str, kind: str) -> None:
    assert kind_of(source) == kind


class TestScripts:
    def test_one_below_comes_with_the_folder_that_one_is_in(self, folder: Path) -> None:
        (folder / "here/src").mkdir()
        (folder / "here/src/train.py").touch()
        assert find_script("src/train.py", None) == ("src/train.py", folder / "here")

    def test_one_from_elsewhere_comes_with_its_own(self, folder: Path) -> None:
        (folder / "train.py").touch()
        assert find_script("../train.py", None) == ("train.py", folder)

    def test_a_workspace_may_be_said(self, folder: Path) -> None:
        (folder / "here/train.py").touch()
        assert find_script("train.py", "..") == ("here/train.py", folder)
        (folder / "here/other").mkdir()
        with pytest.raises(CommandError, match="is not in the workspace"):
            find_script("train.py", "other")

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(CommandError, match=r"SOURCE: there is no file train\.py"):
            find_script("train.py", None)


class TestFunctions:
    def test_it_is_found_from_the_folder_that_one_is_in(self, folder: Path) -> None:
        (folder / "here/trained_here.py").write_text("def fit(): return 7")
        before = list(sys.path)
        assert load_function("trained_here:fit")() == 7
        assert sys.path == before

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("fit = 1", "has no function fit"),
            ("", "has no function fit"),
            ("1/0", "cannot be imported: ZeroDivisionError"),
            ("def", "cannot be imported: SyntaxError"),
        ],
    )
    def test_one_that_cannot_be_had(self, folder: Path, text: str, said: str) -> None:
        name = f"broken_{abs(hash(said))}"
        (folder / f"here/{name}.py").write_text(text)
        with pytest.raises(CommandError, match=said):
            load_function(f"{name}:fit")

    def test_a_module_that_is_not_there(self) -> None:
        with pytest.raises(CommandError, match="nowhere cannot be imported: ModuleNotFoundError"):
            load_function("nowhere:fit")

    def test_its_arguments_are_values_where_they_are_written_as_such(self) -> None:
        found = read_arguments(["a=3", "b=0.1", "c=[1, 2]", "d=True", "e=text", "f=", "g=a=b", "h='3'"])
        assert found == {"a": 3, "b": 0.1, "c": [1, 2], "d": True, "e": "text", "f": "", "g": "a=b", "h": "3"}

    @pytest.mark.parametrize("word", ["epochs", "=3", "a-b=3", "--epochs=3"])
    def test_a_word_that_is_no_argument(self, word: str) -> None:
        with pytest.raises(CommandError, match="is no NAME=VALUE"):
            read_arguments([word])

    def test_code_is_no_value(self) -> None:
        assert read_arguments(["a=__import__('os').getcwd()"]) == {"a": "__import__('os').getcwd()"}
        assert read_arguments(["a=" + "(" * 5000])["a"].startswith("((")


class TestVariables:
    def test_a_name_alone_has_the_value_that_it_has_here(self) -> None:
        assert read_env(["A=1", "B=x=y", "C=", "D"], {"D": "here"}) == {"A": "1", "B": "x=y", "C": "", "D": "here"}

    @pytest.mark.parametrize("word", ["", "=1", "D"])
    def test_one_that_is_none(self, word: str) -> None:
        with pytest.raises(CommandError, match=r"--env: .* is no NAME=VALUE"):
            read_env([word], {})


class TestDocuments:
    def test_the_one_trainjob_of_a_file(self) -> None:
        Path("a.yaml").write_text(f"---\n{JOB}---\n")
        assert read_document("a.yaml")["metadata"] == {"name": "a"}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "must have one TrainJob, and has nothing"),
            (f"{JOB}---\n{JOB}", "must have one TrainJob, and has TrainJob, TrainJob"),
            ("kind: Secret", "and has Secret"),
            ("[1]", "and has no object"),
            ("a: [", "line 1: no YAML"),
            ("a: &a [*a]", "an anchor is used inside what it names"),
            ("x" * (1 << 21), "is not read: split it"),
        ],
    )
    def test_a_file_with_anything_else(self, text: str, said: str) -> None:
        Path("a.yaml").write_text(text)
        with pytest.raises(CommandError, match=said):
            read_document("a.yaml")

    def test_a_file_that_is_not_there(self) -> None:
        with pytest.raises(CommandError, match=r"cannot read a\.yaml: .*No such file"):
            read_document("a.yaml")

    def test_its_namespace_counts_where_none_is_said(self) -> None:
        document = {"metadata": {"namespace": "team"}}
        assert in_its_namespace(document, Connection(), "a").namespace == "team"
        assert in_its_namespace(document, Connection("team"), "a").namespace == "team"
        assert in_its_namespace({}, Connection("mine"), "a").namespace == "mine"
        assert in_its_namespace(document, Connection(local=True), "a").namespace is None
        with pytest.raises(CommandError, match=r"--namespace is mine, and metadata\.namespace of a team"):
            in_its_namespace(document, Connection("mine"), "a")
