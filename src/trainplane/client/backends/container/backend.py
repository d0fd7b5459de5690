"""The container backend: each node is a container of docker or podman, in a network of the job's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.container.engine import find_engine
from trainplane.client.backends.container.runner import ContainerRunner
from trainplane.client.backends.local.backend import LocalBackend

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.folder import JobFolder
    from trainplane.client.types.backends import ContainerBackendConfig


class ContainerBackend(LocalBackend):
    """Runs TrainJobs as containers."""

    kind = "container"

    def __init__(self, config: ContainerBackendConfig) -> None:
        """Take the configuration, and find the engine.

        Raises:
            UnreachableError: none answers.
            InvalidError: the configuration names another engine than docker or podman.
        """
        super().__init__(config.state, config.runtime_source, config.secrets)
        self.config = config
        self._engine = find_engine(config)

    def _settings(self, uid: str) -> Tree:
        return {
            "engine_name": self._engine.name,
            "engine": list(self._engine.command),
            "run_options": list(self.config.run_options),
            "pull_policy": self.config.pull_policy,
            "network": f"trainplane-{uid[:8]}",
            "remote": bool(self.config.container_host),
            "keep": not self.config.auto_remove,
        }

    def _runner(self, folder: JobFolder) -> ContainerRunner:
        return ContainerRunner(folder, folder.read("settings") or {})

    def _adapt(self, runtime: Tree) -> Tree:
        """Give initializers the images and the time that the configuration says."""
        images = {
            names.ANCESTOR_DATASET: self.config.dataset_initializer_image,
            names.ANCESTOR_MODEL: self.config.model_initializer_image,
        }
        runtime = trees.copy(runtime)
        for job in trees.get(runtime, "spec", "template", "spec", "replicatedJobs") or ():
            if job.get("name") not in images:
                continue
            spec = job["template"].setdefault("spec", {})
            spec.setdefault("activeDeadlineSeconds", self.config.initializer_timeout)
            for container in trees.get(spec, "template", "spec", "containers") or ():
                if images[job["name"]] and container.get("name") == job["name"]:
                    container["image"] = images[job["name"]]
        return runtime
