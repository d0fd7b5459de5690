"""What the controller does otherwise is known by what happened in the case, and hides no fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Change, Create, Remove, Step
from tests.conformance.compare import ABSENT, Difference
from tests.conformance.documents import (
    COMPLETED,
    FAILED,
    LONG_AGO,
    counts,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
)
from tests.conformance.planted import (
    CONTAINER,
    JOB,
    JOBSET,
    KUEUE,
    OWNED_POD,
    POD,
    SELECTOR,
    SNAPSHOT,
    TOUCH,
    difference,
    explained_by,
    patched,
)

if TYPE_CHECKING:
    from tests.conformance.cases import Tree

FAILS, COMPLETES = (reported(conditions=(end,)) for end in (FAILED, COMPLETED))


# -- an end that is final ---------------------------------------------------------------------------------------------

SUSPEND, RESUME = (Change({"spec": {"suspend": value}}) for value in (True, False))
REMOVE = Remove("JobSet")


def held(kind: str, status: str = "True") -> Tree:
    return {"type": kind, "status": status, "reason": kind}


@pytest.mark.parametrize(
    "known",
    [
        difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=(FAILS, REMOVE)),
        difference(JOBSET, "spec.suspend", True, False, then=(FAILS, SUSPEND)),
        difference(JOBSET, "metadata.generation", 2, 1, then=(FAILS, SUSPEND)),
        difference(JOBSET, f"{POD}.spec.nodeSelector.a", "b", ABSENT, then=(FAILS, SELECTOR)),
        difference(JOBSET, f"{OWNED_POD}.f:spec.f:nodeSelector", {}, ABSENT, then=(FAILS, SELECTOR)),
        difference(JOBSET, "metadata.labels.a", "b", "c", then=(FAILS, SELECTOR)),
        difference(JOB, "status.jobsStatus", ABSENT, [{"name": "node"}], then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions", ABSENT, [held("Failed")], then=(FAILS, REMOVE)),
        difference(JOB, "status", ABSENT, {"conditions": [held("Failed")], "jobsStatus": []}, then=(FAILS, REMOVE)),
        difference(
            JOB, "status.conditions", [held("Suspended")], [held("Suspended"), held("Failed")], then=(FAILS, REMOVE)
        ),
    ],
    ids=str,
)
def test_a_failure_that_is_final_is_known(known: Difference) -> None:
    assert explained_by(known) == "failed-is-final"


@pytest.mark.parametrize(("held_back", "known"), [(True, True), (False, False)])
def test_a_job_that_failed_while_it_was_suspended_stays_so(held_back: bool, known: bool) -> None:
    ours = [held("Suspended"), held("Failed")]
    resumed = [{"type": "Suspended", "status": "False", "reason": "Resumed"}]
    spec = {"suspend": held_back}
    found = difference(JOB, "status.conditions", resumed, ours, spec=spec, then=(FAILS, RESUME, REMOVE))
    assert explained_by(found) == ("failed-is-final" if known else None)


@pytest.mark.parametrize(
    ("field", "sides", "known"),
    [
        ("type", ("Suspended", "Failed"), True),
        ("reason", ("Suspended", "FailedJobs"), True),
        ("reason", ("Resumed", "FailedJobs"), True),
        ("lastTransitionTime", ("<now>", LONG_AGO), True),
        ("type", ("Suspended", "Complete"), False),
        ("type", ("Complete", "Failed"), False),
        ("reason", ("Suspended", "Other"), False),
        ("lastTransitionTime", ("<now>", ABSENT), False),
    ],
)
def test_a_failure_stands_where_the_reference_has_suspended(field: str, sides: tuple[Any, Any], known: bool) -> None:
    path = f"status.conditions[0].{field}"
    found = difference(JOB, path, *sides, then=(FAILS, SUSPEND, REMOVE))
    assert explained_by(found) == ("failed-is-final" if known else None)
    assert explained_by(difference(JOB, path, *sides, then=(FAILS, SUSPEND))) is None


# -- restarts ---------------------------------------------------------------------------------------------------------

LABEL = {"trainplane.dev/restarts": "1"}
POLICY = {"failurePolicy": {"maxRestarts": 10}}


def with_policy() -> Tree:
    found = runtime()
    return {**found, "spec": {**found["spec"], "runPolicy": POLICY}}


@pytest.mark.parametrize(
    ("place", "path", "reference", "ours"),
    [
        (JOBSET, "status", {"conditions": [held("Failed")]}, ABSENT),
        (JOBSET, "spec.ttlSecondsAfterFinished", 5, ABSENT),
        (JOBSET, "metadata.labels", ABSENT, LABEL),
        (JOBSET, "owned.f:metadata.f:labels", ABSENT, {"f:trainplane.dev/restarts": {}}),
        (JOB, "status.jobsStatus", [{"name": "node", "failed": 1}], ABSENT),
        (JOB, "status.conditions", [held("Suspended"), held("Failed")], [held("Suspended")]),
    ],
)
def test_failure_while_suspended_is_declared(place: str, path: str, reference: Any, ours: Any) -> None:
    found = difference(place, path, reference, ours, spec={"suspend": True}, then=(FAILS,))
    assert explained_by(found) == "suspended-is-not-failed"
    assert explained_by(difference(place, path, reference, ours, then=(FAILS,))) is None


def test_lost_condition_while_suspended_is_not_declared() -> None:
    found = difference(
        JOB, "status.conditions", [held("Failed")], [held("Complete")], spec={"suspend": True}, then=(FAILS,)
    )
    assert explained_by(found) is None


def test_run_policy_of_a_runtime_is_declared() -> None:
    place = "ClusterTrainingRuntime runtime"
    on = with_policy()
    assert explained_by(difference(place, "spec.runPolicy", ABSENT, POLICY, on=on)) == "run-policy"
    assert explained_by(difference(SNAPSHOT, "data.runtime.spec.runPolicy", ABSENT, POLICY, on=on)) == "run-policy"
    assert explained_by(difference(place, "spec.runPolicy", ABSENT, {}, on=on)) is None
    created = difference("verdict", "warned", 1, 0, then=(Create(on),))
    assert explained_by(created) == "run-policy"
    assert explained_by(difference("verdict", "warned", 1, 0, then=(Create(runtime()),))) is None


NO_COUNTS = [{"name": "node", "active": 0, "suspended": 1}]
HOLDS = reported(counts(suspended=1))
LAST = [counts(suspended=1)]


@pytest.mark.parametrize(
    ("then", "sides", "known"),
    [
        ((SUSPEND, HOLDS, REMOVE), (ABSENT, LAST), True),
        ((SUSPEND, HOLDS), (ABSENT, LAST), False),
        ((SUSPEND, HOLDS, REMOVE), (ABSENT, [counts(suspended=2)]), False),
        ((SUSPEND, reported(counts(active=1)), REMOVE), (ABSENT, [counts(active=1)]), False),
        ((SUSPEND, HOLDS, REMOVE, RESUME), (ABSENT, LAST), False),
    ],
)
def test_the_last_counts_of_a_job_that_is_held_back_stay(
    then: tuple[Step, ...], sides: tuple[Any, Any], known: bool
) -> None:
    assert explained_by(difference(JOB, "status.jobsStatus", *sides, then=then)) == ("held-counts" if known else None)


@pytest.mark.parametrize(
    "known",
    [
        difference(JOB, "status.jobsStatus", NO_COUNTS, ABSENT, then=(SUSPEND,)),
        difference(JOB, "status.jobsStatus[node].suspended", 1, 0, then=(RESUME, SUSPEND)),
    ],
    ids=str,
)
def test_suspended_jobs_of_a_job_that_is_held_back_are_known(known: Difference) -> None:
    assert explained_by(known) == "held-counts"


@pytest.mark.parametrize(
    "planted",
    [
        difference(JOB, "status.jobsStatus", NO_COUNTS, ABSENT, then=(SUSPEND, RESUME)),
        difference(JOB, "status.jobsStatus", [{"name": "node", "active": 1}], ABSENT, then=(SUSPEND,)),
        difference(JOB, "status.jobsStatus[node].active", 1, 0, then=(SUSPEND,)),
        difference(JOB, "status.jobsStatus", ABSENT, NO_COUNTS, then=(SUSPEND,)),
    ],
    ids=str,
)
def test_other_counts_are_no_such_difference(planted: Difference) -> None:
    assert explained_by(planted) is None


@pytest.mark.parametrize(
    "planted",
    [
        difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=(FAILS, SUSPEND)),
        difference(JOBSET, "", ABSENT, {"kind": "JobSet"}, then=(FAILS, REMOVE)),
        difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=(COMPLETES, REMOVE)),
        difference(JOBSET, "spec.suspend", True, False, then=(COMPLETES, SUSPEND)),
        difference(JOBSET, "spec.suspend", True, False, then=(SUSPEND, FAILS)),
        difference(JOBSET, "spec.suspend", True, False, then=(FAILS, FAILS)),
        difference(JOBSET, f"{CONTAINER}.image", "a", "b", then=(FAILS, SELECTOR)),
        difference(JOBSET, "spec.replicatedJobs[node].template.metadata.labels.a", "a", "b", then=(FAILS, SELECTOR)),
        difference(JOBSET, "status.conditions", [], ABSENT, then=(FAILS, SUSPEND)),
        difference(JOB, "status.jobsStatus", [{"name": "node"}], ABSENT, then=(FAILS, REMOVE)),
        difference(JOB, "status.jobsStatus", ABSENT, [{"name": "node"}], then=(FAILS, SUSPEND)),
        difference(JOB, "status.conditions", [held("Failed")], ABSENT, then=(FAILS, REMOVE)),
        difference(JOB, "status", ABSENT, {"conditions": [held("Complete")]}, then=(FAILS, REMOVE)),
        difference(JOB, "status", {"conditions": [held("Failed")]}, ABSENT, then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions", [], [held("Failed"), held("Complete")], then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions", [held("Complete")], [held("Failed")], then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions[Failed].reason", "a", "b", then=(FAILS, SUSPEND)),
        difference(JOB, "spec.suspend", True, False, then=(FAILS, SUSPEND)),
    ],
    ids=str,
)
def test_a_failure_explains_nothing_else(planted: Difference) -> None:
    assert explained_by(planted) is None


@pytest.mark.parametrize(
    ("path", "reference", "ours", "known"),
    [
        ("status.conditions", [held("Suspended"), held("Complete")], [held("Complete")], True),
        ("status.conditions[Suspended].status", "True", "False", True),
        ("status.conditions[Suspended].reason", "Suspended", "Resumed", True),
        ("status.conditions", [held("Complete")], [held("Suspended"), held("Complete")], False),
        ("status.conditions", [held("Suspended"), held("Complete")], [], False),
        ("status.conditions", [held("Suspended"), held("Complete")], [held("Failed")], False),
        ("status.conditions[Complete].status", "True", "False", False),
        ("status.conditions[Suspended].reason", "Suspended", "Other", False),
        ("status.conditions[Suspended].status", "True", ABSENT, False),
    ],
)
def test_a_job_that_ended_is_not_suspended(path: str, reference: Any, ours: Any, known: bool) -> None:
    found = difference(JOB, path, reference, ours, then=(COMPLETES, SUSPEND))
    assert (explained_by(found) == "ended-is-not-suspended") is known
    if not known:
        assert explained_by(found) is None


RUNS, WAITS = (reported(counts(ready=ready)) for ready in (1, 0))
RESUMED = {"type": "Suspended", "status": "False", "reason": "Resumed"}


@pytest.mark.parametrize(
    ("then", "spec", "sides", "known"),
    [
        ((RESUME, RUNS), {}, ([RESUMED], ABSENT), True),
        ((RESUME, WAITS), {}, ([RESUMED], ABSENT), False),
        ((RESUME, RUNS, WAITS), {}, ([RESUMED], ABSENT), True),
        ((RESUME, RUNS, RESUME), {}, ([RESUMED], ABSENT), True),
        ((RESUME, RUNS, REMOVE), {}, ([RESUMED], ABSENT), True),
        ((RESUME, REMOVE), {}, ([RESUMED], ABSENT), False),
        ((RESUME, RUNS, SUSPEND, RESUME), {}, ([RESUMED], ABSENT), False),
        ((RESUME,), {}, ([RESUMED], ABSENT), False),
        ((RESUME, RUNS), {"activeDeadlineSeconds": 9}, ([RESUMED], ABSENT), False),
        ((RESUME, RUNS), {}, (ABSENT, [RESUMED]), False),
        ((RESUME, RUNS), {}, ([held("Suspended")], ABSENT), False),
        ((RESUME, RUNS), {}, ([RESUMED], [held("Suspended")]), False),
    ],
)
def test_a_job_that_runs_has_no_condition(
    then: tuple[Step, ...], spec: Tree, sides: tuple[Any, Any], known: bool
) -> None:
    found = difference(JOB, "status.conditions", *sides, spec=spec, then=then)
    assert explained_by(found) == ("runs-unconditionally" if known else None)


# -- metadata that is taken back --------------------------------------------------------------------------------------

LABELLED = patch(KUEUE, patch_job(pod_metadata={"labels": {"q": "1"}}, nodeSelector={"pool": "a"}))
BARE = patch(KUEUE, patch_job(nodeSelector={"pool": "a"}))
WITH_LABELS = runtime(replicated_job())
WITH_LABELS["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"] = {
    "labels": {"of": "the-runtime"}
}


def selector(*then: Step, on: Tree | None = None, path: str = f"{POD}.spec.nodeSelector.pool") -> Difference:
    spec = {"suspend": True, "runtimePatches": [patch(KUEUE)]}
    return difference(JOBSET, path, "a", ABSENT, spec=spec, on=on or runtime(), then=(patched(LABELLED), *then))


@pytest.mark.parametrize("path", [f"{POD}.spec.nodeSelector.pool", f"{POD}.metadata", "metadata.generation"])
@pytest.mark.parametrize("then", [(patched(),), (patched(BARE),), (patched(), TOUCH)])
def test_metadata_that_is_taken_back_is_known(then: tuple[Step, ...], path: str) -> None:
    assert explained_by(selector(*then, path=path)) == "emptied-metadata"


@pytest.mark.parametrize(
    "planted",
    [
        selector(patched(LABELLED)),
        selector(TOUCH),
        selector(patched(), patched(LABELLED)),
        selector(patched(), on=WITH_LABELS),
        selector(patched(), path=f"{CONTAINER}.image"),
        selector(patched(), path="spec.replicatedJobs[node].template.spec.parallelism"),
        selector(patched(), path="status.restarts"),
    ],
    ids=["still there", "never taken", "given again", "the runtime has some", "an image", "a count", "a status"],
)
def test_metadata_that_is_not_taken_back_explains_nothing(planted: Difference) -> None:
    assert explained_by(planted) is None


# -- what must heal ---------------------------------------------------------------------------------------------------

GONE = Remove("ConfigMap", "job-runtime-snapshot")
KEYS = Remove("Secret", "job-mpi-ssh-auth")


@pytest.mark.parametrize(
    ("place", "then", "by"),
    [
        (SNAPSHOT, (GONE,), None),
        (SNAPSHOT, (GONE, RUNS), None),
        (SNAPSHOT, (TOUCH,), None),
        ("Secret job-mpi-ssh-auth", (KEYS,), "keys-unwatched"),
        ("Secret job-mpi-ssh-auth", (KEYS, RUNS), "keys-unwatched"),
        ("Secret job-mpi-ssh-auth", (KEYS, RESUME), None),
    ],
)
def test_what_was_deleted_is_gone_or_back_as_declared(place: str, then: tuple[Step, ...], by: str | None) -> None:
    assert explained_by(difference(place, "", {"kind": "x"}, ABSENT, then=then)) == by


@pytest.mark.parametrize(
    ("path", "ours", "then", "known"),
    [
        ("", {"Normal": {"JobSetCreated": 1}}, (), True),
        ("Normal.Resumed", 1, (SUSPEND, RESUME), True),
        ("Normal.Started", 1, (RUNS,), True),
        ("Normal.Completed", 1, (COMPLETES,), True),
        ("Warning.Failed", "told", (FAILS,), True),
        ("", {"Normal": {"JobSetCreated": 2}}, (), False),
        ("Normal.JobSetCreated", 2, (REMOVE,), True),
        ("Normal.Resumed", 1, (), False),
        ("Normal.Completed", 1, (FAILS,), False),
        ("Warning.Failed", "told", (COMPLETES,), False),
        ("Warning.TrainJobResourcesCreationFailed", "told", (), False),
        ("Normal.Invented", 1, (RUNS,), False),
    ],
)
def test_news_tell_what_happened(path: str, ours: Any, then: tuple[Step, ...], known: bool) -> None:
    assert explained_by(difference("News TrainJob job", path, ABSENT, ours, then=then)) == ("news" if known else None)


TROUBLE = {"Warning": {"TrainJobResourcesCreationFailed": "told"}}
STRANGER = {"kind": "JobSet", "metadata": {"name": "job"}}


@pytest.mark.parametrize(
    ("sides", "on", "known"),
    [
        ((TROUBLE, ABSENT), None, True),
        ((TROUBLE, ABSENT), STRANGER, False),
        ((ABSENT, TROUBLE), STRANGER, True),
        ((ABSENT, TROUBLE), None, False),
    ],
)
def test_trouble_is_told_by_whom_it_concerns(sides: tuple[Any, Any], on: Tree | None, known: bool) -> None:
    assert explained_by(difference("News TrainJob job", "", *sides, on=on)) == ("no-trouble" if known else None)
