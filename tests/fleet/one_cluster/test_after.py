"""GPUs do not idle while data is fetched: a training that begins after its data holds no quota until then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lab.errors import LabError
from tests.fleet import objects
from tests.fleet.one_cluster.team import condition_of

if TYPE_CHECKING:
    from tests.fleet.one_cluster.team import Team
    from tests.suite import SuiteReport

AFTER = "trainplane.dev/after"
GATES = "kueue.x-k8s.io/admission-gated-by"


def _reserved(team: Team) -> int:
    """Return the CPUs that the team's queue has given away."""
    (flavor,) = team.get("clusterqueues", team.namespace)["status"]["flavorsReservation"]
    return next(int(one["total"]) for one in flavor["resources"] if one["name"] == "cpu")


@pytest.mark.scenario("I", "A training that begins after its data: others use its quota meanwhile, then it is admitted")
def test_a_training_holds_no_quota_while_its_data_is_fetched(team: Team, report: SuiteReport) -> None:
    team.open_queue({"cpu": "5"})
    team.submit("data", runtime=objects.HELD)
    team.submit("training", runtime=objects.HELD, nodes=4, annotations={AFTER: "data"})
    team.submit("meanwhile", runtime=objects.HELD, nodes=4)
    team.wait_running("data", "meanwhile")
    begin = time.monotonic()
    training = team.job("training")
    assert training["metadata"]["annotations"][GATES] == AFTER
    assert training["spec"]["suspend"]
    assert team.pods("training") == []
    team.wait("its queue to have counted the other two", lambda: _reserved(team) == 5)
    assert condition_of(team.workload("training") or {}, "QuotaReserved") != "True", "its four CPUs are another's"

    team.end_pods("meanwhile")
    team.wait("meanwhile to be complete", lambda: team.holds("trainjobs", "meanwhile", "Complete"))
    team.wait("its quota to be free", lambda: _reserved(team) == 1)
    assert team.suspended("training"), "quota is free, and its data is not there"
    team.end_pods("data")
    team.wait_running("training", pods=4)
    report.figure("after_data_training_waits_s", time.monotonic() - begin)
    assert GATES not in team.job("training")["metadata"]["annotations"]


@pytest.mark.scenario("I", "A training whose data could not be fetched fails with that, and was never admitted")
def test_it_fails_with_its_data(team: Team) -> None:
    team.open_queue({"cpu": "5"})
    team.submit("training", runtime=objects.HELD, annotations={AFTER: "data"})
    team.submit("data", runtime=objects.HELD, activeDeadlineSeconds=1)
    team.wait("the training to fail", lambda: team.holds("trainjobs", "training", "Failed"))
    (failed,) = [one for one in team.job("training")["status"]["conditions"] if one["type"] == "Failed"]
    assert failed["reason"] == "EarlierTrainJobFailed"
    assert "TrainJob data" in failed["message"]
    assert "DeadlineExceeded" in failed["message"]
    team.wait("its Workload to be finished", lambda: condition_of(team.workload("training") or {}, "Finished"))


def test_without_a_queue_it_is_refused(team: Team) -> None:
    with pytest.raises(LabError, match="needs a queue"):
        team.create(objects.train_job("training", team.namespace, queue=None, annotations={AFTER: "data"}))
