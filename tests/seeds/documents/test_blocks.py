"""YAML of the documents, read from them, is applied and runs: what e2e shows of the examples holds of the sources.

Images, programs and amounts are the lab's, as in `tests/e2e/localise`. A part that stands by itself gets the rest of a
runtime around it, and a runtime for which its document has no TrainJob that holds gets the shortest one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.localise import localised, reports
from tests.e2e.shell import API, shell_runtime
from tests.seeds.documents.indentation import indented
from tests.seeds.documents.promises import HOLDS, promises
from tests.seeds.documents.reading import documents, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.user import User

Tree = dict[str, Any]

_OLDER = "apiVersion: kubeflow.org/v2alpha1"
"""How blocks of the older shape begin, which `tests/legacy/older` applies."""
_HOLDING = {one.id for one in promises() if one.verdict == HOLDS} - {
    one.id for one in statements() if one.text.startswith(_OLDER)
}
_NUMBERS = sorted({one.document for one in statements() if one.kind == "yaml" and one.id in _HOLDING})

pytestmark = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")


def _applied(number: str) -> list[Tree]:
    """Return the objects of a document that hold, in order, and what they need beside them."""
    written = [
        yaml.safe_load(indented(one.text))
        for one in statements()
        if (one.document, one.kind) == (number, "yaml") and one.id in _HOLDING
    ]
    whole = [one if "kind" in one else _around(one) for one in written]
    named = {one["spec"]["runtimeRef"]["name"] for one in whole if one["kind"] == "TrainJob"}
    lonely = [one for one in whole if one["kind"] != "TrainJob" and one["metadata"]["name"] not in named]
    return [localised(one, image_name="python", programs={}) for one in [*whole, *map(_shortest_job, lonely)]]


def _around(part: Tree) -> Tree:
    """Return a runtime that has a part of the documents in its place; `gpu` means nothing where there is no GPU."""
    runtime = shell_runtime("true") | {"kind": "ClusterTrainingRuntime"}
    spec = runtime["spec"]
    (name,) = part
    runtime["metadata"] = {"name": f"with-{name.lower()}"}
    if name == "mlPolicy":
        spec |= part
        (step,) = spec["template"]["spec"]["replicatedJobs"]
        step["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    else:
        del spec["mlPolicy"]
        spec["template"]["spec"] |= part
    return runtime


def _shortest_job(runtime: Tree) -> Tree:
    meta, kind = runtime["metadata"], runtime["kind"]
    namespace = meta.get("namespace", "default")
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": {"name": f"{meta['name']}-job", "namespace": namespace},
        "spec": {"runtimeRef": {"name": meta["name"], "kind": kind}},
    }


@pytest.fixture
def home(user: User) -> Iterator[User]:
    """Return a user in `default`, which is left as it was."""
    home = user.elsewhere("default")
    yield home
    home.kubectl("delete", "trainjobs", "--all")
    home.kubectl("delete", "clustertrainingruntimes", "--all")


@pytest.mark.parametrize("number", _NUMBERS)
def test_it_runs_as_written(home: User, number: str) -> None:
    applied = _applied(number)
    others = {one["metadata"].get("namespace", "default") for one in applied} - {"default"}
    for namespace in others:
        home.kubectl("create", "namespace", namespace)
    for one in sorted(applied, key=lambda one: one["kind"] == "TrainJob"):
        home.elsewhere(one["metadata"].get("namespace", "default")).apply(one)
    runtimes = {one["metadata"]["name"]: one["spec"] for one in applied if one["kind"] != "TrainJob"}
    jobs = [one for one in applied if one["kind"] == "TrainJob"]
    assert jobs
    for job in jobs:
        _assert_it_did(home.elsewhere(job["metadata"]["namespace"]), job, runtimes[job["spec"]["runtimeRef"]["name"]])
    for namespace in others:
        home.kubectl("delete", "namespace", namespace, "--wait=false")


def _assert_it_did(user: User, job: Tree, runtime: Tree) -> None:
    """Assert that a job came to its end with as many nodes as it or its runtime says, each of which knew its place."""
    name = job["metadata"]["name"]
    user.wait_state(name, "Succeeded")
    nodes = job["spec"].get("trainer", {}).get("numNodes", runtime.get("mlPolicy", {}).get("numNodes", 1))
    pods = user.pods(name, "node")
    assert len(pods) == nodes
    for pod in pods:
        have, asked = pod["spec"]["containers"][0]["resources"], job["spec"].get("trainer", {})
        assert have.get("requests", {}).items() >= asked.get("resourcesPerNode", {}).get("requests", {}).items()
    if "torch" in runtime.get("mlPolicy", {}):
        lines = user.logs(name)
        told = [one["env"].get("PET_NNODES") for one in reports(lines)] or [
            line.removeprefix("PET_NNODES=") for line in lines if line.startswith("PET_NNODES=")
        ]
        assert told == [str(nodes)] * nodes
