"""The public forge's workflows: they run our own make targets, hold no right that they do not need, and trust no text.

They cannot be run here; what can be read off them is checked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.yaml"))
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
Tree = dict[Any, Any]


def read(path: Path) -> Tree:
    tree: Tree = yaml.safe_load(path.read_text())
    return tree


def commands(workflow: Tree) -> list[str]:
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def targets(workflow: Tree) -> set[str]:
    words = [word for line in commands(workflow) for call in re.findall(r"^make (.+)", line) for word in call.split()]
    suites = workflow["jobs"].get("suite", {}).get("strategy", {}).get("matrix", {}).get("suite", [])
    return {word for word in words if re.fullmatch(r"[a-z][a-z0-9-]+", word)} | set(suites)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_make_knows_the_targets(path: Path) -> None:
    assert targets(read(path)) <= TARGETS
    assert "release" in targets(read(path))


def test_ci_runs_every_step_that_our_own_ci_runs() -> None:
    steps = set(
        re.findall(r"^[a-z0-9-]+ +gate +\w+ +make ([a-z0-9-]+)$", (REPOSITORY / ".ci/steps").read_text(), re.MULTILINE)
    )
    assert len(steps) > 12
    missing = steps - targets(read(REPOSITORY / ".github/workflows/ci.yaml"))
    assert not missing, "add these to the suites of .github/workflows/ci.yaml"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_rights_are_named_and_few(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in workflow["jobs"].items():
        rights = job.get("permissions", {})
        runs_our_code = any("uses" in step and "checkout" in step["uses"] for step in job["steps"])
        assert not (runs_our_code and "write" in rights.values()), (
            f"{name}: code of the repository's with a right to write"
        )
        assert "timeout-minutes" in job
        for step in job["steps"]:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_text_of_others_becomes_a_command(path: Path) -> None:
    workflow = read(path)
    assert set(workflow[True]) <= {"push", "pull_request"}, (
        "pull_request_target and the like run others' code with our rights"
    )
    said = {found for line in commands(workflow) for found in re.findall(r"\${{\s*(.*?)\s*}}", line)}
    assert said <= {"matrix.suite"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_of_few_authors_and_of_a_version(path: Path) -> None:
    used = [step["uses"] for job in read(path)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"(actions|sigstore)/[a-z-]+@(v\d+|[0-9a-f]{40})", one) for one in used)
