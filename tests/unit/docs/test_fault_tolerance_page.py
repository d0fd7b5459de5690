"""docs/fault-tolerance.md: its examples are accepted, and its policies and figures are those of the code."""

from __future__ import annotations

import re

import pytest
import yaml

from docs.executed import ROOT
from tests.fenced import blocks
from tests.unit.render.objects import PIPELINE
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.lint.runtimes import validate
from trainplane.operator.recovery import EARLY

PATH = ROOT / "docs/fault-tolerance.md"
PAGE = PATH.read_text()
GRACE, *OTHERS = [list(yaml.safe_load_all(text)) for text in blocks(PATH, "yaml")]
RUNTIMES = [one for documents in OTHERS for one in documents if one["kind"] == names.TRAINING_RUNTIME]
NODE = ("spec", "template", "spec", "replicatedJobs", ("name", "node"), "template", "spec")


def shipped(name: str) -> trees.Tree:
    found: trees.Tree = yaml.safe_load((ROOT / f"runtimes/{name}.yaml").read_text())
    return found


def test_grace_period_example_on_shipped_runtime_is_rendered() -> None:
    (tree,) = GRACE
    runtime = read(shipped(tree["spec"]["runtimeRef"]["name"]), ClusterTrainingRuntime)
    job = read({**tree, "metadata": {**tree["metadata"], "namespace": "default"}}, TrainJob)
    assert PIPELINE.validate(job, None, runtime).allowed
    jobset = PIPELINE.render(job, runtime).jobset.tree
    (node,) = jobset["spec"]["replicatedJobs"]
    pod = node["template"]["spec"]["template"]["spec"]
    env = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    assert int(env["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"]) < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda one: one["metadata"]["name"])
def test_runtime_example_linted_has_no_error(runtime: trees.Tree) -> None:
    assert [one for one in validate(yaml.safe_dump(runtime)) if one.severity == "error"] == []


def test_disruption_example_compared_with_shipped_runtime_has_the_same_policy() -> None:
    (example,) = [one for one in RUNTIMES if one["metadata"]["name"] == "machine"]
    for path in (
        ("spec", "runPolicy"),
        ("spec", "template", "spec", "failurePolicy"),
        (*NODE, "backoffLimit"),
        (*NODE, "podFailurePolicy"),
    ):
        assert trees.get(example, *path) == trees.get(shipped("torch-distributed"), *path) is not None


def test_limits_on_the_page_are_those_of_the_code() -> None:
    assert f"first {EARLY.total_seconds() / 60:.0f} minutes of an attempt" in PAGE
    limits = {path.stem: trees.get(shipped(path.stem), "spec", "runPolicy") for path in ROOT.glob("runtimes/*.yaml")}
    assert limits.pop("data-cache") is None
    (limit,) = map(int, re.findall(r"The shipped runtimes have (\d+),\s+except `data-cache`", PAGE))
    assert {trees.get(policy, "failurePolicy", "maxRestarts") for policy in limits.values()} == {limit}


def test_names_on_the_page_exist() -> None:
    for name in (names.LABEL_RESTARTS, names.ANNOTATION_CLAIMS, names.ANNOTATION_OUTPUT):
        assert name in PAGE
