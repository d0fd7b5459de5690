"""The operator is killed with SIGKILL between each two writes that it makes for a TrainJob, and started again.

For each path of a TrainJob's life, one runs undisturbed: it shows the writes of the path and its end state. Then one
runs for each gap: the operator makes n writes, is killed when it asks for the next, and a new one takes over. Every
object of the TrainJob must end up the same to the last field, who manages it included.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from lab.processes import wait_for
from tests import shared
from tests.e2e.gate import Gate
from tests.e2e.played import Played, runtime
from tests.e2e.shell import WAITING, shell_job, shell_runtime
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

SNAPSHOT = "POST configmaps"
APPLY = "PATCH jobsets"
STATUS = "PATCH trainjobs/status"
STOP = "DELETE jobsets"


@dataclass(frozen=True)
class Path:
    """One path: how a TrainJob comes to its beginning, what then happens, and which writes follow, Events aside."""

    name: str
    begin: Callable[[Played], None]
    happen: Callable[[Played], None]
    writes: tuple[str, ...]


def _nothing(_: Played) -> None:
    pass


def _create(job: Played) -> None:
    job.create()


def _create_suspended(job: Played) -> None:
    job.create(suspend=True)


def _created(job: Played) -> None:
    job.create()
    _wait_phase(job, "Pending")


def _running(job: Played) -> None:
    job.create()
    job.wait("to have a JobSet", lambda objects: objects["jobset"] is not None)
    job.report(ready=1, active=1)
    _wait_phase(job, "Running")


def _suspended(job: Played, **spec: Any) -> None:
    job.create(suspend=True, **spec)
    _wait_phase(job, "Suspended")


def _wait_phase(job: Played, phase: str) -> None:
    """Wait until a TrainJob says how it is: nothing more is written then until something happens."""
    job.wait(
        f"to be {phase}",
        lambda objects: objects["jobset"] and (objects["trainjob"].get("status") or {}).get("phase") == phase,
    )


PATHS = (
    Path("create", _nothing, _create, (SNAPSHOT, APPLY, STATUS)),
    Path("create-suspended", _nothing, _create_suspended, (SNAPSHOT, APPLY, STATUS)),
    Path("start", _created, lambda job: job.report(ready=1, active=1), (STATUS,)),
    Path("suspend", _running, lambda job: job.set_suspend(suspend=True), (APPLY, STATUS)),
    Path("resume", _suspended, lambda job: job.set_suspend(suspend=False), (APPLY, STATUS)),
    # A resume grants the whole time anew, however late it is noticed.
    Path(
        "deadline",
        lambda job: _suspended(job, activeDeadlineSeconds=3),
        lambda job: job.set_suspend(suspend=False),
        (APPLY, STATUS, STATUS, STOP),
    ),
    Path("complete", _running, lambda job: job.report(succeeded=1, condition="Completed"), (STATUS,)),
    Path("fail", _running, lambda job: job.report(failed=1, condition="Failed"), (STATUS,)),
    Path("recreate", _created, lambda job: job.delete_jobset(), (APPLY,)),
)


class Operator:
    """Our operator behind a gate."""

    def __init__(self, cluster: Cluster, gate: Gate) -> None:
        self.cluster = cluster
        self.gate = gate
        self._direct = cluster.engines()[trainplane.ENGINE]

    def lead_through_the_gate(self) -> None:
        direct = f"--kubeconfig={trainplane.kubeconfig(self.cluster)}"
        assert direct in self._direct.command
        led = [f"--kubeconfig={self.gate.kubeconfig()}" if word == direct else word for word in self._direct.command]
        # Without progress, which applies one more object right before each JobSet, as MPI's host file is.
        self._restart_as([*led, "--feature-gates=TrainJobStatus=false"])

    def lead_directly(self) -> None:
        self._restart_as(self._direct.command)

    def _restart_as(self, command: list[str]) -> None:
        self.cluster.kill(trainplane.ENGINE)
        self.cluster.start(trainplane.ENGINE, command, self._direct.environment)
        trainplane.wait_ready(self.cluster)

    def arm(self, job: str, *, after: int) -> None:
        self.gate.arm(lambda: self.cluster.engines()[trainplane.ENGINE].process, job, after=after)

    def wait_killed(self) -> None:
        wait_for("the operator's end", self.gate.sprung, seconds=60, log=self.cluster.log(trainplane.ENGINE))

    def start_again(self, *, armed_for: str | None = None) -> None:
        """Start it again, once the killed one is gone; armed, it may make one write and perhaps never get ready."""
        self.cluster.kill(trainplane.ENGINE)
        if armed_for:
            self.arm(armed_for, after=1)
            self.cluster.revive(trainplane.ENGINE)
        else:
            self.gate.disarm()
            self.cluster.revive(trainplane.ENGINE)
            trainplane.wait_ready(self.cluster)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a cluster of this module's own, because its tests kill the operator."""
    with shared.own_node_cluster("kills") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def operator(cluster: Cluster) -> Iterator[Operator]:
    with Gate(cluster) as gate:
        operator = Operator(cluster, gate)
        operator.lead_through_the_gate()
        yield operator
        operator.lead_directly()


@pytest.fixture(scope="module")
def home(cluster: Cluster) -> Iterator[User]:
    user = User(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    user.apply(runtime(user.namespace))
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")


def _undisturbed(path: Path, job: Played, gate: Gate) -> dict[str, Any]:
    """Run a path without a kill; return its end state."""
    path.begin(job)
    begun = len(gate.about(job.name))
    path.happen(job)
    wanted = list(path.writes)
    wait_for(
        f"{job.name}: its {len(wanted)} writes", lambda: len(gate.about(job.name)) - begun >= len(wanted), seconds=60
    )
    assert gate.about(job.name)[begun:] == wanted
    return job.objects()


@pytest.mark.parametrize("path", PATHS, ids=[path.name for path in PATHS])
def test_killed_between_any_two_writes_the_end_is_the_same(
    path: Path, operator: Operator, home: User, report: SuiteReport
) -> None:
    gate, cluster = operator.gate, operator.cluster
    end = _undisturbed(path, Played(cluster, home.namespace, f"{path.name}-whole"), gate)
    jobs = [Played(cluster, home.namespace, f"{path.name}-{made}") for made in range(len(path.writes))]
    for job in jobs:
        path.begin(job)
    for made, job in enumerate(jobs):
        begun = len(gate.about(job.name))
        operator.arm(job.name, after=made)
        path.happen(job)
        operator.wait_killed()
        written = gate.about(job.name)[begun:]
        assert len(written) == made
        report.row(path=path.name, killed_after=written)
        operator.start_again()
        job.wait("the same end", lambda objects: objects == end)
    for job in jobs:
        assert job.objects() == end
    report.figure("kill_points", report.figures.get("kill_points", 0) + len(jobs))


def test_an_operator_that_dies_after_every_write_brings_real_pods_to_their_end(operator: Operator, user: User) -> None:
    gate = operator.gate
    user.apply(shell_runtime(WAITING))
    operator.arm("hard", after=1)
    user.apply(shell_job("hard", trainer={"numNodes": 2}))
    lives = 1

    def reborn_until(holds: Callable[[], bool]) -> bool:
        nonlocal lives
        if gate.sprung():
            operator.start_again(armed_for="hard")
            lives += 1
        return holds()

    def phases() -> list[str]:
        return [pod["status"]["phase"] for pod in user.pods("hard")]

    user.wait("two pods", lambda: reborn_until(lambda: phases() == ["Running", "Running"]))
    pods = {pod["metadata"]["uid"] for pod in user.pods("hard")}
    user.tell("hard", "/tmp/go")
    user.wait("its end", lambda: reborn_until(lambda: user.state("hard") == "Succeeded"))
    assert {pod["metadata"]["uid"] for pod in user.pods("hard")} == pods
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in user.pods("hard")] == [0, 0]
    assert gate.about("hard")[:2] == [SNAPSHOT, APPLY]
    assert lives >= 3
    operator.start_again()
