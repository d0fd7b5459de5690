"""The proof finds what is planted: a comparison that finds nothing must be one that could."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.legacy.migrate.corpus import manifests
from trainplane.api import tree as trees
from trainplane.api.legacy import kinds
from trainplane.legacy.migrate.comparison import compare
from trainplane.legacy.migrate.convert import migrate
from trainplane.legacy.migrate.pods import Pod, looked_at, pods_of_job, pods_of_trainjob
from trainplane.legacy.migrate.proof import rendered
from trainplane.legacy.migrate.shipped import shipped_runtime

if TYPE_CHECKING:
    from collections.abc import Callable

JOB = manifests()["pytorch-placed"]
RANKED = manifests()["pytorch-master-differs"]


def pods(source: dict[str, Any], order: tuple[str, ...]) -> tuple[list[Pod], list[Pod]]:
    moved = migrate(source)
    runtime = moved.objects[0] if len(moved.objects) > 1 else shipped_runtime("torch")
    before = pods_of_job(kinds.PYTORCH, source, joined=len(order) == 1)
    return before, pods_of_trainjob(rendered(moved.objects[-1], runtime), order)


def altered(pod: Pod, *path: Any, value: Any) -> Pod:
    return replace(pod, spec=trees.put(pod.spec, *path, value=value))


def trained(pod: Pod, field: str, value: Any) -> Pod:
    return replace(pod, container={**pod.container, field: value})


def with_variable(pod: Pod, name: str, value: str) -> Pod:
    return trained(pod, "env", [*pod.container.get("env", ()), {"name": name, "value": value}])


PLANTED: dict[str, tuple[str, Callable[[Pod], Pod]]] = {
    "image": ("image", lambda pod: trained(pod, "image", "registry.example.com/other:1")),
    "command": ("command", lambda pod: trained(pod, "command", ["sleep"])),
    "resources": ("resources", lambda pod: trained(pod, "resources", {"limits": {"cpu": "1"}})),
    "mounts": ("volumeMounts", lambda pod: trained(pod, "volumeMounts", [])),
    "volumes": ("volumes", lambda pod: altered(pod, "volumes", value=[])),
    "account": ("serviceAccountName", lambda pod: altered(pod, "serviceAccountName", value="default")),
    "user": ("securityContext", lambda pod: altered(pod, "securityContext", "runAsUser", value=0)),
    "restarts": ("restartPolicy", lambda pod: altered(pod, "restartPolicy", value="OnFailure")),
    "network": ("hostNetwork", lambda pod: altered(pod, "hostNetwork", value=True)),
    "init container": ("initContainers", lambda pod: altered(pod, "initContainers", value=[{"name": "new"}])),
    "nodes": ("nodes", lambda pod: with_variable(pod, "PET_NNODES", "7")),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    before, after = pods(JOB, ("node",))
    field, plant = PLANTED[fault]
    assert {one.field for one in compare(before, after)} == {"terminationMessagePolicy"}
    assert field in {one.field for one in compare(before, [plant(after[0]), *after[1:]])}


def test_a_pod_too_few_is_found() -> None:
    before, after = pods(JOB, ("node",))
    assert [one.field for one in compare(before, after[1:])] == ["count"]


@pytest.mark.parametrize(
    ("variable", "value", "field"),
    [
        ("RANK", "3", "rank"),
        ("WORLD_SIZE", "2", "nodes"),
        ("MASTER_ADDR", "parameter-averaging-worker-0-0.parameter-averaging", "address"),
        ("PET_MASTER_ADDR", "nobody", "address"),
    ],
)
def test_nodes_that_would_not_find_each_other_are_found(variable: str, value: str, field: str) -> None:
    before, after = pods(RANKED, ("master", "worker"))
    assert compare(before, after) == []
    planted = with_variable(after[1], variable, value)
    assert field in {one.field for one in compare(before, [after[0], planted, *after[2:]])}


def test_each_rank_is_the_one_it_was() -> None:
    before, after = pods(RANKED, ("master", "worker"))
    assert [pod.env["RANK"] for pod in after] == [pod.env["RANK"] for pod in before] == ["0", "1", "2", "3"]
    assert {pod.env["MASTER_ADDR"] for pod in after} == {after[0].host}


def test_no_value_is_ever_told() -> None:
    before, after = pods(JOB, ("node",))
    before = [with_variable(pod, "TOKEN", "s3cret") for pod in before]
    (found,) = [one for one in compare(before, after) if one.field.startswith("env")]
    assert str(found) == "env TOKEN of 2 pods"


def test_of_thousands_some_are_looked_at() -> None:
    assert looked_at(3) == [0, 1, 2]
    assert looked_at(10_000) == [*range(8), 9_999]
