from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import job, node, origin, patch, render, runtime
from trainplane.api.tree import get


@pytest.mark.parametrize("suspend", [True, False])
def test_suspend_is_the_trainjobs(suspend: bool) -> None:
    have = runtime().put("spec", "template", "spec", "suspend", value=not suspend)
    rendered = render(job(suspend=suspend), have).jobset
    assert rendered.tree["spec"]["suspend"] is suspend
    assert origin(rendered, "spec", "suspend") == "trainjob spec.suspend"


def test_everything_else_of_the_template_passes_through() -> None:
    spec: dict[str, Any] = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["node"]},
        "failurePolicy": {"maxRestarts": 3, "rules": [{"action": "FailJobSet"}]},
        "startupPolicy": {"startupPolicyOrder": "InOrder"},
        "ttlSecondsAfterFinished": 60,
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "initializer"}}]}],
        "coordinator": {"replicatedJob": "node"},
        "managedBy": "example.com/other",
    }
    have = runtime()
    for key, value in spec.items():
        have = have.put("spec", "template", "spec", key, value=value)
    rendered = render(job(), have).jobset
    assert {key: rendered.tree["spec"][key] for key in spec} == spec
    assert origin(rendered, "spec", "failurePolicy", "maxRestarts") == "runtime"


def test_order_dependencies_and_groups_stay() -> None:
    jobs = [{**node(), "name": name, "groupName": f"g-{name}"} for name in ("b", "a")]
    jobs[1]["dependsOn"] = [{"name": "b", "status": "Complete"}]
    rendered = render(job(), runtime(*jobs)).jobset.tree["spec"]["replicatedJobs"]
    assert [(entry["name"], entry["groupName"], entry.get("dependsOn")) for entry in rendered] == [
        ("b", "g-b", None),
        ("a", "g-a", [{"name": "b", "status": "Complete"}]),
    ]


def test_the_kind_is_the_plugins_and_the_name_the_trainjobs() -> None:
    rendered = render(job(name="mine"), runtime()).jobset
    assert (rendered.tree["kind"], rendered.tree["metadata"]["name"]) == ("JobSet", "mine")
    assert origin(rendered, "kind") == "plugin JobSet"
    assert origin(rendered, "metadata", "name") == "trainjob metadata.name"


def test_a_job_templates_metadata_may_be_patched() -> None:
    entry = patch()
    (change,) = entry["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    change["template"]["metadata"] = {"labels": {"l": "1"}}
    rendered = render(job(entry), runtime()).jobset
    metadata = get(rendered.tree, "spec", "replicatedJobs", 0, "template", "metadata", "labels")
    assert metadata == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer", "l": "1"}
