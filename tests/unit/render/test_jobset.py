from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.unit.render.objects import PIPELINE, job, node, origin, patch, render, replicated_job, runtime, torch
from trainplane.api import names
from trainplane.api.tree import get

UNHEARD = ("semantics", 6, "a spec.trainer that reached no container was ignored without a word")


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


class TestATrainerThatNobodyHears:
    SAID: ClassVar[dict[str, Any]] = {"image": "mine", "numNodes": 4}

    def problem(self, have: Any, **trainer: Any) -> str:
        (finding,) = PIPELINE.validate(job(trainer=trainer or self.SAID), None, have).errors
        assert finding.path == "spec.trainer"
        return finding.problem

    @pytest.mark.finding(*UNHEARD)
    def test_the_label_is_missing(self) -> None:
        said = self.problem(runtime(replicated_job("node")))
        assert said.startswith("image, numNodes would have no effect: no job of the runtime has the label")

    @pytest.mark.finding(*UNHEARD)
    def test_the_label_is_on_the_pods(self) -> None:
        odd = replicated_job("node")
        odd["template"]["spec"]["template"]["metadata"] = {"labels": {names.LABEL_ANCESTOR: "trainer"}}
        assert "that of its pods does not count" in self.problem(runtime(odd))

    @pytest.mark.finding(*UNHEARD)
    def test_the_container_has_another_name(self) -> None:
        odd = replicated_job("work", "trainer", containers=[{"name": "main", "image": "x"}])
        assert "job work of the runtime, which trains, has no container node" in self.problem(runtime(odd))

    @pytest.mark.finding(*UNHEARD)
    def test_a_patch_took_the_label_away(self) -> None:
        change = {"name": "node", "template": {"metadata": {"labels": {names.LABEL_ANCESTOR: "dataset-initializer"}}}}
        entry = {"manager": "a.com/x", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
        asked = job(entry, trainer={"resourcesPerNode": {"limits": {"cpu": "1"}}})
        assert any(one.path == "spec.trainer" for one in PIPELINE.validate(asked, None, torch()).errors)

    @pytest.mark.parametrize("trainer", [None, {}, {"env": []}])
    def test_who_says_nothing_is_not_bothered(self, trainer: Any) -> None:
        assert PIPELINE.validate(job(trainer=trainer), None, runtime(replicated_job("node"))).allowed

    def test_what_is_stored_is_let_be(self) -> None:
        asked = job(trainer=self.SAID)
        assert PIPELINE.validate(asked, asked, runtime(replicated_job("node"))).allowed


class TestNodesWithoutNames:
    def warnings(self, nodes: int, *, named: bool = False, policy: Any = None) -> tuple[str, ...]:
        have = runtime(policy={"torch": {}} if policy is None else policy)
        have = have.put("spec", "template", "spec", "network", value={"enableDNSHostnames": named})
        return PIPELINE.validate(job(trainer={"numNodes": nodes}), None, have).warnings

    @pytest.mark.finding("semantics", 11, "numNodes 0 was accepted, and nodes without names got no warning")
    def test_three_of_them_cannot_meet(self) -> None:
        (warning,) = self.warnings(3)
        assert "3 nodes will not find the first one, job-node-0-0.job" in warning

    def test_one_alone_with_names_or_without_a_framework_is_well(self) -> None:
        assert self.warnings(1) == ()
        assert self.warnings(3, named=True) == ()
        assert self.warnings(3, policy={}) == ()
