"""Brings the engines that share libraries to the same versions of them, so that Go compiles each library once.

    python -m lab.engines.align

Every engine is pinned to its own release; of what several of them use, each gets the newest version that any of them
asks for. With versions of their own, Kubernetes' client libraries alone were compiled five times on a machine without
caches: JobSet, CoreDNS and the reference together took 640 s beside other work there, and take 38 s after Kueue.
Kubernetes itself is not among them: an API server has the libraries that it was released with. Nor is the operator of
v1 jobs, whose webhooks do not compile with today's.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, Final

from lab.engines import SOURCES

if TYPE_CHECKING:
    from pathlib import Path

SHARING: Final = ("coredns", "jobset", "kueue", "mpi-operator-oracle", "trainer")
_REQUIRED: Final = re.compile(r"^\s+(\S+) (v\S+)", re.MULTILINE)
_RELEASED: Final = re.compile(r"kubeflow|coredns/|sigs\.k8s\.io/(jobset|kueue|scheduler-plugins)|volcano")
"""Modules of engines, and what each engine speaks to in its own release's words."""
_MOST_ROUNDS: Final = 5


def required(folder: Path) -> dict[str, str]:
    """Return the versions of libraries that a folder's go.mod asks for."""
    found = _REQUIRED.findall((folder / "go.mod").read_text())
    return {module: version for module, version in found if not _RELEASED.search(module)}


def apart() -> dict[str, list[str]]:
    """Return by engine which modules, as MODULE@VERSION, it should ask for and does not."""
    asked = {name: required(SOURCES / name) for name in SHARING}
    newest: dict[str, str] = {}
    for versions in asked.values():
        for module, version in versions.items():
            newest[module] = max(newest.get(module, version), version, key=_order)
    return {
        name: [f"{module}@{newest[module]}" for module, version in versions.items() if version != newest[module]]
        for name, versions in asked.items()
    }


def _order(version: str) -> tuple[list[int], bool, str]:
    numbers, _, before = version.removeprefix("v").partition("+")[0].partition("-")
    return [int(number) for number in numbers.split(".")], not before, before


def main() -> None:
    """Raise versions until all agree: one that is raised may ask for others."""
    environment = os.environ | {"GOFLAGS": "-mod=mod", "GOWORK": "off"}
    for _ in range(_MOST_ROUNDS):
        wanted = {name: modules for name, modules in apart().items() if modules}
        for name, modules in wanted.items():
            subprocess.run(["go", "get", *modules], cwd=SOURCES / name, env=environment, check=True)
        if not wanted:
            return


if __name__ == "__main__":
    main()
