"""What the documents show of the older shape is applied as written, and runs: read from the documents themselves.

Images are those of the documents, since the kubelet is played; all else is real, from the API server to the Jobs. What
initializers, torchrun and pods do with these settings, other suites show.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.legacy.older.world import OLDER, TODAY, runtime
from tests.seeds.documents.indentation import indented
from tests.seeds.documents.reading import documents, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.legacy.older.user import Teammate
    from tests.suite import SuiteReport

Tree = dict[str, Any]

pytestmark = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")

FILLED = {
    "trainjob-name": "filled-in",
    "model-config-reference": "hf://owner/tiny",
    "dataset-storage-uri": "s3://bucket/set",
    "number-of-training-nodes": "3",
    "training-container-image": "registry.invalid/trainer:1",
    "cpu": "2",
    "memory": "4Gi",
    "gpu-count": "1",
}
"""What a user would write in the place of each placeholder of the signature."""


def block(statement: str, **filled: str) -> str:
    """Return a block of YAML of a document, with its placeholders filled in."""
    (text,) = [one.text for one in statements() if one.id == statement]
    return re.sub(r"<([\w-]+)>", lambda found: filled[found[1]], indented(text))


@pytest.fixture
def home(user: Teammate, request: pytest.FixtureRequest) -> Iterator[Teammate]:
    """Return a user who has applied a block of the documents, in the namespace that it names."""
    text = block(request.param, namespace=user.namespace, **FILLED)
    namespace = yaml.safe_load(text)["metadata"].get("namespace", user.namespace)
    home = user.elsewhere(namespace)
    if namespace != user.namespace:
        home.cluster.kubectl("create", "namespace", namespace)
    home.kubectl("apply", "--filename=-", stdin=text)
    yield home
    if namespace != user.namespace:
        home.cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def node(jobset: Tree) -> Tree:
    """Return the step that trains."""
    found: Tree = jobset["spec"]["replicatedJobs"][-1]
    return found


def container(step: Tree) -> Tree:
    found: Tree = step["template"]["spec"]["template"]["spec"]["containers"][0]
    return found


def variables(step: Tree) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container(step).get("env", [])}


@pytest.mark.parametrize(
    ("home", "name", "nodes", "steps"),
    [
        ("002-yaml-1", "filled-in", 3, ["dataset-initializer", "model-initializer"]),
        ("002-yaml-2", "pytorch-train-resnet", 2, ["dataset-initializer"]),
        ("002-yaml-3", "llm-finetune-job", 4, ["dataset-initializer", "model-initializer"]),
    ],
    indirect=["home"],
)
def test_a_job_that_says_all_itself_trains(
    home: Teammate, name: str, nodes: int, steps: list[str], report: SuiteReport
) -> None:
    written = home.older(name)["spec"]
    jobset = home.wait_jobset(name)
    assert [one["name"] for one in jobset["spec"]["replicatedJobs"]] == [*steps, "node"]
    for step in jobset["spec"]["replicatedJobs"][:-1]:
        said = written["datasetConfig"]["storageUri"]
        if step["name"] == "model-initializer":
            said = written["modelConfig"]["input"]["config"]
        assert variables(step)["STORAGE_URI"] == said
    assert node(jobset)["template"]["spec"]["parallelism"] == nodes
    assert variables(node(jobset))["PET_NNODES"] == str(nodes)
    assert container(node(jobset))["image"] == written["trainer"]["image"]
    assert container(node(jobset))["command"] == written["trainer"]["command"]
    asked = written["trainer"]["resourcesPerNode"]
    assert container(node(jobset))["resources"]["requests"] == asked["requests"]
    gpus = asked["requests"]["nvidia.com/gpu"]
    assert container(node(jobset))["resources"]["limits"]["nvidia.com/gpu"] == gpus
    (policy,) = jobset["spec"]["volumeClaimPolicies"]
    assert policy["templates"][0]["metadata"]["name"] == "initializer"
    for step in steps:
        home.play(name, step, "succeed")
    home.play(name, "node", "run", nodes)
    home.wait_older(name, "RUNNING")
    home.play(name, "node", "succeed", nodes)
    home.wait_older(name, "SUCCESS")
    report.figure("documents_run", report.figures.get("documents_run", 0) + 1)


@pytest.mark.parametrize("home", ["004-yaml-4"], indirect=True)
def test_an_older_job_names_a_runtime_of_todays(home: Teammate, report: SuiteReport) -> None:
    home.apply(yaml.safe_load(block("004-yaml-3")))
    today = home.wait_today("example-train-job")
    assert today["spec"]["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org",
        "kind": "TrainingRuntime",
        "name": "pytorch-team-runtime",
    }
    home.play("example-train-job", "node", "succeed")
    home.wait_older("example-train-job", "SUCCESS")
    report.figure("documents_run", report.figures.get("documents_run", 0) + 1)


@pytest.mark.parametrize("home", ["004-yaml-7"], indirect=True)
def test_an_older_runtime_with_three_steps_serves_an_older_job(home: Teammate, report: SuiteReport) -> None:
    ref = {"apiGroup": "kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "example-runtime"}
    home.apply({"apiVersion": OLDER, "kind": "TrainJob", "metadata": {"name": "three"}, "spec": {"runtimeRef": ref}})
    assert home.wait_today("three")["spec"]["runtimeRef"]["name"] == "v2alpha1-runtime.example-runtime"
    for step in ("dataset-initializer", "model-initializer", "node"):
        home.play("three", step, "succeed")
    home.wait_older("three", "SUCCESS")
    home.kubectl("delete", "v2alpha1clustertrainingruntimes", "example-runtime")
    home.wait("what it became to go", lambda: not _lowered(home))
    report.figure("documents_run", report.figures.get("documents_run", 0) + 1)


def _lowered(home: Teammate) -> list[str]:
    return [name for name in home.names("clustertrainingruntimes") if name.endswith("example-runtime")]


REQUIRED = {
    "metadata.name": ("002-row-1", True),
    "spec.modelConfig": ("002-row-3", False),
    "spec.datasetConfig": ("002-row-4", False),
    "spec.numNodes": ("002-row-5", True),
    "spec.trainer.image": ("002-row-6", True),
    "spec.trainer.command": ("002-row-7", False),
    "spec.trainer.resourcesPerNode": ("002-row-8", True),
}


@pytest.mark.parametrize("field", REQUIRED)
def test_a_field_is_required_as_the_table_says(user: Teammate, field: str) -> None:
    row, required = REQUIRED[field]
    (text,) = [one.text for one in statements() if one.id == row]
    assert field in text
    assert ("Yes" in text.split()) is required
    job = yaml.safe_load(block("002-yaml-3"))
    job["metadata"]["namespace"] = user.namespace
    *parents, leaf = field.split(".")
    place = job
    for parent in parents:
        place = place[parent]
    del place[leaf]
    answer = user.kubectl("create", "--dry-run=server", "--filename=-", stdin=yaml.safe_dump(job), check=False)
    assert (answer.code != 0) is required
    assert not required or leaf in answer.stderr


def test_a_namespace_is_kubectls_where_none_is_written(user: Teammate) -> None:
    """The table calls it required; kubectl writes its own where a file has none, and without one there is none."""
    job = yaml.safe_load(block("002-yaml-2"))
    del job["metadata"]["namespace"]
    user.apply(job)
    assert user.older("pytorch-train-resnet")["metadata"]["namespace"] == user.namespace


def test_only_without_a_runtime_must_a_job_say_it_all(user: Teammate) -> None:
    ref = {"apiGroup": "trainer.kubeflow.org", "name": "today"}
    job = {"apiVersion": OLDER, "kind": "TrainJob", "metadata": {"name": "short"}, "spec": {"runtimeRef": ref}}
    user.apply(job)
    user.wait_today("short")


def test_the_status_is_one_of_three_words_with_conditions_and_metrics(user: Teammate) -> None:
    user.apply(runtime(TODAY, "own", kind="TrainingRuntime"))
    for name in ("good", "bad"):
        ref = {"kind": "TrainingRuntime", "name": "own"}
        user.apply({"apiVersion": OLDER, "kind": "TrainJob", "metadata": {"name": name}, "spec": {"runtimeRef": ref}})
    user.play("good", "node", "run")
    assert "state" not in user.older("bad").get("status", {})
    user.wait_older("good", "RUNNING")
    user.report("good", loss="0.25", accuracy="0.9")
    user.play("good", "node", "succeed")
    status = user.wait_older("good", "SUCCESS")
    assert {"name": "loss", "value": "0.25"} in status["metrics"]
    assert [one["type"] for one in status["conditions"] if one["status"] == "True"] == ["Complete", "InSync"]
    user.play("bad", "node", "fail")
    status = user.wait_older("bad", "FAILED")
    assert [one["type"] for one in status["conditions"] if one["status"] == "True"] == ["Failed", "InSync"]
