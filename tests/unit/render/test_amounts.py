from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.unit.render.objects import job, node, origin, patch, render, replicated_job, runtime
from trainplane.api.tree import get
from trainplane.render.amounts import JOBSET_SPEC, Places, write_amounts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

CRD = Path(__file__).parents[3] / "manifests/crds/trainer.kubeflow.org_trainingruntimes.yaml"
POD = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
WRITTEN = [("1000m", "1"), (2, "2"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1e3", "1e3"), ("500m", "500m")]


def quantities(schema: Tree, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield where a schema has a quantity: a number or a text of a pattern, which a port has not."""
    if schema.get("x-kubernetes-int-or-string"):
        if "pattern" in schema:
            yield at
        return
    schema = schema.get("items", schema)
    for name, below in schema.get("properties", {}).items():
        yield from quantities(below, (*at, name))
    if "additionalProperties" in schema:
        yield from quantities(schema["additionalProperties"], (*at, "*"))


def places(within: Places | None, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if within is None:
        yield at
        return
    for name, below in within.items():
        yield from places(below, (*at, name))


def test_every_quantity_of_a_jobset_is_written() -> None:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    crd = yaml.load(CRD.read_text(), loader)  # noqa: S506 the loader is a safe one
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in ("spec", "template", "spec"):
        schema = schema["properties"][name]
    expected = {path for path in quantities(schema) if "status" not in path}
    assert set(places(JOBSET_SPEC)) == expected


@pytest.mark.parametrize(("said", "written"), WRITTEN)
@pytest.mark.parametrize("path", sorted(set(places(JOBSET_SPEC))), ids=".".join)
def test_an_amount_is_written_as_the_api_server_does(path: tuple[str, ...], said: Any, written: str) -> None:
    def spec(amount: Any) -> Tree:
        tree = amount
        for name in reversed(path):
            tree = {"cpu" if name == "*" else name: tree}
        found: Tree = tree
        return found

    in_objects, expected = spec(said), spec(written)
    write_amounts(in_objects)
    assert in_objects == expected


def test_lists_are_stepped_into() -> None:
    spec = {"volumeClaimPolicies": [{"templates": [{"spec": {"resources": {"requests": {"storage": 1}}}}] * 2}] * 2}
    spec = copy.deepcopy(spec)
    write_amounts(spec)
    assert str(spec).count("'storage': '1'") == 4


@pytest.mark.parametrize(
    "pod",
    [
        {"nodeSelector": {"divisor": "1000m", "sizeLimit": "1000m", "cpu": "1000m"}},
        {"containers": [{"name": "node", "env": [{"name": "divisor", "value": "1000m"}]}]},
        {"containers": [{"name": "node", "livenessProbe": {"httpGet": {"port": 8080}}}]},
        {"containers": [{"name": "node", "resources": {"limits": {"cpu": "many"}}}]},
        {"containers": [{"name": "node", "resources": {"limits": None}}], "overhead": None},
        {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": ""}}]},
    ],
    ids=str,
)
def test_what_is_no_amount_stays(pod: Tree) -> None:
    spec = {"replicatedJobs": [{"template": {"spec": {"template": {"spec": pod}}}}]}
    before = copy.deepcopy(spec)
    write_amounts(spec)
    assert spec == before


def test_amounts_of_the_runtime_and_of_patches_are_written_and_keep_their_origin() -> None:
    divisor = {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024Ki"}}
    side = {"name": "side", "image": "side"}
    have = runtime(
        replicated_job(
            "node",
            "trainer",
            containers=[*node()["template"]["spec"]["template"]["spec"]["containers"], side],
            volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}}],
        )
    )
    entry = patch(
        volumes=[{"name": "scratch", "emptyDir": {"sizeLimit": 1000}}],
        containers=[{"name": "side", "env": [{"name": "A", "valueFrom": divisor}]}],
    )
    before = copy.deepcopy((have.tree, entry))
    rendered = render(job(entry), have).jobset
    for volume, amount, whose in (("shm", "1Gi", "runtime"), ("scratch", "1k", "patch example.com/team")):
        path = (*POD, "volumes", ("name", volume), "emptyDir", "sizeLimit")
        assert get(rendered.tree, *path) == amount
        assert origin(rendered, *path).startswith(whose)
    source = (*POD, "containers", ("name", "side"), "env", 0, "valueFrom", "resourceFieldRef")
    assert get(rendered.tree, *source, "divisor") == "1Mi"
    assert (have.tree, entry) == before
