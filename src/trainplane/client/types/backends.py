"""Where jobs run: a cluster, this machine's processes, this machine's containers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.kube.config import Config


def _state() -> Path:
    """Return where local jobs are kept: they outlive the process that started them."""
    return Path("~/.local/state/trainplane").expanduser()


@dataclass(frozen=True)
class KubernetesBackendConfig:
    """A cluster; without arguments the one that kubectl would use here."""

    namespace: str | None = None
    """The namespace of all calls; the context's, or the pod's own, if you do not say."""
    config_file: str | None = None
    """A kubeconfig; else KUBECONFIG, else the one in the home directory, else the pod's own account."""
    context: str | None = None
    """A context of the kubeconfig; else its current one."""
    client_configuration: Config | None = None
    """All of it, for who has it already: a `trainplane.kube.config.Config`."""


@dataclass(frozen=True)
class TrainingRuntimeSource:
    """Where local backends find runtimes: files, folders or URLs, the first that has the name; then those we ship."""

    sources: Sequence[str] = ()
    """`file:///path`, `/path` to a YAML file or a folder of them, `https://…` to a YAML file."""


@dataclass(frozen=True)
class LocalProcessBackendConfig:
    """Processes of this machine: each node is a process group, with the interpreter and packages of `python`."""

    cleanup_venv: bool = True
    """Remove what `packages_to_install` brought when the job is over; False keeps it for jobs that want the same."""
    runtime_source: TrainingRuntimeSource = field(default_factory=TrainingRuntimeSource)
    python: str | None = None
    """The interpreter; the one that runs this if you do not say."""
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What a SecretRef means here: by name, then by key."""
    state: Path = field(default_factory=_state)
    """Where jobs, their logs and working directories are kept."""


@dataclass(frozen=True)
class ContainerBackendConfig:
    """Containers of this machine, by docker or podman: each node is a container of a network of their own."""

    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    auto_remove: bool = True
    """Remove containers and network when the job is deleted."""
    container_host: str | None = None
    """The engine's address, if it is not this machine's own."""
    container_runtime: Literal["docker", "podman"] | None = None
    """The engine; the first that answers, docker before podman, if you do not say."""
    runtime_source: TrainingRuntimeSource = field(default_factory=TrainingRuntimeSource)
    dataset_initializer_image: str | None = None
    """In place of the runtime's own."""
    model_initializer_image: str | None = None
    """In place of the runtime's own."""
    initializer_timeout: int = 600
    """Seconds that an initializer may take."""
    engine_options: Sequence[str] = ()
    """Put behind the engine's name in each command: `("--runtime", "runc")`."""
    run_options: Sequence[str] = ()
    """Put into each `run`: `("--ulimit", "nofile=10000:10000")`."""
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What a SecretRef means here: by name, then by key."""
    state: Path = field(default_factory=_state)
    """Where jobs, their logs and working directories are kept."""
