from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.objects import HELD, KUEUE_MANAGER, MULTIKUEUE
from tests.fleet.team import true_condition
from trainplane.operator.status import ADDED

if TYPE_CHECKING:
    from tests.fleet.api import Tree
    from tests.fleet.team import MakeTeam, Team

ORIGIN = "kueue.x-k8s.io/multikueue-origin"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
NO_CPU = {"cpu": "0"}


@pytest.mark.scenario(43, "Copied to both workers, admitted on the one with quota, status and end come back")
@pytest.mark.scenario(22, "The copy has the origin's label, the Workload's name, and no managedBy of MultiKueue")
@pytest.mark.scenario(23, "The copy comes without the hub's patch of Kueue, and gets the worker's own")
@pytest.mark.scenario(24, "The worker's status is the hub's")
@pytest.mark.scenario(26, "The copy is deleted once the job has ended")
@pytest.mark.scenario(59, "A torch TrainJob runs on a worker and is unsuspended on the hub")
@pytest.mark.scenario("E", "A failed training is Failed on the hub, with the worker's message")
def test_a_job_goes_to_the_worker_with_quota_and_its_end_comes_back(team: MakeTeam) -> None:
    us = team(quotas={"worker1": NO_CPU, "worker2": NO_CPU})
    for name in ("good", "bad"):
        us.submit(name, runtime=HELD, nodes=2, annotations={"example.com/note": name})
    for name in ("good", "bad"):
        us.wait(f"copies of {name}", partial(_is_everywhere, us, name))
    here = us.workload("good")
    assert here is not None
    for worker in us.workers:
        us.wait(f"the hub's spec on {worker}", partial(_has_spec, us, worker, here["spec"]))

    us.api("worker2").apply(objects.cluster_queue(us.namespace))
    for name in ("good", "bad"):
        us.wait_running(name, on="worker2")
    us.wait_gone("good", on="worker1")
    told = {"state": "Ready", "message": 'The workload was admitted on "worker2"'}
    us.wait("the check to be Ready", lambda: told.items() <= us.check("good").items())
    us.wait_event("Workload", here["metadata"]["name"], "MultiKueue")
    _assert_mirrored(us, "good", here)
    _assert_left_alone(us, "good")

    us.end("good", on="worker2")
    us.end("bad", on="worker2", phase="Failed")
    ends = {"good": us.wait_done("good"), "bad": us.wait_done("bad", "Failed")}
    for name in ("good", "bad"):
        us.wait_gone(name, on="worker2")
    status = (us.job("good") or {})["status"]
    (step,) = status["jobsStatus"]
    assert (step["name"], step["succeeded"], step["active"]) == ("node", 1, 0)
    for name, condition in ends.items():
        assert condition["message"]
        finished = true_condition(us.workload(name), "Finished") or {}
        assert finished["message"] == condition["message"], "the Workload ends with the TrainJob's own words"
        _assert_left_alone(us, name)


@pytest.mark.scenario("H", "managedBy multikueue: our operator on the hub makes nothing and writes the phase alone")
def test_the_hubs_operator_leaves_jobs_of_multikueue_alone(team: MakeTeam) -> None:
    us = team()
    us.submit("theirs", queue=None, managedBy=MULTIKUEUE)
    us.submit("sleeping", queue=None, managedBy=MULTIKUEUE, suspend=True)
    # Another TrainJob that is the operator's own, made later and served whole: the earlier ones had their turn.
    for name in ("first", "second"):
        us.submit(name, queue=None)
        us.wait(f"the JobSet of {name}", partial(us.api().get, "jobsets", us.namespace, name))
    for name in ("theirs", "sleeping"):
        assert set((us.job(name) or {}).get("status") or {}) <= {"phase", "reason"}
        _assert_left_alone(us, name)


def _has_spec(us: Team, worker: str, spec: Tree) -> bool:
    return (us.workload("good", on=worker) or {}).get("spec") == spec


def _is_everywhere(us: Team, name: str) -> bool:
    return all(us.workload(name, on=worker) for worker in us.workers)


def _assert_mirrored(us: Team, name: str, workload: Tree) -> None:
    """The copy: same words of the user, marked as the hub's, made the worker's own operator's to run."""
    # The hub's Kueue lets its own TrainJob go in a step of its own: the copy may run before.
    us.wait("the hub's TrainJob to be unsuspended", lambda: (us.job(name) or {})["spec"]["suspend"] is False)
    local, copy = us.job(name), us.job(name, on="worker2")
    assert local is not None
    assert copy is not None
    assert copy["metadata"]["labels"][ORIGIN] == "hub"
    assert copy["metadata"]["annotations"][PREBUILT] == workload["metadata"]["name"]
    assert copy["metadata"]["annotations"]["example.com/note"] == name
    assert local["spec"]["managedBy"] == MULTIKUEUE
    assert copy["spec"]["managedBy"] == "trainer.kubeflow.org/trainjob-controller"
    assert copy["spec"]["trainer"] == local["spec"]["trainer"]
    assert copy["spec"]["runtimeRef"] == local["spec"]["runtimeRef"]
    assert [patch["manager"] for patch in copy["spec"]["runtimePatches"]] == [KUEUE_MANAGER]
    us.wait("both pods", lambda: len(us.pods(name, on="worker2")) == 2)
    us.wait("the worker's status on the hub", lambda: _status(us, "hub", name) == _status(us, "worker2", name))


def _assert_left_alone(us: Team, name: str) -> None:
    """Nothing on the hub but the TrainJob and its Workload, and no word of ours in either but the phase."""
    for plural in ("jobsets", "jobs", "pods"):
        owned = [one for one in us.api().list(plural, us.namespace) if one["metadata"]["name"].startswith(name)]
        assert owned == []
    assert us.api().get("configmaps", us.namespace, f"{name}-runtime-snapshot") is None
    fields = (us.job(name) or {})["metadata"]["managedFields"]
    ours = [one for one in fields if one.get("subresource") == "status" and one["manager"] != "kueue"]
    assert all(one["fieldsV1"]["f:status"].keys() <= {"f:phase", "f:reason", "."} for one in ours)


def _status(us: Team, cluster: str, name: str) -> Tree:
    """Return what MultiKueue copies: what we add is in no type of Kueue's."""
    status: Tree = (us.job(name, on=cluster) or {}).get("status") or {}
    return {field: value for field, value in status.items() if field not in ADDED}
