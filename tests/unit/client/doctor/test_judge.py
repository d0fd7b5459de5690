from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.client.doctor.facts import (
    DEEDS,
    NEEDED,
    QUEUE_DEEDS,
    Access,
    Cluster,
    Facts,
    Machine,
    Right,
    Trial,
    Unseen,
    Webhook,
)
from trainplane.client.doctor.judge import judge
from trainplane.resources import HUB_TRAIN_JOBS, TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from trainplane.client.doctor.report import Area, Level, Report

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
GONE = Unseen("missing", "the cluster does not have it")
HIDDEN = Unseen("forbidden", "403 Forbidden: you may not")
RIGHTS = {right: True for deed in (*DEEDS, *QUEUE_DEEDS) for right in deed.rights}


def webhook(group: str, **changed: Any) -> Webhook:
    values: dict[str, Any] = {
        "configuration": "validator",
        "name": f"v.{group}",
        "groups": frozenset({group}),
        "fails_closed": True,
        "service": "system/webhook",
        "endpoints": 1,
        "authorities": 1,
        "authority_end": NOW + timedelta(days=300),
    }
    return Webhook(**(values | changed))


WEBHOOKS = (webhook("trainer.kubeflow.org"), webhook("jobset.x-k8s.io"))


def definition(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"versions": [{"name": "v1alpha1", "served": True, "storage": True}]},
        "status": {
            "storedVersions": ["v1alpha1"],
            "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
        },
    }


def fit(**changed: Any) -> Cluster:
    """Return a cluster with which nothing is wrong, but for what is changed."""
    served: dict[str, Any] = {api: frozenset(one.plural for one in needed) for api, needed in NEEDED.items()}
    served |= {WORKLOADS.api_version: GONE, HUB_TRAIN_JOBS.api_version: GONE}
    crds = [f"{one.plural}.{one.group}" for needed in NEEDED.values() for one in needed]
    values: dict[str, Any] = {
        "version": "v1.36.3",
        "ahead": timedelta(),
        "served": served,
        "definitions": {name: definition(name) for name in crds},
        "webhooks": WEBHOOKS,
        "runtimes": ("torch-distributed",),
        "queues": GONE,
        "workers": GONE,
        "rights": RIGHTS,
        "trial": Trial("torch-distributed"),
    }
    return Cluster(**(values | changed))


def served_too(*apis: str) -> dict[str, Any]:
    return {**fit().served, **{api: frozenset({"workloads", "localqueues", "trainjobs"}) for api in apis}}


def look(cluster: Cluster | None = None, *, access: Access | None = None, machine: Machine | None = None) -> Report:
    machine = machine or Machine((3, 11), "Linux", engine="docker", torch=True)
    access = access or Access("https://k8s", "team", "research")
    return judge(Facts(NOW, machine, "torch-distributed", access, cluster or fit()))


def unreached(trouble: str) -> Report:
    return judge(Facts(NOW, Machine((3, 11), "Linux"), "t", Access("https://k8s", "team", "default"), trouble=trouble))


def told(report: Report, area: Area, level: Level) -> str:
    return "\n".join(f"{one.text} -> {one.remedy}" for one in report.findings if (one.area, one.level) == (area, level))


def test_nothing_is_wrong_with_a_cluster_that_is_fit() -> None:
    report = look()
    assert {one.level for one in report.findings} == {"ok"}
    assert report.fit
    assert report.reached
    assert [one.area for one in report.findings if one.area == "trial"] == ["trial"]


def test_every_finding_that_is_not_well_says_what_to_do() -> None:
    reports = [
        look(fit(served={**fit().served, "jobset.x-k8s.io/v1alpha2": GONE})),
        look(fit(webhooks=HIDDEN, runtimes=HIDDEN, quotas=HIDDEN, rights=HIDDEN, ahead=None, trial=None)),
        look(fit(webhooks=(), runtimes=(), rights={}, namespace=False)),
        unreached("refused"),
    ]
    for report in reports:
        assert len(report.findings) > len(report.of("ok"))
        assert all(one.remedy for one in report.findings if one.level != "ok")


def test_a_missing_crd_is_wrong_even_while_discovery_still_tells_of_it() -> None:
    report = look(fit(definitions={**fit().definitions, "jobsets.jobset.x-k8s.io": GONE}))
    assert told(report, "APIs", "wrong") == (
        "jobset.x-k8s.io/v1alpha2 is served without jobsets -> install JobSet whole"
    )


def test_crds_that_may_not_be_seen_are_taken_for_good_when_they_are_served() -> None:
    report = look(fit(definitions=dict.fromkeys(fit().definitions, HIDDEN)))
    assert {one.level for one in report.findings if one.area == "APIs"} == {"ok"}


def test_objects_in_an_older_stored_version_are_a_warning() -> None:
    crd = definition("trainjobs.trainer.kubeflow.org")
    crd["status"]["storedVersions"] = ["v2alpha1", "v1alpha1"]
    report = look(fit(definitions={**fit().definitions, "trainjobs.trainer.kubeflow.org": crd}))
    assert "stored as v2alpha1, and new ones are as v1alpha1" in told(report, "APIs", "warning")
    assert report.fit


def test_a_crd_that_is_not_established_is_wrong() -> None:
    crd = definition("trainjobs.trainer.kubeflow.org")
    crd["status"]["conditions"][0] |= {"status": "False", "message": "conflicts with another"}
    report = look(fit(definitions={**fit().definitions, "trainjobs.trainer.kubeflow.org": crd}))
    assert "Established is False: conflicts with another" in told(report, "APIs", "wrong")


@pytest.mark.parametrize(
    ("changed", "level", "words"),
    [
        ({"endpoints": 0}, "wrong", "no pod is ready behind Service system/webhook: everything"),
        ({"endpoints": 0, "fails_closed": False}, "wrong", "what it reviews passes unseen"),
        ({"endpoints": GONE}, "wrong", "there is no Service system/webhook"),
        ({"endpoints": HIDDEN}, "unknown", "Service system/webhook cannot be seen"),
        ({"authorities": 0, "authority_end": None}, "wrong", "its caBundle holds no certificate"),
        ({"authority_end": NOW - timedelta(days=1)}, "wrong", "its authority ended at 2026-11-15 12:00 UTC"),
        ({"authority_end": NOW + timedelta(days=9)}, "warning", "its authority ends at 2026-11-25 12:00 UTC"),
    ],
)
def test_a_webhook_that_cannot_be_asked_is_named(changed: dict[str, Any], level: Level, words: str) -> None:
    report = look(fit(webhooks=(webhook("trainer.kubeflow.org", **changed), WEBHOOKS[1])))
    assert words in told(report, "webhooks", level)
    assert "the operator" in told(report, "webhooks", level)


def test_one_trouble_of_many_webhooks_is_told_once() -> None:
    silent = [webhook("trainer.kubeflow.org", name=f"w{number}", endpoints=0) for number in range(6)]
    report = look(fit(webhooks=(*silent, WEBHOOKS[1])))
    assert len(report.of("wrong")) == 1


def test_webhooks_that_are_not_installed_are_wrong() -> None:
    report = look(fit(webhooks=(WEBHOOKS[1],)))
    assert "the operator's webhooks are not installed" in told(report, "webhooks", "wrong")


@pytest.mark.parametrize(
    ("trial", "level", "words"),
    [
        (Trial("t", "x509: certificate signed by unknown authority", "webhook"), "wrong", "caBundle is the authority"),
        (Trial("t", "cannot create", "forbidden"), "wrong", "you may not create"),
        (Trial("t", "every job must name a queue", "refused"), "warning", "give your jobs what it asks for"),
        (Trial("t", "429", "failed"), "unknown", "try again"),
    ],
)
def test_the_trial_says_why_a_job_would_not_be_accepted(trial: Trial, level: Level, words: str) -> None:
    assert words in told(look(fit(trial=trial)), "trial", level)


def test_no_runtime_is_wrong_and_no_default_one_a_warning() -> None:
    assert "there is no runtime" in told(look(fit(runtimes=())), "runtimes", "wrong")
    assert "jobs must name one of jax, mpi" in told(look(fit(runtimes=("jax", "mpi"))), "runtimes", "warning")


def test_what_the_caller_may_not_do_is_told_by_what_it_is_for() -> None:
    report = look(fit(rights={**RIGHTS, Right(TRAIN_JOBS, "create"): False, DEEDS[5].rights[0]: False}))
    assert "you may not run jobs in namespace research: create trainjobs.trainer.kubeflow.org" in told(
        report, "rights", "wrong"
    )
    assert "you may not read logs in namespace research: get pods/log" in told(report, "rights", "warning")


def test_rights_on_queues_are_asked_for_only_where_there_are_queues() -> None:
    without = {right: allowed for right, allowed in RIGHTS.items() if "kueue" not in right.resource.group}
    assert look(fit(rights=without)).fit
    assert not told(look(fit(rights=without)), "rights", "warning")
    queued = look(fit(rights=without, served=served_too(WORKLOADS.api_version), queues=[]))
    assert "you may not see queues" in told(queued, "rights", "warning")


def test_a_queue_that_takes_no_jobs_is_wrong_and_none_a_warning() -> None:
    served = served_too(WORKLOADS.api_version)
    stopped = {
        "metadata": {"name": "team"},
        "spec": {"clusterQueue": "gpus"},
        "status": {"conditions": [{"type": "Active", "status": "False", "message": "ClusterQueue is stopped"}]},
    }
    report = look(fit(served=served, queues=[stopped]))
    assert told(report, "queues", "wrong") == (
        "LocalQueue team takes no jobs: ClusterQueue is stopped -> ask an admin to look at ClusterQueue gpus"
    )
    assert "has no LocalQueue" in told(look(fit(served=served, queues=[])), "queues", "warning")


def test_a_hub_without_the_hub_view_is_a_warning() -> None:
    blind = look(fit(served=served_too(WORKLOADS.api_version), queues=[], workers=2))
    assert "to 2 workers, and there is no hub view" in told(blind, "queues", "warning")
    seeing = look(fit(served=served_too(WORKLOADS.api_version, HUB_TRAIN_JOBS.api_version), queues=[], workers=2))
    assert "fleet check looks at each" in told(seeing, "queues", "ok")


def test_quota_that_is_used_up_is_named_by_resource() -> None:
    hard = {"requests.nvidia.com/gpu": "4", "pods": "10", "odd": "no quantity"}
    quota = {
        "metadata": {"name": "team"},
        "status": {"hard": hard, "used": {"requests.nvidia.com/gpu": "4000m", "pods": "9", "odd": "1"}},
    }
    text = told(look(fit(quotas=[quota])), "queues", "warning")
    assert text.startswith("ResourceQuota team of research is used up: requests.nvidia.com/gpu ->")


@pytest.mark.parametrize(
    ("ahead", "level", "words"),
    [
        (timedelta(seconds=-3), "ok", "clocks agree"),
        (timedelta(seconds=90), "warning", "90 s behind the cluster's"),
        (timedelta(minutes=-10), "wrong", "600 s ahead of the cluster's"),
        (None, "unknown", "does not say what time it is"),
    ],
)
def test_clocks_that_differ_are_told(ahead: timedelta | None, level: Level, words: str) -> None:
    assert words in told(look(fit(ahead=ahead)), "connection", level)


def test_credentials_that_end_are_told_before_and_after() -> None:
    access = Access("https://k8s", "team", "research", NOW - timedelta(hours=1), NOW + timedelta(minutes=5))
    report = look(access=access)
    assert "the client certificate of context team ended at 2026-11-16 11:00 UTC" in told(report, "connection", "wrong")
    assert "the token of context team ends at 2026-11-16 12:05 UTC" in told(report, "connection", "warning")


def test_a_pods_token_ends_within_the_hour_and_that_is_well() -> None:
    access = Access("https://k8s", "", "research", token_end=NOW + timedelta(minutes=50))
    assert look(access=access).fit
    assert not told(look(access=access), "connection", "warning")


def test_an_old_cluster_is_wrong() -> None:
    assert "upgrade the cluster to v1.31" in told(look(fit(version="v1.30.9")), "connection", "wrong")


def test_without_a_cluster_only_the_way_to_it_is_judged() -> None:
    report = unreached("connection refused")
    assert not report.reached
    assert not report.fit
    assert {one.area for one in report.findings} == {"machine", "connection"}
    lost = judge(Facts(NOW, Machine((3, 11), "Linux"), "t", trouble="no cluster is configured"))
    assert "no cluster is configured" in told(lost, "connection", "wrong")


@pytest.mark.parametrize("system", ["macOS", "Windows"])
def test_other_systems_than_linux_are_told_what_does_not_work_there(system: str) -> None:
    report = look(machine=Machine((3, 13), system))
    assert "need Linux" in told(report, "machine", "warning")
    assert report.fit


def test_a_python_that_was_not_tried_is_a_warning() -> None:
    machine = replace(Machine((3, 14), "Linux"), engine="podman", torch=True)
    assert "Python 3.14 was not tried" in told(look(machine=machine), "machine", "warning")


def test_programs_are_told_all_of_it() -> None:
    tree = look(fit(runtimes=())).tree()
    assert tree["fit"] is False
    wrong = [one for one in tree["findings"] if one["level"] == "wrong"]
    assert [(one["area"], bool(one["remedy"])) for one in wrong] == [("runtimes", True)]
