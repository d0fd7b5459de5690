"""Torch differs in what the case makes of it: another value in its place is a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.compare import ABSENT, tree_differences
from tests.conformance.documents import (
    container,
    replicated_job,
    runtime,
    torch,
)
from tests.conformance.planted import (
    CONTAINER,
    ENV,
    JOBSET,
    OWNED,
    SNAPSHOT,
    difference,
    explained_by,
)

if TYPE_CHECKING:
    from tests.conformance.cases import Tree
    from tests.conformance.compare import Difference


PORTS = f"{CONTAINER}.ports"
SAYS = {"trainer": {"image": "a"}}
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
RANK = {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}
VARIABLES = {
    "MASTER_ADDR": "job-node-0-0.job",
    "MASTER_PORT": "29500",
    "PET_MASTER_ADDR": "job-node-0-0.job",
    "PET_MASTER_PORT": "29500",
    "PET_NNODES": "3",
    "PET_NPROC_PER_NODE": "1",
    "PET_NODE_RANK": "",
}
THREE = torch(replicated_job(), nodes=3)


def variables(**others: str) -> list[Tree]:
    """Return the variables of a node of three, some with other values."""
    values = VARIABLES | others
    return [RANK if name == RANK["name"] else {"name": name, "value": value} for name, value in values.items()]


@pytest.mark.parametrize(
    ("ours", "known"),
    [
        (variables(), True),
        (variables(PET_NNODES="999"), False),
        (variables(PET_NPROC_PER_NODE="auto"), False),
        (variables(PET_MASTER_ADDR="job-node-0-1.job"), False),
        (variables(PET_MASTER_PORT="1"), False),
        (variables()[1:], False),
        ([*variables(), {"name": "A", "value": "1"}], False),
    ],
)
def test_variables_without_a_trainer_are_those_of_the_case(ours: list[Tree], known: bool) -> None:
    found = difference(JOBSET, ENV, ABSENT, ours, on=THREE)
    assert explained_by(found) == ("torch-without-trainer" if known else None)


PORT = {"containerPort": 29500, "protocol": "TCP"}
WEB, UNNAMED = {"containerPort": 80, "name": "web", "protocol": "TCP"}, {"containerPort": 9, "protocol": "TCP"}
STRANGE = {"containerPort": 29500, "protocol": "x-1"}
OWNED_PORT = f'{OWNED}.f:ports.k:{{"containerPort":29500,"protocol":"TCP"}}'
ODD: list[Tree] = [{"containerPort": 2}, {"containerPort": 3, "protocol": "x-1"}]


def with_ports(*ports: Tree) -> Tree:
    """Return a Torch runtime whose node has ports."""
    return torch(replicated_job(containers=[container(ports=list(ports))]))


@pytest.mark.parametrize(
    ("found", "by"),
    [
        (difference(JOBSET, PORTS, [WEB], [WEB, PORT], on=with_ports(WEB)), "torch-without-trainer"),
        (difference(JOBSET, PORTS, [WEB], [PORT], on=with_ports(WEB)), None),
        (difference(JOBSET, PORTS, ABSENT, [{**PORT, "containerPort": 29501}]), None),
        (difference(JOBSET, PORTS, [PORT], [UNNAMED, PORT], on=with_ports(UNNAMED), spec=SAYS), "ports-kept"),
        (difference(JOBSET, PORTS, [PORT], [WEB, PORT], on=with_ports(UNNAMED), spec=SAYS), None),
        (difference(JOBSET, f"{PORTS}[0].protocol", "TCP", "x-1", on=with_ports(STRANGE), spec=SAYS), "ports-kept"),
        (difference(JOBSET, f"{PORTS}[0].protocol", "TCP", "UDP", on=with_ports(STRANGE), spec=SAYS), None),
        (difference(JOBSET, OWNED_PORT, {".": {}}, ABSENT, on=with_ports(STRANGE), spec=SAYS), "ports-kept"),
        (difference(JOBSET, OWNED_PORT, {".": {}}, ABSENT, on=with_ports(WEB), spec=SAYS), None),
        (difference(JOBSET, "", ABSENT, {"kind": "JobSet"}, on=with_ports(*ODD)), "ports-kept"),
        (difference(JOBSET, "", ABSENT, {"kind": "JobSet"}, on=with_ports(WEB, UNNAMED)), None),
        (difference("PodGroup job", "", ABSENT, {"kind": "PodGroup"}, on=with_ports(*ODD)), "ports-kept"),
        (difference("PodGroup job", "", ABSENT, {"kind": "PodGroup"}, on=with_ports(WEB, UNNAMED)), None),
        (difference(SNAPSHOT, "", ABSENT, {"kind": "ConfigMap"}, on=with_ports(*ODD)), None),
    ],
    ids=str,
)
def test_ports_are_the_runtimes_and_torchs(found: Difference, by: str | None) -> None:
    assert explained_by(found) == by


@pytest.mark.parametrize(
    ("path", "ours", "known"),
    [
        (f'{OWNED}.f:env.k:{{"name":"PET_NNODES"}}', {".": {}}, True),
        (f"{OWNED}.f:env", {f'k:{{"name":"{name}"}}': {".": {}} for name in VARIABLES}, True),
        (f"{OWNED}.f:env", {'k:{"name":"PET_NNODES"}': {".": {}}}, False),
        (f'{OWNED}.f:ports.k:{{"containerPort":29500,"protocol":"TCP"}}', {".": {}}, True),
        (f'{OWNED}.f:env.k:{{"name":"A"}}', {".": {}}, False),
        (f"{OWNED}.f:env", {'k:{"name":"PET_NNODES"}': {}, 'k:{"name":"A"}': {}}, False),
        (f'{OWNED}.f:ports.k:{{"containerPort":80,"protocol":"TCP"}}', {".": {}}, False),
    ],
)
def test_only_torchs_own_fields_are_ours_alone(path: str, ours: Any, known: bool) -> None:
    assert explained_by(difference(JOBSET, path, ABSENT, ours)) == ("torch-without-trainer" if known else None)


MASTER = {"name": "MASTER_ADDR", "value": "job-node-0-0.job"}
OWNED_MASTER = f'{OWNED}.f:env.k:{{"name":"MASTER_ADDR"}}'
PLAIN = runtime(replicated_job(), policy={"numNodes": 1})
SAYS_COMMAND = torch(replicated_job(containers=[container(command=["python3"])]))
GIVES_ARGS = {"trainer": {"args": ["train.py"]}}


@pytest.mark.parametrize(
    ("path", "ours", "on", "known"),
    [
        (f"{ENV}[MASTER_ADDR]", MASTER, None, True),
        (f"{ENV}[MASTER_PORT]", {"name": "MASTER_PORT", "value": "29500"}, None, True),
        (OWNED_MASTER, {".": {}, "f:value": {}}, None, True),
        (f"{ENV}[MASTER_ADDR]", {**MASTER, "value": "job-node-0-1.job"}, None, False),
        (f"{ENV}[MASTER_PORT]", {"name": "MASTER_PORT", "value": "1"}, None, False),
        (f"{ENV}[MASTER]", MASTER, None, False),
        (f"{ENV}[MASTER_ADDR]", MASTER, PLAIN, False),
        (OWNED_MASTER, {".": {}, "f:value": {}}, PLAIN, False),
        (f"{ENV.replace('[node]', '[side]')}[MASTER_ADDR]", MASTER, None, False),
    ],
)
def test_the_first_node_is_known_by_its_address(path: str, ours: Any, on: Tree | None, known: bool) -> None:
    found = difference(JOBSET, path, ABSENT, ours, spec=GIVES_ARGS, on=on)
    assert explained_by(found) == ("master" if known else None)


@pytest.mark.parametrize(
    ("path", "ours", "spec", "on", "known"),
    [
        (f"{CONTAINER}.command", ["torchrun"], GIVES_ARGS, None, True),
        (f"{OWNED}.f:command", {}, GIVES_ARGS, None, True),
        (f"{CONTAINER}.command", ["torchrun", "--standalone"], GIVES_ARGS, None, False),
        (f"{CONTAINER}.command", ["torchrun"], {"trainer": {"numNodes": 2}}, None, False),
        (f"{CONTAINER}.command", ["torchrun"], {"trainer": {"args": ["a"], "command": ["b"]}}, None, False),
        (f"{CONTAINER}.command", ["torchrun"], {}, None, False),
        (f"{CONTAINER}.command", ["torchrun"], GIVES_ARGS, SAYS_COMMAND, False),
        (f"{CONTAINER}.command", ["torchrun"], GIVES_ARGS, PLAIN, False),
        (f"{CONTAINER}.args", ["torchrun"], GIVES_ARGS, None, False),
    ],
)
def test_torchrun_is_a_command_that_nobody_gave(path: str, ours: Any, spec: Tree, on: Tree | None, known: bool) -> None:
    assert explained_by(difference(JOBSET, path, ABSENT, ours, spec=spec, on=on)) == ("torchrun" if known else None)


def test_the_first_nodes_variables_hide_nothing_beside_them() -> None:
    theirs = [{"name": "A", "value": "1"}]
    ours = [{"name": "A", "value": "2"}, MASTER]
    found = tree_differences({"env": theirs}, {"env": ours}, "x")
    assert found == [("x.env[MASTER_ADDR]", ABSENT, MASTER), ("x.env[A].value", "1", "2")]
    assert tree_differences({"env": theirs}, {"env": [*ours, MASTER | {"name": "B"}]}, "x")[1:] == [
        ("x.env", theirs, [ours[0], MASTER | {"name": "B"}])
    ]


@pytest.mark.parametrize(
    ("amounts", "ours", "known"),
    [
        ({"nvidia.com/mig-1g.5gb": 1}, "auto", True),
        ({"google.com/tpu": 4}, "4", True),
        ({"google.com/tpu": 4}, "5", False),
        ({"google.com/tpu": 4}, "auto", False),
        ({"cpu": 4}, "4", False),
    ],
)
def test_processes_follow_what_the_pod_has(amounts: Tree, ours: str, known: bool) -> None:
    spec = {"trainer": {"resourcesPerNode": {"limits": amounts}}}
    found = difference(JOBSET, f"{ENV}[PET_NPROC_PER_NODE].value", "1", ours, spec=spec)
    assert explained_by(found) == ("accelerators" if known else None)


def test_processes_that_the_trainjob_says_are_never_ours_to_count() -> None:
    spec = {"trainer": {"numProcPerNode": 4, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}}
    assert explained_by(difference(JOBSET, f"{ENV}[PET_NPROC_PER_NODE].value", "4", "auto", spec=spec)) is None
