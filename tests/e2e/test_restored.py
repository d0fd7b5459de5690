"""An etcd that is set back while jobs run: what docs/operations.md says of each is so. FULL=1, on its own cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from lab import backup, profiles, trainplane
from tests.e2e.shell import WAITING, shell_job, shell_runtime
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

WATCHERS = ("kube-controller-manager", "kube-scheduler", "jobset", "kubelet")
"""Whoever else watches: without `--bump-revision` their watches begin in a future that the backup has not got, so an
admin starts them again. Our operator is left alone."""
NAMESPACE = "restored"


@pytest.fixture
def restorable() -> Iterator[Cluster]:
    (cluster,) = profiles.up("node", f"restored-{os.getpid()}", owned=True)
    try:
        trainplane.install(cluster)
        cluster.kubectl("create", "namespace", NAMESPACE)
        yield cluster
    finally:
        cluster.down()


def _pods(user: User, job: str) -> dict[str, Any]:
    """Return the pods of a job by uid, with when their container began."""
    return {
        pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["state"].get("running", {}).get("startedAt")
        for pod in user.pods(job)
    }


@pytest.mark.full
@pytest.mark.timeout(900)
def test_each_job_fares_as_the_page_says(restorable: Cluster, report: SuiteReport) -> None:
    user, kept = User(restorable, NAMESPACE), restorable.folder / "backup.db"
    user.apply(shell_runtime(WAITING), *(shell_job(name) for name in ("running", "ended", "deleted")))
    for name in ("running", "ended", "deleted"):
        user.wait_state(name, "Running")
    before = _pods(user, "running")
    backup.save(restorable, kept)

    user.tell("ended", "/tmp/go")
    user.wait_state("ended", "Succeeded")
    user.kubectl("delete", "trainjob", "deleted")
    user.wait("its pods to go", lambda: not user.pods("deleted"))
    user.apply(shell_job("made"))
    user.wait_state("made", "Running")
    with restorable.connection() as connection:  # so many versions that the restored server does not catch up soon
        for number in range(400):
            body = f'{{"metadata": {{"name": "filler-{number}"}}}}'
            connection.send("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", body)
    operator = restorable.engines()[trainplane.ENGINE].process
    backup.restore(restorable, kept)
    for engine in WATCHERS:
        restorable.kill(engine)
        restorable.revive(engine)

    assert user.names("trainjobs") == ["deleted", "ended", "running"], "what was made since the backup is gone"
    user.wait("the end that is told again", lambda: user.state("ended") == "Succeeded")
    user.apply(shell_job("after"))
    user.wait_state("after", "Running")
    assert user.names("jobsets") == ["after", "deleted", "ended", "running"]
    assert _pods(user, "running") == before, "no container of what runs began anew"
    assert operator.alive(), "noticed by itself, not by a restart"
    for name in ("running", "after"):
        user.tell(name, "/tmp/go")
        user.wait_state(name, "Succeeded")
    report.row(restored="deleted", state=user.state("deleted"), pods=len(user.pods("deleted")))
