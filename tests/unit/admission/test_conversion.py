"""TrainJobs of v2.0 and v2.1 in the form of v2.3."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.admission.objects import KUEUE, OURS, entry, job_patch, trainjob, with_spec
from trainplane.admission.conversion import convert
from trainplane.api import document
from trainplane.api.trainjob import TrainJob

OVERRIDE_V20: dict[str, Any] = {
    "targetJobs": [{"name": "node"}],
    "serviceAccountName": "trainer",
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    "containers": [{"name": "sidecar", "env": [{"name": "A", "value": "1"}]}],
    "initContainers": [{"name": "fetch", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    "schedulingGates": [{"name": "wait"}],
}
OVERRIDE_V21: dict[str, Any] = {
    "targetJobs": [{"name": "node"}, {"name": "launcher"}],
    "metadata": {"labels": {"team": "ml"}, "annotations": {"note": "x"}, "name": "ignored", "finalizers": ["f"]},
    "spec": {"nodeSelector": {"zone": "b"}, "imagePullSecrets": [{"name": "pull"}], "affinity": {"nodeAffinity": {}}},
}


def ours(job: dict[str, Any]) -> dict[str, Any]:
    """Return the template that our one entry patches in."""
    (patch,) = [one for one in job["spec"]["runtimePatches"] if one["manager"] == OURS]
    template: dict[str, Any] = patch["trainingRuntimeSpec"]["template"]
    return template


def test_a_job_of_today_is_left_alone() -> None:
    job = trainjob(runtimePatches=[entry(nodeSelector={"a": "b"})], trainer={"numNodes": 2})
    assert convert(job).tree is job
    assert convert(job).warnings == ()


def test_labels_and_annotations_are_the_jobsets() -> None:
    turned = convert(trainjob(labels={"a": "1"}, annotations={"b": "2"}))
    assert ours(turned.tree) == {"metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}}}
    assert not {"labels", "annotations"} & turned.tree["spec"].keys()
    labels, annotations = turned.warnings
    assert labels == (
        "spec.labels is an older form, stored as spec.runtimePatches; write: runtimePatches: "
        '[{manager: example.com/you, trainingRuntimeSpec: {template: {"metadata":{"labels":{"a":"1"}}}}}]'
    )
    assert annotations == (
        "spec.annotations is an older form, stored as spec.runtimePatches; write: runtimePatches: "
        '[{manager: example.com/you, trainingRuntimeSpec: {template: {"metadata":{"annotations":{"b":"2"}}}}}]'
    )


def test_pod_spec_overrides_of_v20() -> None:
    turned = convert(trainjob(podSpecOverrides=[OVERRIDE_V20]))
    pod = {field: value for field, value in OVERRIDE_V20.items() if field != "targetJobs"}
    assert ours(turned.tree) == {"spec": {"replicatedJobs": [job_patch("node", **pod)]}}
    (warning,) = turned.warnings
    assert warning == (
        "spec.podSpecOverrides is an older form, stored as spec.runtimePatches; write: runtimePatches: "
        "[{manager: example.com/you, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, "
        "template: {spec: {template: {...}}}}]}}}}]"
    )


def test_pod_template_overrides_of_v21_take_labels_and_annotations_only() -> None:
    turned = convert(trainjob(podTemplateOverrides=[OVERRIDE_V21]))
    pod = {"metadata": {"labels": {"team": "ml"}, "annotations": {"note": "x"}}, "spec": OVERRIDE_V21["spec"]}
    assert ours(turned.tree)["spec"]["replicatedJobs"] == [
        {"name": "node", "template": {"spec": {"template": pod}}},
        {"name": "launcher", "template": {"spec": {"template": pod}}},
    ]


def test_a_short_override_is_shown_whole() -> None:
    (warning,) = convert(trainjob(podSpecOverrides=[{"targetJobs": [{"name": "n"}], "hostPID": 1}])).warnings
    assert warning.endswith(
        '{"spec":{"replicatedJobs":[{"name":"n","template":{"spec":{"template":{"spec":{"hostPID":1}}}}}]}}}}]'
    )


def test_overrides_of_one_job_become_one_patch_and_the_later_wins() -> None:
    first = {
        "targetJobs": [{"name": "node"}],
        "nodeSelector": {"a": "1", "b": "1"},
        "tolerations": [{"key": "one"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
        "containers": [
            {"name": "c", "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        ],
        "affinity": {"nodeAffinity": {"x": 1}, "podAffinity": {"y": 1}},
    }
    second = {
        "targetJobs": [{"name": "node"}],
        "nodeSelector": {"b": "2"},
        "tolerations": [{"key": "two"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}],
        "containers": [
            {
                "name": "c",
                "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "2"}],
                "volumeMounts": [{"name": "v", "mountPath": "/w"}],
            },
            {"name": "d"},
        ],
        "affinity": {"podAffinity": {"y": 2}},
    }
    turned = convert(trainjob(podSpecOverrides=[first, second]))
    (job,) = ours(turned.tree)["spec"]["replicatedJobs"]
    assert job == job_patch(
        "node",
        nodeSelector={"a": "1", "b": "2"},
        tolerations=[{"key": "two"}],
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}, {"name": "w", "emptyDir": {}}],
        containers=[
            {
                "name": "c",
                "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "2"}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/w"}],
            },
            {"name": "d"},
        ],
        affinity={"nodeAffinity": {"x": 1}, "podAffinity": {"y": 2}},
    )


def test_both_generations_in_one_job() -> None:
    turned = convert(trainjob(podSpecOverrides=[OVERRIDE_V20], podTemplateOverrides=[OVERRIDE_V21]))
    node, launcher = ours(turned.tree)["spec"]["replicatedJobs"]
    assert node["template"]["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "b"}
    assert node["template"]["spec"]["template"]["spec"]["serviceAccountName"] == "trainer"
    assert launcher["name"] == "launcher"
    assert len(turned.warnings) == 2


def test_our_entry_stands_first_so_that_todays_form_wins() -> None:
    job = trainjob(labels={"a": "1"}, runtimePatches=[entry("example.com/me"), entry(KUEUE)])
    managers = [patch["manager"] for patch in convert(job).tree["spec"]["runtimePatches"]]
    assert managers == [OURS, "example.com/me", KUEUE]


def test_sending_the_old_form_again_gives_the_same_entry() -> None:
    sent: dict[str, Any] = {"labels": {"a": "1"}, "podTemplateOverrides": [OVERRIDE_V21]}
    stored = convert(trainjob(**sent)).tree
    stored["spec"]["runtimePatches"][0]["time"] = "2026-01-01T00:00:00Z"
    again = convert(with_spec(stored, **sent))
    assert again.tree == stored
    assert len(again.warnings) == 2


def test_one_field_sent_again_leaves_what_the_others_said() -> None:
    stored = convert(trainjob(labels={"a": "1"}, annotations={"n": "1"}, podTemplateOverrides=[OVERRIDE_V21])).tree
    again = ours(convert(with_spec(stored, labels={"b": "2"})).tree)
    assert again["metadata"] == {"labels": {"b": "2"}, "annotations": {"n": "1"}}
    assert again["spec"] == ours(stored)["spec"]


def test_an_empty_older_field_just_goes() -> None:
    turned = convert(trainjob(labels={}, annotations=None, podSpecOverrides=[], podTemplateOverrides=[]))
    assert turned.tree == trainjob()
    assert turned.warnings == ()


def test_an_override_without_targets_changes_nothing_and_says_so() -> None:
    turned = convert(trainjob(podSpecOverrides=[{"targetJobs": [], "serviceAccountName": "s"}]))
    assert turned.tree == trainjob()
    assert turned.warnings == ("spec.podSpecOverrides names no targetJobs and so changes nothing; leave it out",)


def test_the_group_of_old_documents() -> None:
    job = trainjob(runtimeRef={"apiGroup": "kubeflow.org", "kind": "TrainingRuntime", "name": "torch"})
    turned = convert(job)
    assert turned.tree["spec"]["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org",
        "kind": "TrainingRuntime",
        "name": "torch",
    }
    (warning,) = turned.warnings
    assert warning == (
        "spec.runtimeRef.apiGroup: kubeflow.org was stored as trainer.kubeflow.org; "
        "write: apiGroup: trainer.kubeflow.org, or leave it out"
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"labels": "text"},
        {"annotations": ["a"]},
        {"podSpecOverrides": {}},
        {"podSpecOverrides": ["text"]},
        {"podSpecOverrides": [{"serviceAccountName": "no targetJobs"}]},
        {"podTemplateOverrides": [{"targetJobs": ["text"]}]},
        {"podTemplateOverrides": [{"targetJobs": [{"name": 1}]}]},
        {"podTemplateOverrides": [{"targetJobs": [], "metadata": "text"}]},
        {"labels": {"a": "b"}, "runtimePatches": "text"},
    ],
)
def test_what_has_no_form_is_left_for_the_schema_to_refuse(spec: dict[str, Any]) -> None:
    job = trainjob(**spec)
    assert convert(job).tree == job
    assert convert(job).warnings == ()


@pytest.mark.parametrize("spec", [None, "text", [], 1])
def test_a_spec_that_is_none(spec: Any) -> None:
    job = {"spec": spec}
    assert convert(job).tree is job


@pytest.mark.parametrize("name", ["node", "n" * 300, "nodé"])
def test_a_warning_is_never_longer_than_the_api_server_shows(name: str) -> None:
    big = {f"key-{number}": "value" * 20 for number in range(30)}
    override = {"targetJobs": [{"name": name}], "nodeSelector": big}
    warnings = convert(trainjob(labels=big, annotations=big, podSpecOverrides=[override])).warnings
    assert len(warnings) == 3
    for warning in warnings:
        assert len(warning) <= 256
        assert warning.isascii()
        assert "runtimePatches: [{manager: example.com/you" in warning


def test_what_was_sent_is_not_changed_and_the_result_can_be_read() -> None:
    job = trainjob(
        labels={"a": "1"}, podSpecOverrides=[OVERRIDE_V20, OVERRIDE_V20], podTemplateOverrides=[OVERRIDE_V21]
    )
    sent = copy.deepcopy(job)
    turned = convert(job).tree
    assert job == sent
    view = document.read(turned, TrainJob).view
    assert view.spec.runtime_patches[0].manager == OURS
    assert not view.spec.labels
    assert not view.spec.pod_spec_overrides
