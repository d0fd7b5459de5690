"""A hub and two workers with nodes, empty, and an admin of all three who has kubectl, helm and our pages.

No registry answers in the lab: to the charts' addresses that the pages name, this admin's helm knows folders, and
images that the nodes have. That is all that differs from what the pages say.
"""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lab import chart, node
from lab.cluster import Cluster
from lab.engines import binary, manifests
from lab.fleet import Fleet
from lab.images import engine
from tests.fleet.api import Api
from tests.fleet.guide.admin import Admin

if TYPE_CHECKING:
    from pathlib import Path

Tree = dict[str, Any]
NAMES = ("hub", "east", "west")
ENGINES = ("jobset", "kueue")
REGISTRY = "oci://registry.k8s.io"


@dataclass(frozen=True)
class Stage:
    """The clusters by the names that the pages give them."""

    fleet: Fleet
    folder: Path

    @classmethod
    def up(cls, name: str, folder: Path) -> Stage:
        """Start three clusters with a node each and what a registry would have; on failure nothing stays."""
        for program in ENGINES:
            engine.archive(program)  # once, for all three
        started: list[Cluster] = []
        try:
            for role in NAMES:
                started.append(Cluster.up(f"{name}-{role}", owned=True, audited=True))  # noqa: PERF401 to end them
            stage = cls(Fleet(started[0], tuple(started[1:])), folder)
            for worker in stage.fleet.workers:
                stage.fleet.connect(worker)
            with ThreadPoolExecutor(len(started)) as pool:
                list(pool.map(_equip, started))
            chart.offer_volume(stage.fleet.hub)
        except BaseException:
            for cluster in started:
                cluster.down()
            raise
        return stage

    @property
    def hub(self) -> Cluster:
        return self.fleet.hub

    def worker(self, name: str) -> Cluster:
        return self.fleet.clusters[NAMES.index(name)]

    def api(self, name: str = "hub") -> Api:
        return Api(self.worker(name))

    @cached_property
    def admin(self) -> Admin:
        """The reader of the pages."""
        tools = self.folder / "tools"
        tools.mkdir()
        helm = tools / "helm"
        helm.write_text(self._helm())
        helm.chmod(0o755)
        return Admin.of(dict(zip(NAMES, self.fleet.clusters, strict=True)), self.folder, str(tools))

    def user(self, name: str) -> Admin:
        """Return somebody who has a certificate of the hub, and no right but those that the hub's RBAC gives."""
        return Admin(self.hub, self.hub.user(name, name))

    def _helm(self) -> str:
        """Return the program that this admin calls helm."""
        ports = ",".join(str(cluster.port) for cluster in self.fleet.clusters)
        known = {
            f"{REGISTRY}/jobset/charts/jobset": (_folder("jobset"), *_image("jobset", "image")),
            f"{REGISTRY}/kueue/charts/kueue": (_folder("kueue"), *_image("kueue", "controllerManager.manager.image")),
            "charts/trainplane": (
                "charts/trainplane",
                *chart.image_values(),
                f"--set=networkPolicy.apiServerPorts={{{ports}}}",
                f"--set=hub.workerPorts={{{ports}}}",
            ),
        }
        cases = "\n".join(f"    {name}) arguments+=({shlex.join(words)}) ;;" for name, words in known.items())
        homes = "\n".join(f"export HELM_{home}_HOME={self.folder}/helm" for home in ("CACHE", "CONFIG", "DATA"))
        return f"""#!/bin/bash
{homes}
arguments=()
for argument in "$@"; do
  case "$argument" in
{cases}
    *) arguments+=("$argument") ;;
  esac
done
exec {binary("helm")} "${{arguments[@]}}"
"""


def _equip(cluster: Cluster) -> None:
    """Give a cluster a node, and the node the images that it would pull."""
    node.install(cluster)
    node.give(cluster, "operator")
    for name in ENGINES:
        node.load(cluster, engine.archive(name), engine.reference(name))


def _folder(name: str) -> str:
    return str(manifests(name) / "charts" / name)


def _image(name: str, value: str) -> tuple[str, str]:
    settings = {"repository": engine.repository(name), "tag": "1", "pullPolicy": "Never"}
    return "--set-string", ",".join(f"{value}.{key}={said}" for key, said in settings.items())
