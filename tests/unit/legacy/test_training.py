"""What follows from one look at a job of v1. How the old operator would do it is asked in tests/legacy/conformance."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.legacy.jobs import ago, job, look, made, message, pod, states, with_status
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import JAX, PADDLE, PYTORCH, TENSORFLOW, XGBOOST, Kind
from trainplane.legacy.decision import Decision, Settings
from trainplane.legacy.rules import MOST_PODS
from trainplane.legacy.training import MOST_MADE, TOO_MANY_PODS

TORCH = job(PYTORCH, {"Master": 1, "Worker": 2})


def test_a_new_job_gets_its_pods_services_and_first_conditions() -> None:
    decided = look(PYTORCH, TORCH)
    assert made(decided) == ["demo-master-0", "demo-worker-0", "demo-worker-1"]
    assert made(decided, "Service") == made(decided)
    assert states(decided) == {"Created": "True"}
    assert decided.status is not None
    assert decided.status["startTime"] == ago(0)


def test_a_second_look_changes_nothing() -> None:
    first = look(PYTORCH, TORCH)
    pods = [one for one in first.create if one["kind"] == "Pod"]
    services = tuple(one for one in first.create if one["kind"] == "Service")
    assert look(PYTORCH, {**TORCH, "status": first.status}, *pods, services=services) == Decision()


def test_nothing_that_is_asked_about_is_changed() -> None:
    before = repr(TORCH)
    look(PYTORCH, TORCH, pod(PYTORCH, "master-0", "Running"))
    assert repr(TORCH) == before


def test_a_job_runs_with_its_leader() -> None:
    assert states(look(PYTORCH, TORCH, pod(PYTORCH, "worker-0", "Running"))) == {"Created": "True"}
    decided = look(PYTORCH, TORCH, pod(PYTORCH, "master-0", "Running"))
    assert states(decided) == {"Created": "True", "Running": "True"}
    assert decided.status is not None
    assert decided.status["replicaStatuses"]["Master"]["active"] == 1


@pytest.mark.parametrize(
    ("kind", "replicas", "succeeded", "is_done"),
    [
        (PYTORCH, {"Master": 1, "Worker": 1}, ["master-0"], True),
        (PYTORCH, {"Master": 1, "Worker": 1}, ["worker-0"], False),
        (PYTORCH, {"Worker": 2}, ["worker-0"], False),
        (PYTORCH, {"Worker": 2}, ["worker-0", "worker-1"], True),
        (TENSORFLOW, {"Chief": 1, "Worker": 1}, ["worker-0"], False),
        (TENSORFLOW, {"Chief": 1, "Worker": 1}, ["chief-0"], True),
        (TENSORFLOW, {"PS": 1, "Worker": 2}, ["worker-0"], True),
        (TENSORFLOW, {"PS": 1, "Worker": 2}, ["worker-1"], False),
        (XGBOOST, {"Master": 1, "Worker": 1}, ["master-0"], True),
        (XGBOOST, {"Master": 1, "Worker": 1}, ["worker-0"], False),
        (PADDLE, {"Worker": 2}, ["worker-0", "worker-1"], True),
        (JAX, {"Worker": 2}, ["worker-0"], False),
        (JAX, {"Worker": 2}, ["worker-0", "worker-1"], True),
    ],
)
def test_who_decides_that_a_job_is_done(
    kind: Kind, replicas: dict[str, int], succeeded: list[str], *, is_done: bool
) -> None:
    decided = look(kind, job(kind, replicas), *(pod(kind, name, "Succeeded", code=0) for name in succeeded))
    assert (states(decided).get("Succeeded") == "True") is is_done


def test_one_elastic_worker_is_enough_and_all_workers_are_waited_for_where_that_is_said() -> None:
    elastic = job(PYTORCH, {"Worker": 2}, elasticPolicy={"minReplicas": 1})
    assert "Succeeded" in states(look(PYTORCH, elastic, pod(PYTORCH, "worker-1", "Succeeded", code=0)))
    patient = job(TENSORFLOW, {"Worker": 2}, successPolicy="AllWorkers")
    assert "Succeeded" not in states(look(TENSORFLOW, patient, pod(TENSORFLOW, "worker-0", "Succeeded", code=0)))


def test_nothing_is_made_when_a_job_is_done_whatever_the_others_do() -> None:
    pods = [pod(PYTORCH, "master-0", "Succeeded", code=0), pod(PYTORCH, "worker-0", "Failed", code=1)]
    decided = look(PYTORCH, with_status(TORCH, names.RUNNING), *pods)
    assert (decided.create, decided.delete) == ((), ())
    assert states(decided) == {"Created": "True", "Running": "False", "Succeeded": "True"}
    assert "demo-master-0" in message(decided, "Succeeded")


@pytest.mark.parametrize(
    ("policy", "code", "outcome"),
    [
        ("Never", 137, "Failed"),
        ("OnFailure", 1, "Restarting"),
        ("Always", 1, "Restarting"),
        ("ExitCode", 1, "Failed"),
        ("ExitCode", 127, "Failed"),
        ("ExitCode", 128, "Restarting"),
        ("ExitCode", None, "Restarting"),
    ],
)
@pytest.mark.parametrize("kind", [PYTORCH, TENSORFLOW, XGBOOST, PADDLE, JAX])
def test_a_pod_that_failed_is_restarted_as_its_policy_says(
    kind: Kind, policy: str, code: int | None, outcome: str
) -> None:
    tree = job(kind, {"Master": 1, "Worker": (1, policy)} if "Master" in kind.types else {"Worker": (1, policy)})
    decided = look(kind, tree, pod(kind, "worker-0", "Failed", code=code))
    assert states(decided)[outcome] == "True"
    restarted = [(ref.kind, ref.name, ref.uid) for ref in decided.delete]
    assert restarted == ([("Pod", "demo-worker-0", "uid-worker-0")] if outcome == "Restarting" else [])


def test_the_status_says_which_pod_ended_how() -> None:
    tree = job(PYTORCH, {"Master": (1, "Never")})
    said = message(look(PYTORCH, tree, pod(PYTORCH, "master-0", "Failed", code=3)), "Failed")
    assert "pod demo-master-0 ended with exit code 3 (Error)" in said
    assert "restartPolicy Never" in said


def test_a_pod_that_is_deleted_while_it_runs_failed() -> None:
    lost = pod(JAX, "worker-0", "Running", going=True)
    assert states(look(JAX, job(JAX, {"Worker": (1, "OnFailure")}), lost))["Restarting"] == "True"
    decided = look(JAX, job(JAX, {"Worker": (1, "Never")}), lost)
    assert "was deleted while it ran" in message(decided, "Failed")
    assert decided.delete == ()


def test_a_dynamic_worker_is_not_missed() -> None:
    tree = job(TENSORFLOW, {"PS": 1, "Worker": 2}, enableDynamicWorker=True)
    decided = look(TENSORFLOW, tree, pod(TENSORFLOW, "worker-1", "Failed", code=1))
    assert "Failed" not in states(decided)


def test_a_job_that_is_scaled_down_loses_pods_and_services_and_does_not_fail() -> None:
    tree = with_status(job(XGBOOST, {"Master": 1, "Worker": 1}))
    extra = pod(XGBOOST, "worker-1", "Running", going=True)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "demo-worker-1", "uid": "s"}}
    decided = look(XGBOOST, tree, pod(XGBOOST, "worker-2", "Running"), extra, services=(service,))
    assert [(ref.kind, ref.name) for ref in decided.delete] == [("Pod", "demo-worker-2"), ("Service", "demo-worker-1")]
    assert states(decided) == {"Created": "True"}


def test_a_pod_that_is_going_keeps_its_successor_waiting() -> None:
    decided = look(PYTORCH, TORCH, pod(PYTORCH, "master-0", "Failed", code=1, going=True))
    assert "demo-master-0" not in made(decided)
    assert decided.delete == ()


# -- the run policy


def test_a_suspended_job_has_no_pods_and_no_services() -> None:
    tree = with_status(job(PYTORCH, {"Master": 1}, policy={"suspend": True}), names.RUNNING)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "demo-master-0", "uid": "s"}}
    decided = look(PYTORCH, tree, pod(PYTORCH, "master-0", "Running"), services=(service,))
    assert {(ref.kind, ref.name) for ref in decided.delete} == {("Pod", "demo-master-0"), ("Service", "demo-master-0")}
    assert states(decided) == {"Created": "True", "Running": "False", "Suspended": "True"}
    assert look(PYTORCH, {**tree, "status": decided.status}) == Decision()


def test_a_resumed_job_begins_anew_and_is_not_failed_by_pods_of_before() -> None:
    tree = with_status(job(JAX, {"Worker": (1, "Never")}, policy={"activeDeadlineSeconds": 60}), names.SUSPENDED)
    decided = look(JAX, tree, pod(JAX, "worker-0", "Running", going=True))
    assert states(decided) == {"Created": "True", "Suspended": "False"}
    assert decided.status is not None
    assert decided.status["startTime"] == ago(0)
    assert decided.again == 60


@pytest.mark.parametrize(("deleted", "fails"), [(0, False), (1, True)])
@pytest.mark.parametrize("grace", [0, 30])
def test_a_pod_counts_to_the_run_in_which_it_was_deleted(grace: int, deleted: int, *, fails: bool) -> None:
    """Moments are whole seconds: this pod was made in the one in which its job was resumed."""
    tree = with_status(job(JAX, {"Worker": (1, "Never")}), names.RUNNING, startTime=ago(0))
    going = pod(JAX, "worker-0", "Running", going=True)
    gone = {"deletionTimestamp": ago(-(deleted + grace) / 3600), "deletionGracePeriodSeconds": grace}
    going["metadata"] |= {"creationTimestamp": ago(0), **gone}
    assert ("Failed" in states(look(JAX, tree, going))) is fails


def test_a_grace_period_of_any_length_is_read() -> None:
    tree = with_status(job(JAX, {"Worker": (1, "Never")}), names.RUNNING)
    going = pod(JAX, "worker-0", "Running", going=True)
    going["metadata"] |= {"deletionTimestamp": "9999-12-31T23:59:59Z", "deletionGracePeriodSeconds": 2**63 - 1}
    decided = look(JAX, tree, going)
    assert decided.status is None or "Failed" not in states(decided)


def test_a_deadline_stops_what_runs_and_keeps_what_ended() -> None:
    tree = with_status(job(PYTORCH, {"Master": 1, "Worker": 2}, policy={"activeDeadlineSeconds": 3600}))
    pods = [pod(PYTORCH, "master-0", "Running"), pod(PYTORCH, "worker-0", "Succeeded", code=0)]
    decided = look(PYTORCH, tree, *pods)
    assert [ref.name for ref in decided.delete] == ["demo-master-0"]
    assert "activeDeadlineSeconds, 3600 s" in message(decided, "Failed")
    assert decided.status is not None
    assert "active" not in decided.status["replicaStatuses"]["Master"]


@pytest.mark.parametrize(("limit", "restarts", "is_over"), [(3, 2, False), (3, 3, True), (0, 0, False), (0, 1, True)])
def test_restarts_of_containers_count_against_the_backoff_limit(limit: int, restarts: int, *, is_over: bool) -> None:
    tree = with_status(job(PYTORCH, {"Master": 1}, policy={"backoffLimit": limit}), names.RUNNING)
    decided = look(PYTORCH, tree, pod(PYTORCH, "master-0", "Running", restarts=restarts))
    assert ("Failed" in states(decided)) is is_over


def test_no_restart_is_allowed_by_a_backoff_limit_of_none() -> None:
    tree = job(PYTORCH, {"Master": 1}, policy={"backoffLimit": 0})
    decided = look(PYTORCH, tree, pod(PYTORCH, "master-0", "Failed", code=137))
    assert "backoffLimit 0 allows no restart" in message(decided, "Failed")


@pytest.mark.parametrize(
    ("policy", "gone"), [("None", []), ("Running", ["demo-worker-0"]), ("All", ["demo-master-0", "demo-worker-0"])]
)
def test_a_job_that_is_over_is_cleaned_up_as_it_says(policy: str, gone: list[str]) -> None:
    tree = with_status(job(PYTORCH, {"Master": 1, "Worker": 1}, policy={"cleanPodPolicy": policy}), names.SUCCEEDED)
    pods = [pod(PYTORCH, "master-0", "Succeeded", code=0), pod(PYTORCH, "worker-0", "Running")]
    assert [ref.name for ref in look(PYTORCH, tree, *pods).delete] == gone


def test_a_job_that_is_over_expires() -> None:
    tree = with_status(
        job(PYTORCH, {"Master": 1}, policy={"ttlSecondsAfterFinished": 7200}), names.FAILED, completionTime=ago(1)
    )
    assert (look(PYTORCH, tree).again, look(PYTORCH, tree).expired) == (3600, False)
    assert look(PYTORCH, tree, after=timedelta(hours=1)).expired


def test_a_job_that_the_old_operator_failed_without_a_completion_time_expires() -> None:
    tree = with_status(job(PYTORCH, {"Master": 1}, policy={"ttlSecondsAfterFinished": 60}), names.FAILED)
    tree["status"]["conditions"][-1]["lastTransitionTime"] = ago(1)
    assert look(PYTORCH, tree).expired


def test_nothing_changes_once_a_job_has_failed() -> None:
    tree = with_status(TORCH, names.FAILED, completionTime=ago(1))
    assert look(PYTORCH, tree, pod(PYTORCH, "master-0", "Succeeded", code=0)) == Decision()


@pytest.mark.parametrize(
    ("manager", "gate", "is_ours"),
    [
        (None, True, True),
        (names.MANAGED_BY_TRAINING_OPERATOR, True, True),
        (names.MANAGED_BY_MULTIKUEUE, True, False),
        (names.MANAGED_BY_MULTIKUEUE, False, True),
    ],
)
def test_a_job_of_another_manager_is_left_alone(manager: str | None, *, gate: bool, is_ours: bool) -> None:
    tree = job(JAX, {"Worker": 1}, policy={"managedBy": manager})
    assert (look(JAX, tree, settings=Settings(job_managed_by=gate)) != Decision()) is is_ours


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    going = {**TORCH, "metadata": {**TORCH["metadata"], "deletionTimestamp": ago(0)}}
    assert look(PYTORCH, going) == Decision()


# -- gangs and autoscalers


def test_volcano_lets_pods_be_made_when_their_group_is_let_in() -> None:
    settings = Settings(gang="volcano")
    tree = job(JAX, {"Worker": 2}, policy={"schedulingPolicy": {"minAvailable": 1, "queue": "gold"}})
    decided = look(JAX, tree, settings=settings)
    (group,) = decided.apply
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, "gold")
    assert decided.create == ()
    let_in = {**group, "status": {"phase": "Inqueue"}}
    pods = [one for one in look(JAX, tree, others=(let_in,), settings=settings).create if one["kind"] == "Pod"]
    assert {one["spec"]["schedulerName"] for one in pods} == {"volcano"}
    assert {one["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for one in pods} == {"demo"}


def test_an_autoscaler_lives_as_long_as_the_job_runs() -> None:
    tree = job(PYTORCH, {"Worker": 2}, elasticPolicy={"maxReplicas": 4, "metrics": []})
    (scaler,) = look(PYTORCH, tree).apply
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (4, 4)
    done = with_status(tree, names.SUCCEEDED, completionTime=ago(1))
    assert [ref.kind for ref in look(PYTORCH, done, others=(scaler,)).delete] == ["HorizontalPodAutoscaler"]


# -- attacks


def test_a_job_of_a_billion_pods_costs_nothing() -> None:
    decided = look(JAX, job(JAX, {"Worker": 1_000_000_000}))
    (event,) = decided.events
    assert (decided.create, decided.status, event.reason) == ((), None, TOO_MANY_PODS)
    assert str(MOST_PODS) in event.message


def test_one_look_makes_no_more_than_so_many_pods() -> None:
    assert len(made(look(JAX, job(JAX, {"Worker": MOST_PODS})))) == MOST_MADE


@pytest.mark.parametrize("said", [None, 7, "text", [], [[]], {"Worker": 3}, {"Worker": {"template": 5}}])
def test_replicas_of_any_form_are_survived(said: object) -> None:
    tree = {**TORCH, "spec": {"runPolicy": said, "pytorchReplicaSpecs": said, "elasticPolicy": said}}
    look(PYTORCH, tree, {"metadata": said, "status": said}, pod(PYTORCH, "worker-0", "Running"))


def test_a_status_that_is_nonsense_is_written_anew() -> None:
    decided = look(PYTORCH, {**TORCH, "status": {"conditions": ["x", 3], "startTime": 5, "replicaStatuses": [1]}})
    assert states(decided) == {"Created": "True"}
