"""docs/migration.md, executed: from a reference that runs jobs to ours, back, and over for good.

Once from a reference that was installed by its own manifests, once by its own chart.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pytest

from lab import chart, jobset, node
from lab.cluster import Cluster
from lab.errors import LabError
from lab.helm import helm
from lab.images import trainplane
from lab.paths import REPOSITORY
from lab.processes import wait_for
from tests.fleet.guide.page import Page
from tests.install import reference
from tests.install.admin import Admin, typed
from tests.install.in_flight import GATED, PATH, Jobs, conditions, listed, train_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.suite import SuiteReport

PAGE = REPOSITORY / "docs/migration.md"
STEPS = ["Before", "Over", "Look", "Back", "Back to its chart", "For good from its chart", "For good"]
RUNNING, RESUMED, HELD = 2, 2, 2
pytestmark = pytest.mark.full


@dataclass
class Migration:
    """An admin with the page, on a cluster where the reference runs jobs."""

    cluster: Cluster
    jobs: Jobs
    by_chart: bool
    source: Path
    """The reference's overlay, or its chart."""
    before: dict[str, Any]

    def follow(self, section: str) -> str:
        """Type a section's commands, with the lab's image and the reference's overlay or chart from a folder."""
        commands = "\n".join(one.script for one in Page.load(PAGE).commands() if one.section == section)
        commands = re.sub(r"(helm install trainplane \S+)", rf"\1 {' '.join(chart.image_values())}", commands)
        commands = commands.replace(reference.OVERLAY, str(self.source)).replace(reference.CHART, str(self.source))
        assert "://" not in commands
        return typed(self.cluster, commands)

    def kept(self) -> dict[str, Any]:
        """Return what must not change: the JobSets' uid and spec, their pods' uids, and the jobs' conditions."""
        jobsets = {name: (one["metadata"]["uid"], one["spec"]) for name, one in listed(self.cluster, "jobsets").items()}
        told = {name: sorted(conditions(one)) for name, one in listed(self.cluster, "trainjobs").items()}
        ours = self.jobs.endings
        return {
            "jobsets": {name: one for name, one in jobsets.items() if name in ours},
            "conditions": {name: one for name, one in told.items() if name in ours},
            "pods": self.jobs.pods(),
        }

    def releases(self) -> list[str]:
        """Return the names of all releases that Helm knows."""
        found = json.loads(helm(self.cluster, "list", "--all-namespaces", "--output=json").stdout)
        return sorted(one["name"] for one in found)

    def begin_one(self, name: str) -> None:
        """Create a TrainJob, as soon as webhooks answer, and wait for its JobSet: somebody is at work."""
        body = json.dumps(train_job(name, GATED, suspend=True))

        def created() -> bool:
            return self.cluster.kubectl("create", "-f", "-", stdin=body, check=False).code == 0

        wait_for(f"TrainJob {name} to be accepted", created, seconds=60)
        wait_for(f"the JobSet of {name}", lambda: name in listed(self.cluster, "jobsets"), seconds=60)


class Intruder:
    """A user who tries without a pause to get a TrainJob in that no webhook would let in."""

    def __init__(self, cluster: Cluster) -> None:
        self.tries = self.admitted = 0
        self._cluster = cluster
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _run(self) -> None:
        body = json.dumps(train_job("intruder", "no-such-runtime", suspend=True))
        while not self._ended.wait(0.1):
            self.tries += 1
            with self._cluster.connection() as connection, contextlib.suppress(LabError):
                connection.send("POST", f"{PATH}?dryRun=All", body)
                self.admitted += 1


@pytest.fixture(scope="module", params=[False, True], ids=["by its manifests", "by its chart"])
def migration(archived: Path, request: pytest.FixtureRequest) -> Iterator[Migration]:
    by_chart: bool = request.param
    cluster = Cluster.up(f"migration-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        node.install(cluster)
        node.load(cluster, archived, trainplane.name("operator"))
        source = (reference.install_by_chart if by_chart else reference.install_by_manifests)(cluster)
        jobs = Jobs(cluster, RUNNING, RESUMED, HELD)
        wait_for("the reference's webhooks", lambda: _makes_runtimes(jobs), seconds=90)
        found = Migration(cluster, jobs, by_chart, source, {})
        found.begin_one("under-the-reference")
        jobs.begin()
        wait_for("the status", lambda: all(_told(one) for one in found.kept()["conditions"].items()), seconds=60)
        found.before = found.kept()
        yield found
    finally:
        cluster.down()


def test_the_page_has_each_step() -> None:
    assert [one.section for one in Page.load(PAGE).commands()] == STEPS


def test_ours_takes_over_and_changes_nothing(migration: Migration, report: SuiteReport) -> None:
    assert reference.MANAGER in migration.follow("Before")
    start = time.monotonic()
    with Intruder(migration.cluster) as intruder:
        migration.follow("Over")
    report.figure("migration_s", time.monotonic() - start)
    assert intruder.tries > 10
    assert intruder.admitted == 0
    migration.begin_one("under-ours")
    assert "running-0" in migration.follow("Look")
    assert migration.kept() == migration.before


def test_the_reference_takes_back_and_changes_nothing(migration: Migration) -> None:
    migration.follow("Back to its chart" if migration.by_chart else "Back")
    migration.begin_one("under-the-reference-again")
    assert migration.kept() == migration.before
    crd = migration.cluster.get("crd", "trainjobs.trainer.kubeflow.org")
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert "runtimeDigest" not in fields


def test_over_for_good_each_job_ends_as_it_should(migration: Migration) -> None:
    migration.follow("Over")
    if migration.by_chart:
        assert reference.RELEASE in migration.releases()
        migration.follow("For good from its chart")
        assert migration.releases() == ["trainplane"]
    migration.follow("For good")
    runtime = migration.cluster.get("clustertrainingruntime", "torch-distributed")
    assert runtime["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    assert not Admin(migration.cluster).has("clusterrole", reference.MANAGER)
    migration.begin_one("under-ours-for-good")
    assert migration.kept() == migration.before
    assert migration.jobs.end() == set()


def _makes_runtimes(jobs: Jobs) -> bool:
    return all(
        jobs.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(one), check=False).code == 0
        for one in jobs.runtimes()
    )


def _told(job: tuple[str, list[str]]) -> bool:
    name, found = job
    return name.startswith("running") or "Suspended" in found
