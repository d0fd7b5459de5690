"""Both local backends, each with a state folder of the test's own, and nothing left behind by any test."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.sdk.local.documents import write_runtimes
from tests.sdk.local.machine import RUN_OPTIONS, Podman, image_store, processes_with, scratch_folders
from trainplane.client.backends.container import ContainerBackend
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.types.backends import ContainerBackendConfig, LocalProcessBackendConfig, TrainingRuntimeSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from trainplane.client.backends.local.backend import LocalBackend

SECRETS = {"hub": {"token": "s3cret-of-the-test"}}


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> TrainingRuntimeSource:
    return TrainingRuntimeSource([str(write_runtimes(tmp_path_factory.mktemp("runtimes")))])


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Return podman with the lab's images; a store of its own is removed at the end."""
    engine = Podman.below(tmp_path_factory.mktemp("podman"), image_store("python", "torch"))
    yield engine
    engine.remove()


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let temporary folders of jobs be the test's own."""
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))


@pytest.fixture
def process_config(tmp_path: Path, sources: TrainingRuntimeSource) -> LocalProcessBackendConfig:
    return LocalProcessBackendConfig(runtime_source=sources, secrets=SECRETS, state=tmp_path / "state")


@pytest.fixture
def container_config(tmp_path: Path, sources: TrainingRuntimeSource, podman: Podman) -> ContainerBackendConfig:
    return ContainerBackendConfig(
        pull_policy="Never",
        container_runtime="podman",
        runtime_source=sources,
        engine_options=podman.options,
        run_options=RUN_OPTIONS,
        secrets=SECRETS,
        state=tmp_path / "state",
    )


@pytest.fixture
async def process(process_config: LocalProcessBackendConfig) -> AsyncIterator[LocalBackend]:
    """Return the process backend; afterwards no process and no folder of its jobs may be there."""
    yield ProcessBackend(process_config)
    await _delete_all(ProcessBackend(process_config))
    assert processes_with(f"{process_config.state}/") == []
    assert scratch_folders() == []


@pytest.fixture
async def container(container_config: ContainerBackendConfig, podman: Podman) -> AsyncIterator[LocalBackend]:
    """Return the container backend; afterwards no container, network or process of its jobs may be there."""
    backend = ContainerBackend(container_config)
    yield backend
    await _delete_all(backend)
    assert podman.call("ps", "--all", "--quiet") == []
    assert podman.call("network", "ls", "--quiet", "--filter", "label=trainplane.dev/trainjob-uid") == []
    assert processes_with(f"{container_config.state}/") == []


@pytest.fixture(params=["process", "container"])
def backend(request: pytest.FixtureRequest) -> LocalBackend:
    """Return each backend in turn."""
    chosen: LocalBackend = request.getfixturevalue(request.param)
    return chosen


async def _delete_all(backend: LocalBackend) -> None:
    for job in await backend.list_jobs():
        await backend.delete_job(job.name)
