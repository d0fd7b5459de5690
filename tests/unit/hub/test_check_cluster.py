from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.hub.check_objects import NOW, cluster_facts, content, fleet_facts, worker_facts
from trainplane.hub.check.cluster import judge_connection, judge_credentials, judge_versions
from trainplane.hub.check.facts import NEEDED, PERMISSIONS, ClusterFacts, Unseen


def test_a_connected_worker_shows_where_and_what_it_is() -> None:
    check = judge_connection(worker_facts())
    assert check.findings == ()
    assert check.summary == "https://10.0.0.1, Kubernetes v1.36.0"
    assert judge_connection(worker_facts(looked_as="me@w1")).summary.endswith("(looked at with context me@w1)")


def test_a_worker_that_does_not_answer_says_what_refused() -> None:
    worker = worker_facts(trouble="https://10.0.0.1 does not answer: timed out", cluster=None)
    check = judge_connection(type(worker)(name="worker1", trouble=worker.trouble, active=worker.active))
    assert check.summary == "it does not answer"
    assert check.findings[0].problem == "https://10.0.0.1 does not answer: timed out"
    assert "workerLostTimeout" in check.findings[0].remedy


def test_what_kueue_says_of_the_connection_is_passed_on() -> None:
    active = {"type": "Active", "status": "False", "reason": "ClientConnectionFailed", "message": "no matches for kind"}
    (finding,) = judge_connection(worker_facts(active=active)).findings
    assert finding.level == "stops"
    assert "ClientConnectionFailed: no matches for kind" in finding.problem
    (finding,) = judge_connection(worker_facts(active=None)).findings
    assert "Kueue has not tried" in finding.problem


def test_good_credentials_are_counted() -> None:
    check = judge_credentials(worker_facts(), NOW)
    assert check.findings == ()
    assert check.summary == f"Secret kueue-system/worker1, {len(PERMISSIONS)} of {len(PERMISSIONS)} permissions"


def test_refused_verbs_are_told_by_resource() -> None:
    permissions = {one: one.resource != "trainjobs" or one.verb == "get" for one in PERMISSIONS}
    (finding,) = judge_credentials(worker_facts(permissions=permissions), NOW).findings
    assert finding.level == "stops"
    text = "MultiKueue's credentials may not create, update, patch, delete, list, watch trainjobs.trainer.kubeflow.org"
    assert finding.problem == text
    assert "Secret kueue-system/worker1" in finding.remedy


def test_permissions_that_cannot_be_asked_are_unseen_and_none_are_nothing() -> None:
    (finding,) = judge_credentials(worker_facts(permissions=Unseen("failed", "reset")), NOW).findings
    assert finding.level == "unseen"
    check = judge_credentials(worker_facts(permissions={}), NOW)
    assert check.summary == "Secret kueue-system/worker1"
    assert check.findings == ()


@pytest.mark.parametrize("reason", ["BadKubeConfig", "InsecureKubeConfig"])
def test_what_kueue_quotes_of_a_kubeconfig_is_not_repeated(reason: str) -> None:
    said = 'duplicate name "w" in list: [{w {hunter2}}]'
    active = {"type": "Active", "status": "False", "reason": reason, "message": said}
    (finding,) = judge_connection(worker_facts(active=active)).findings
    assert finding.problem.endswith(f"{reason}: for its message see kubectl describe multikueuecluster worker1")


def test_each_refusal_of_the_kubeconfig_is_a_finding() -> None:
    findings = judge_credentials(worker_facts(refusals=("users[0].user.exec", "b"), permissions={}), NOW).findings
    assert [finding.problem for finding in findings] == [
        "Secret kueue-system/worker1: users[0].user.exec",
        "Secret kueue-system/worker1: b",
    ]


@pytest.mark.parametrize(
    ("left", "level", "text"),
    [
        (timedelta(days=8), None, ""),
        (timedelta(days=6), "warns", "in 6 days"),
        (timedelta(hours=47), "warns", "in 47 hours"),
        (timedelta(hours=1, minutes=5), "warns", "in 1 hour"),
        (timedelta(0), "stops", "the token ended at 2026-10-01 12:00 UTC"),
        (-timedelta(days=3), "stops", "ended at 2026-09-28"),
    ],
)
def test_a_token_is_spoken_of_before_it_ends(left: timedelta, level: str | None, text: str) -> None:
    check = judge_credentials(worker_facts(token_end=NOW + left), NOW)
    assert check.level == level
    if level:
        assert text in check.findings[0].problem
        assert "kubectl create token" in check.findings[0].remedy


@pytest.mark.parametrize(
    ("left", "level", "text"),
    [
        (timedelta(days=31), None, ""),
        (timedelta(days=29, hours=1), "warns", "the client certificate ends at 2026-10-30 13:00 UTC, in 29 days"),
        (timedelta(0), "stops", "the client certificate ended at 2026-10-01 12:00 UTC"),
    ],
)
def test_a_client_certificate_is_spoken_of_before_it_ends(left: timedelta, level: str | None, text: str) -> None:
    check = judge_credentials(worker_facts(certificate_end=NOW + left), NOW)
    assert check.level == level
    if level:
        assert text in check.findings[0].problem
        assert "signed by the worker's authority" in check.findings[0].remedy


def judged(cluster: ClusterFacts) -> list[str]:
    return [finding.problem for finding in judge_versions(fleet_facts(), cluster, is_hub=False).findings]


def test_a_cluster_that_serves_all_shows_what() -> None:
    cluster = cluster_facts(content())
    check = judge_versions(fleet_facts(), cluster, is_hub=False)
    assert check.findings == ()
    apis = "trainer.kubeflow.org/v1alpha1, jobset.x-k8s.io/v1alpha2, kueue.x-k8s.io/v1beta2"
    assert check.summary == f"Kueue v0.19.0, {apis}"
    assert judge_versions(fleet_facts(), cluster, is_hub=True).summary.startswith("Kubernetes v1.36.0, Kueue")


@pytest.mark.parametrize("api", NEEDED)
def test_an_api_that_is_not_served_is_named_with_what_brings_it(api: str) -> None:
    served = {known: frozenset(plurals) for known, plurals in NEEDED.items() if known != api}
    check = judge_versions(fleet_facts(), cluster_facts(content(), served=served), is_hub=False)
    (finding,) = check.findings
    assert finding.problem == f"{api} is not served"
    assert finding.remedy.startswith("install ")
    others = {api.partition("/")[0]: ("v0",)}
    (finding,) = judge_versions(
        fleet_facts(), cluster_facts(content(), served=served, other_versions=others), is_hub=False
    ).findings
    assert finding.problem == f"{api} is not served, only v0 of that group"


def test_an_api_without_a_resource_of_it_is_named() -> None:
    served = {api: frozenset(plurals) - {"trainingruntimes"} for api, plurals in NEEDED.items()}
    (problem,) = judged(cluster_facts(content(), served=served))
    assert problem == "trainer.kubeflow.org/v1alpha1 is served without trainingruntimes"


def test_a_train_job_without_runtime_patches_never_starts() -> None:
    (problem,) = judged(cluster_facts(content(), runtime_patches=False))
    assert "no spec.runtimePatches" in problem
    (problem,) = judged(cluster_facts(content(), runtime_patches=Unseen("forbidden", "403")))
    assert "cannot be seen: 403" in problem
    assert judged(cluster_facts(content(), runtime_patches=Unseen("missing", "404"))) == []


@pytest.mark.parametrize(
    ("version", "told"), [("v1.30.14", True), ("v1.31.0", False), ("of an unknown version", False)]
)
def test_a_kubernetes_that_is_too_old_is_named(version: str, told: bool) -> None:
    problems = judged(cluster_facts(content(), version=version))
    assert [f"Kubernetes {version} is not supported" in one for one in problems] == [True] * told


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("v0.16.4", "does not know spec.runtimePatches"),
        ("v0.18.1", "Kueue is v0.18.1 here and v0.19.0 on the hub"),
        ("v0.19.2", None),
        ("main", None),
    ],
)
def test_kueue_must_be_new_enough_and_had_better_be_the_hubs(version: str, text: str | None) -> None:
    problems = judged(cluster_facts(content(), engines={"Kueue": version}))
    assert [text in problem for problem in problems if text] == ([True] if text else [])
    assert judged(cluster_facts(content(), engines={})) == []
