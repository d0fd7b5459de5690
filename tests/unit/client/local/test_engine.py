"""Docker and podman are found by asking them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from trainplane.client.backends.container.engine import Engine, engine_of, find_engine, last_line, unnamed_file
from trainplane.client.errors import EngineError, InvalidError, UnreachableError
from trainplane.client.types.backends import ContainerBackendConfig

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_the_first_that_answers_is_taken(programs: Path) -> None:
    program(programs, "docker", "echo 'Cannot connect to the daemon' >&2; exit 1")
    program(programs, "podman", 'echo "$@"')
    config = ContainerBackendConfig(engine_options=("--runtime", "runc"))
    engine = find_engine(config)
    assert (engine.name, engine.command) == ("podman", ("podman", "--runtime", "runc"))
    assert engine.is_podman
    assert engine_of({"engine_name": "podman", "engine": ["podman", "--runtime", "runc"]}) == engine
    program(programs, "docker", "echo '{}'")
    assert find_engine(ContainerBackendConfig()).name == "docker"


def test_docker_may_end_well_without_its_daemon(programs: Path) -> None:
    program(programs, "docker", """echo '{"ServerErrors": ["Cannot connect"]}'""")
    with pytest.raises(UnreachableError, match=r"docker: .*Cannot connect.*; podman: not installed"):
        find_engine(ContainerBackendConfig())


def test_an_engine_elsewhere_is_named_in_its_own_way(programs: Path) -> None:
    for name in ("docker", "podman"):
        program(programs, name, "exit 0")
    docker = find_engine(ContainerBackendConfig(container_host="tcp://h", container_runtime="docker"))
    podman = find_engine(ContainerBackendConfig(container_host="ssh://h", container_runtime="podman"))
    assert docker.command == ("docker", "--host", "tcp://h")
    assert podman.command == ("podman", "--remote", "--url", "ssh://h")
    with pytest.raises(InvalidError, match="container_runtime must be docker or podman"):
        find_engine(ContainerBackendConfig(container_runtime="lxc"))  # type: ignore[arg-type]


async def test_an_error_has_what_the_engine_said(programs: Path) -> None:
    program(programs, "podman", 'echo one >&2; echo "no such image: $2 $TOKEN" >&2; exit 125')
    engine = Engine("podman", ("podman",))
    with pytest.raises(EngineError, match="podman pull: no such image: i t"):
        await engine.run("pull", "i", environment={"TOKEN": "t"})
    assert (await engine.run("pull", "i", check=False)).code == 125
    with pytest.raises(EngineError, match="podman pull: no such image: i"):
        engine.call("pull", "i")
    assert engine.call("pull", "i", check=False).returncode == 125
    assert last_line("") == "it failed and said nothing"


async def _begun(folder: Path) -> None:
    while not (folder / "pid").exists() or not (folder / "pid").read_text():  # noqa: ASYNC110 another process
        await asyncio.sleep(0.01)


async def test_a_command_that_makes_something_ends_before_its_caller(programs: Path, tmp_path: Path) -> None:
    program(programs, "podman", f"echo $$ > {tmp_path}/pid; /bin/sleep 0.2; echo made > {tmp_path}/made")
    task = asyncio.ensure_future(Engine("podman", ("podman",)).run("create", "i", whole=True))
    await _begun(tmp_path)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "made").exists()


async def test_a_command_ends_with_its_caller(programs: Path, tmp_path: Path) -> None:
    program(programs, "podman", f"echo $$ > {tmp_path}/pid; exec /bin/sleep 60")
    task = asyncio.ensure_future(Engine("podman", ("podman",)).run("pull", "i"))
    await _begun(tmp_path)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("without_memory", [False, True])
async def test_a_file_without_a_name_is_read_by_a_child(
    without_memory: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also on systems that have no files in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if without_memory:
        monkeypatch.delattr(os, "memfd_create")
    engine = Engine("cat", ("cat",))
    with unnamed_file(b"secret\n") as number:
        assert os.listdir(tmp_path) == []  # noqa: PTH208 no iterator is made
        assert (await engine.run(f"/dev/fd/{number}", files=[number])).output == "secret\n"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
