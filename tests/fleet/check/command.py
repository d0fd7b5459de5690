"""`trainplane fleet ...` as an admin runs it: a process of its own, beside the hub, from where workers are reached."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.paths import REPOSITORY
from tests.fleet.guide.admin import Admin

if TYPE_CHECKING:
    from pathlib import Path

    from lab.fleet import Fleet
    from lab.processes import Result

Tree = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What `fleet check` said, as data."""

    code: int
    tree: Tree

    def problems(self, cluster: str, area: str, about: str = "") -> list[tuple[str, str]]:
        """Return level and text of each finding in an area that speaks of something."""
        (found,) = [one for one in (self.tree["hub"], *self.tree["workers"]) if one["name"] == cluster]
        return [
            (finding["level"], finding["problem"])
            for check in found["checks"]
            if check["area"] == area
            for finding in check["findings"]
            if about in finding["problem"]
        ]

    def about(self, cluster: str, name: str) -> list[str]:
        """Return all that is said of something on a cluster, whatever the area."""
        (found,) = [one for one in (self.tree["hub"], *self.tree["workers"]) if one["name"] == cluster]
        findings = [finding for check in found["checks"] for finding in check["findings"]]
        return [finding["problem"] for finding in findings if name in finding["problem"] + finding.get("diff", "")]

    def level(self, cluster: str) -> str | None:
        """Return the worst that was found on a worker."""
        level: str | None = next(one["level"] for one in self.tree["workers"] if one["name"] == cluster)
        return level


def run(fleet: Fleet, *words: str, stdin: str | None = None, kubeconfig: Path | None = None) -> Result:
    """Run a command of the fleet on the hub, by contexts of the admin's own: MultiKueue's user sees little."""
    source = f"PYTHONPATH={REPOSITORY / 'src'}"
    if kubeconfig is None:
        names = [f"worker{number}" for number in range(1, len(fleet.workers) + 1)]
        clusters = dict(zip(("hub", *names), fleet.clusters, strict=True))
        kubeconfig = Admin.of(clusters, fleet.hub.folder).kubeconfig
        words = (*words, "--context", "hub", *(word for name in names for word in ("--worker", name)))
    command = [
        sys.executable,
        "-m",
        "trainplane.cli",
        "fleet",
        *words,
        "--kubeconfig",
        str(kubeconfig),
    ]
    return fleet.hub.sandbox.run(["env", source, *command], stdin=stdin, check=False)


def check(fleet: Fleet, *words: str, stdin: str | None = None, kubeconfig: Path | None = None) -> Said:
    """Run `fleet check` and return what it said."""
    result = run(fleet, "check", "--output", "json", *words, stdin=stdin, kubeconfig=kubeconfig)
    assert result.code in {0, 1}, result.output
    return Said(result.code, json.loads(result.stdout))


def sync(fleet: Fleet, *words: str) -> tuple[int, Tree]:
    """Run `fleet sync` and return its code and what it said."""
    result = run(fleet, "sync", "--output", "json", *words)
    assert result.code in {0, 1}, result.output
    return result.code, json.loads(result.stdout)
