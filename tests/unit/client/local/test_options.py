"""What docker and podman are asked for."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.local.documents import Tree, launch, pod
from trainplane.client.backends.container.options import Variables, command_words, create_options, listens
from trainplane.client.backends.local.volumes import Mount
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Sequence

NETWORK = {"name": "net", "ip": "10.0.0.3"}


def options(
    container: Tree | None = None,
    *,
    podman: bool = True,
    network: Tree | None = None,
    gpus: Sequence[int] = (),
    **more: object,
) -> list[str]:
    return list(
        create_options(
            launch(container, **more),
            uid="u",
            gpus=gpus,
            network=network or NETWORK,
            hosts={"a-node-0-0.a": "10.0.0.2"},
            podman=podman,
        )
    )


def pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(words))


def test_a_pod_has_its_name_address_and_neighbours() -> None:
    words = pairs(options())
    assert ("--name", "a-node-0-1-x.node") in words
    assert ("--network", "net") in words
    assert ("--ip", "10.0.0.3") in words
    assert ("--hostname", "a-node-0-0") in words
    assert ("--add-host", "a-node-0-0.a:10.0.0.2") in words
    assert ("--label", "trainer.kubeflow.org/trainjob-name=a") in words
    assert ("--label", "trainplane.dev/trainjob-uid=u") in words


def test_containers_of_a_pod_share_its_address() -> None:
    words = options(network={"container": "first"})
    assert ("--network", "container:first") in pairs(words)
    assert "--ip" not in words


def test_limits_are_passed_on() -> None:
    container = {"resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}
    docker = pairs(options(container, podman=False, gpus=(2, 3)))
    assert {("--cpus", "1.5"), ("--memory", "1073741824"), ("--memory-swap", "1073741824")} <= set(docker)
    assert ("--gpus", '"device=2,3"') in docker
    podman = pairs(options(container, gpus=(2, 3)))
    assert {("--device", "nvidia.com/gpu=2"), ("--device", "nvidia.com/gpu=3")} <= set(podman)
    assert not {"--gpus", "--device"} & {*options(container), *options(container, podman=False)}


def test_users_mounts_and_folders() -> None:
    context = {"runAsUser": 1000, "runAsGroup": 5, "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}}
    document = pod()
    document["spec"]["securityContext"] = {"fsGroup": 7, "privileged": True}
    container = {"securityContext": {**context, "readOnlyRootFilesystem": True}, "workingDir": "/w"}
    mounts = [Mount(Path("/s"), "/t"), Mount(Path("/r"), "/q", read_only=True)]
    words = options(container, pod=document, mounts=mounts)
    for pair in (
        ("--user", "1000:5"),
        ("--group-add", "7"),
        ("--cap-add", "IPC_LOCK"),
        ("--cap-drop", "ALL"),
        ("--workdir", "/w"),
        ("--mount", "type=bind,source=/s,target=/t"),
        ("--mount", "type=bind,source=/r,target=/q,readonly"),
    ):
        assert pair in pairs(words)
    assert {"--privileged", "--read-only"} <= set(words)


@pytest.mark.finding(
    "hub-and-sdk",
    15,
    "errors did not pickle, jobs left things to the next, watchers fetched all pods, and other small things",
)
def test_values_are_never_in_the_command_line() -> None:
    given = {"TOKEN": "secret", "TEXT": "a\nb", "GOOGLE_CREDENTIALS": "{}", "SSH_PRIVATE_KEY": "-----\n", "EMPTY": ""}
    variables = Variables.of(given)
    assert variables.options == [word for name in given for word in ("--env", name)]
    assert (variables.environment, variables.file) == (given, b"")


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LD_LIBRARY_PATH", "DOCKER_HOST", "CONTAINER_HOST", "https_proxy", "XDG_RUNTIME_DIR", "LANG"],
)
def test_what_the_engine_reads_itself_keeps_its_meaning(name: str) -> None:
    variables = Variables.of({name: '/bin "x" #', "A": "1"})
    assert variables.options == ["--env", "A"]
    assert variables.environment == {"A": "1"}
    assert variables.file == f'{name}=/bin "x" #\n'.encode()
    with pytest.raises(InvalidError, match=f"the variable {name} has several lines.*give it another name"):
        Variables.of({name: "a\nb"})


def test_a_command_takes_the_place_of_the_entrypoint() -> None:
    assert command_words(launch(command=["a", "b"], args=["c"]), "i") == ["--entrypoint", "a", "i", "b", "c"]
    assert command_words(launch(command=[], args=["c"]), "i") == ["i", "c"]


def test_who_listens_is_read_from_the_kernels_tables() -> None:
    tables = """  sl  local_address rem_address   st tx_queue
   0: 00000000:0016 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F90 0100007F:1234 01 00000000:00000000
"""
    assert listens(tables, 22)
    assert not listens(tables, 8080)
    assert not listens("", 22)
