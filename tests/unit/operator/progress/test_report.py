"""What a body may say, and what is refused of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainplane.kube.resource import Key
from trainplane.operator.progress.refusal import RefusalError
from trainplane.operator.progress.report import job_of, read_report

NOW = "2026-01-31T08:15:00Z"
ROUTE = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs/{}/status"


def body(**status: Any) -> bytes:
    return json.dumps({"trainerStatus": {"lastUpdatedTime": NOW, **status}}).encode()


def test_a_path_names_a_trainjob() -> None:
    assert job_of(ROUTE.format("team", "job")) == Key("team", "job")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/status",
        ROUTE.format("team", "job") + "/",
        ROUTE.format("team", "job") + "/x",
        ROUTE.format("", "job"),
        ROUTE.format("team", ""),
        ROUTE.format("team", "a%2Fb"),
        ROUTE.format("team", "../x"),
        ROUTE.format("te/am", "job"),
        ROUTE.format("team", "j" * 254),
        ROUTE.format("team", "jöb"),
        ROUTE.format("team", "job").replace("v1alpha1", "v1"),
        "x" + ROUTE.format("team", "job"),
    ],
)
def test_other_paths_name_none(path: str) -> None:
    assert job_of(path) is None


def test_a_report_is_kept_as_kubernetes_writes_it() -> None:
    said = body(
        progressPercentage=42,
        estimatedRemainingSeconds=795,
        metrics=[{"name": "loss", "value": "0.21", "unit": "?"}],
        lastUpdatedTime="2026-01-31T09:15:00.123456+01:00",
        later="unknown",
    )
    report = read_report(said)
    assert report is not None
    assert report.status == {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 795,
        "metrics": [{"name": "loss", "value": "0.21"}],
        "lastUpdatedTime": NOW,
    }


@pytest.mark.parametrize("empty", [b"{}", b'{"trainerStatus": null}', b'{"trainerStatus": {}}', b'{"other": 1}'])
def test_nothing_said_is_no_error(empty: bytes) -> None:
    assert read_report(empty) is None


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (body(progressPercentage=101), "trainerStatus.progressPercentage: must be 100 or less"),
        (body(progressPercentage=-1), "trainerStatus.progressPercentage: must be 0 or more"),
        (body(progressPercentage=4.5), "trainerStatus.progressPercentage: must be a whole number"),
        (body(progressPercentage=True), "trainerStatus.progressPercentage: must be a whole number"),
        (body(progressPercentage="5"), "trainerStatus.progressPercentage: must be a whole number"),
        (body(progressPercentage=10**400), "trainerStatus.progressPercentage"),
        (body(estimatedRemainingSeconds=-1), "trainerStatus.estimatedRemainingSeconds: must be 0 or more"),
        (body(estimatedRemainingSeconds=2**31), "trainerStatus.estimatedRemainingSeconds: "),
        (body(metrics={"loss": 1}), "trainerStatus.metrics: must be a list"),
        (body(metrics=["loss"]), "trainerStatus.metrics[0]: must be fields"),
        (body(metrics=[{"name": "loss"}]), "trainerStatus.metrics[0]: value is missing"),
        (body(metrics=[{"name": "", "value": "1"}]), "trainerStatus.metrics[0].name: must not be empty"),
        (body(metrics=[{"name": "n" * 65, "value": "1"}]), "trainerStatus.metrics[0].name: has 65 characters"),
        (body(metrics=[{"name": "a", "value": "1" * 65}]), "trainerStatus.metrics[0].value: has 65 characters"),
        (body(metrics=[{"name": "a", "value": 1.5}]), "trainerStatus.metrics[0].value: must be a text"),
        (body(metrics=[{"name": "a\u001b[2J", "value": "1"}]), "trainerStatus.metrics[0].name: has control characters"),
        (body(metrics=[{"name": "a", "value": "1\n2"}]), "trainerStatus.metrics[0].value: has control characters"),
        (body(metrics=[{"name": "a", "value": "\u202e1"}]), "trainerStatus.metrics[0].value: has control characters"),
        (body(metrics=[{"name": f"m{n}", "value": "1"} for n in range(257)]), "trainerStatus.metrics: has 257 entries"),
        (
            body(progressPercentage=5, lastUpdatedTime=None),
            "trainerStatus: a report of progress must carry lastUpdatedTime",
        ),
        (body(lastUpdatedTime="yesterday"), "trainerStatus.lastUpdatedTime: is no time"),
        (body(lastUpdatedTime="2026-01-31T08:15:00"), "trainerStatus.lastUpdatedTime: is no time"),
        (body(lastUpdatedTime="9999-12-31T23:59:59-23:00"), "trainerStatus.lastUpdatedTime: is no time"),
        (body(lastUpdatedTime="0001-01-01T00:00:00+23:00"), "trainerStatus.lastUpdatedTime: is no time"),
        (body(lastUpdatedTime=5), "trainerStatus.lastUpdatedTime: must be a text"),
        (b'{"trainerStatus": []}', "trainerStatus: must be fields"),
        (b'{"trainerStatus": "x"}', "trainerStatus: must be fields"),
        (b"[]", "the body must be an object"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"trainerStatus": {"progressPercentage": NaN}}', "not JSON"),
        (b'{"trainerStatus": {"progressPercentage": Infinity}}', "not JSON"),
        (b'{"trainerStatus": {"x": "\\ud800"}}', "not JSON"),
        (b'{"trainerStatus": "\xff"}', "not JSON"),
        (b"[" * 60000, ""),
        (b'{"a":' * 12000 + b"1" + b"}" * 12000, ""),
    ],
)
def test_what_breaks_a_rule_is_named(said: bytes, problem: str) -> None:
    with pytest.raises(RefusalError) as caught:
        read_report(said)
    assert caught.value.code == 422
    assert problem in caught.value.message
    assert len(caught.value.message) < 1000


def test_thousands_of_metrics_are_refused_before_each_is_judged() -> None:
    said = json.dumps({"trainerStatus": {"lastUpdatedTime": NOW, "metrics": [{} for _ in range(8_000)]}}).encode()
    with pytest.raises(RefusalError, match="has 8000 entries, and may have 256"):
        read_report(said)
