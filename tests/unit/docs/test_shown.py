"""What pages show and no suite runs is judged by what would take it: admission, the linter, the chart's values, the
command line, Python.
"""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.executed import pages, shown
from tests.e2e.pages import with_addition
from tests.fenced import blocks
from trainplane import TrainerClient
from trainplane.api import configuration, names
from trainplane.cli.app import Group
from trainplane.cli.commands import COMMANDS
from trainplane.lint.runtimes import validate

ROOT = Path(__file__).parents[3]


# -- objects


@pytest.mark.parametrize("page", ["gang-scheduling", "patches"])
def test_objects_are_what_we_would_take(page: str) -> None:
    (text,) = blocks(ROOT / f"docs/{page}.md", "yaml")
    tree = yaml.safe_load(text)
    if tree["kind"] == names.CONFIGURATION:
        assert configuration.read(tree).admission.allowed_runtime_patches
    else:
        assert validate(text) == []


@pytest.mark.parametrize(
    ("page", "number", "inside"),
    [("tensorflow", 2, ("spec", "template")), ("torch-elastic", 2, ()), ("torch-elastic", 3, ())],
)
def test_parts_of_objects_are_known_to_the_schema(page: str, number: int, inside: tuple[str, ...]) -> None:
    """As a reader would put them into the page's runtime; `inside` is where."""
    first, *_ = texts = blocks(ROOT / f"docs/frameworks/{page}.md", "yaml")
    part = yaml.safe_load(texts[number - 1])
    for name in reversed(inside):
        part = {name: part}
    (runtime,) = [
        yaml.safe_load(path.read_text())
        for path in ROOT.glob("runtimes/*.yaml")
        if path.stem == yaml.safe_load(first)["spec"]["runtimeRef"]["name"]
    ]
    assert validate(yaml.safe_dump(runtime)) == []
    assert validate(yaml.safe_dump(with_addition(runtime, part))) == []
    assert validate(yaml.safe_dump(with_addition(runtime, {"spec": {"template": {"spec": {"failurPolicy": {}}}}})))


# -- values


def value_names() -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs/values.md").read_text(), re.MULTILINE))


def settings(tree: Any, prefix: str = "") -> list[str]:
    """Return the paths of all that a values file sets."""
    if not isinstance(tree, dict):
        return [prefix.removesuffix(".")]
    return [path for key, value in tree.items() for path in settings(value, f"{prefix}{key}.")]


def is_known(path: str, known: set[str]) -> bool:
    """Return whether the chart has a value, or takes it as a part of the operator's settings."""
    return path in known or (path.startswith("manager.config.") and "manager.config" in known)


@pytest.mark.parametrize("page", ["install", "legacy"])
def test_values_are_those_of_the_chart(page: str) -> None:
    (text,) = blocks(ROOT / f"docs/{page}.md", "yaml")
    tree, known = yaml.safe_load(text), value_names()
    assert [path for path in settings(tree) if not is_known(path, known)] == []
    identity = {"apiVersion": names.CONFIGURATION_API_VERSION, "kind": names.CONFIGURATION}
    configuration.read(identity | tree["manager"]["config"])


def test_a_value_that_there_is_not_is_seen() -> None:
    assert not is_known("manager.replica", value_names())
    assert is_known("manager.replicas", value_names())


# -- commands

LINES = sorted(
    {
        (str(page.relative_to(ROOT)), line.removeprefix("$ ").partition(" #")[0].strip())
        for page in pages()
        for block in shown(page)
        if block.language in {"sh", "console"}
        for line in block.text.replace("\\\n", " ").splitlines()
        if re.match(r"(?:\$ )?(?:trainplane|kubectl trainjob) ", line)
    }
)


def take(line: str) -> None:
    """Read a command line as the program would, and stop before it does anything."""
    words = shlex.split(re.split(r" [|>&]|;", line)[0])
    words = words[2:] if words[0] == "kubectl" else words[1:]
    group: Any = Group("trainplane", COMMANDS)
    context = group.make_context("trainplane", words, resilient_parsing=False)
    while isinstance(group, Group):
        name, group, words = group.resolve_command(context, words)
        context = group.make_context(name, list(words), parent=context) if not isinstance(group, Group) else context


@pytest.mark.parametrize(("page", "line"), LINES)
def test_commands_of_ours_are_taken(page: str, line: str) -> None:
    take(line)


def test_a_command_that_there_is_not_is_seen() -> None:
    assert len(LINES) > 5
    for wrong in ("trainplane explian JOB", "trainplane explain JOB --no-such-flag", "trainplane fleet chek"):
        with pytest.raises(Exception, match="No such"):
            take(wrong)


# -- Python


@pytest.mark.parametrize(
    ("page", "number"),
    [("README.md", 1), ("docs/outputs.md", 1), ("docs/queued.md", 1), ("docs/sdk.md", 15), ("docs/watching.md", 1)],
)
def test_python_uses_names_that_there_are(page: str, number: int) -> None:
    text = blocks(ROOT / page, "python")[number - 1]
    tree = compile(text, page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            assert [one.name for one in node.names if not hasattr(module, one.name)] == []
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "client":
            assert hasattr(TrainerClient, node.attr)
