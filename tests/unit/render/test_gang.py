"""Who belongs to a gang, and the groups that the two gang schedulers are given."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import (
    PIPELINE,
    Runtime,
    in_job,
    job,
    node,
    origin,
    patch,
    render,
    replicated_job,
    runtime,
)
from trainplane.api.tree import Tree, get
from trainplane.render.gang import gang_of

ASKED = {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": 8}}
QUEUE = "scheduling.volcano.sh/queue-name"
METADATA = ("template", "spec", "template", "metadata")


def after(one: Tree, *waits: tuple[str, str]) -> Tree:
    return {**one, "dependsOn": [{"name": name, "status": status} for name, status in waits]}


def initialized() -> list[Tree]:
    data, model = (replicated_job(name, name) for name in ("dataset-initializer", "model-initializer"))
    train = after(node(resources=ASKED), ("dataset-initializer", "Complete"), ("model-initializer", "Complete"))
    return [data, model, train]


def launched() -> list[Tree]:
    return [replicated_job("node"), after(replicated_job("launcher", "trainer"), ("node", "Ready"))]


def grouped(*jobs: Tree, policy: str = "coscheduling", nodes: int = 1, mpi: bool = False, **settings: Any) -> Runtime:
    ml = {"numNodes": nodes, **({"mpi": {}} if mpi else {"torch": {}})}
    return runtime(*jobs, policy=ml).put("spec", "podGroupPolicy", value={policy: settings})


def members(have: Runtime, **trainer: Any) -> tuple[list[str], int]:
    gang = gang_of(PIPELINE.plan(job(trainer=trainer), have))
    return [pods.name for pods in gang.members], gang.size


class TestMembers:
    def test_the_pods_that_train(self) -> None:
        assert members(grouped(node()), numNodes=4) == (["node"], 4)

    def test_initializers_are_gone_when_training_begins(self) -> None:
        assert members(grouped(*initialized()), numNodes=4) == (["node"], 4)

    def test_initializers_never_count(self) -> None:
        data = replicated_job("dataset-initializer", "dataset-initializer")
        assert members(grouped(data, node()), numNodes=2) == (["node"], 2)

    def test_nodes_that_a_launcher_waits_for(self) -> None:
        assert members(grouped(*launched(), mpi=True), numNodes=3) == (["node"], 3)

    def test_jobs_that_begin_together(self) -> None:
        servers = replicated_job("ps")
        servers["replicas"] = 2
        assert members(grouped(servers, node()), numNodes=3) == (["ps", "node"], 5)

    def test_jobs_that_begin_later_are_no_part_of_it(self) -> None:
        evaluation = after(replicated_job("evaluate"), ("node", "Ready"))
        assert members(grouped(node(), evaluation), numNodes=2) == (["node"], 2)

    def test_in_order_only_the_first_can_be_there(self) -> None:
        have = grouped(replicated_job("ps"), node()).put(
            "spec", "template", "spec", "startupPolicy", value={"startupPolicyOrder": "InOrder"}
        )
        assert members(have) == (["ps"], 1)

    def test_without_a_job_that_is_said_to_train_the_first_is_meant(self) -> None:
        assert members(grouped(replicated_job("a"), replicated_job("b"))) == (["a", "b"], 2)


class TestCoscheduling:
    def test_the_group(self) -> None:
        rendering = render(job(trainer={"numNodes": 4}), grouped(*initialized(), scheduleTimeoutSeconds=120))
        group, jobset = (one.tree for one in rendering.objects)
        assert (group["apiVersion"], group["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "PodGroup")
        assert group["metadata"]["name"] == "job"
        assert group["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
        assert group["spec"] == {
            "minMember": 4,
            "minResources": {"cpu": "8", "nvidia.com/gpu": "32"},
            "scheduleTimeoutSeconds": 120,
        }
        label = {"scheduling.x-k8s.io/pod-group": "job"}
        assert get(jobset, *in_job("node", *METADATA, "labels")) == label
        assert get(jobset, *in_job("model-initializer", *METADATA)) is None
        path = in_job("node", *METADATA, "labels", "scheduling.x-k8s.io/pod-group")
        assert origin(rendering.jobset, *path) == "plugin CoScheduling"

    def test_pods_that_ask_for_nothing(self) -> None:
        group = render(job(), grouped(node())).objects[0].tree
        assert group["spec"] == {"minMember": 1, "minResources": {}, "scheduleTimeoutSeconds": 60}

    def test_a_runtime_without_gangs_has_no_group(self) -> None:
        assert len(render(job(), runtime(node())).objects) == 1


class TestVolcano:
    def test_the_group(self) -> None:
        first, second = node(resources=ASKED), replicated_job("ps", priorityClassName="high")
        have = grouped(first, second, policy="volcano", networkTopology={"mode": "soft", "highestTierAllowed": 2})
        queue = {"annotations": {"scheduling.volcano.sh/queue-name": "team"}}
        rendering = render(job(trainer={"numNodes": 2}), have.put("spec", "template", "metadata", value=queue))
        group, jobset = (one.tree for one in rendering.objects)
        assert (group["apiVersion"], group["kind"]) == ("scheduling.volcano.sh/v1beta1", "PodGroup")
        assert group["spec"] == {
            "minMember": 3,
            "minResources": {"cpu": "4", "nvidia.com/gpu": "16"},
            "queue": "team",
            "priorityClassName": "high",
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
        }
        for name in ("node", "ps"):
            assert get(jobset, *in_job(name, *METADATA, "annotations")) == {"scheduling.k8s.io/group-name": "job"}

    def test_a_patch_chooses_the_queue(self) -> None:
        change = patch()
        change["trainingRuntimeSpec"]["template"]["metadata"] = {
            "annotations": {"scheduling.volcano.sh/queue-name": "mine"}
        }
        group = render(job(change), grouped(node(), policy="volcano")).objects[0].tree
        assert group["spec"]["queue"] == "mine"

    @pytest.mark.parametrize(
        ("of_runtime", "of_patch", "path"),
        [
            ("team", None, None),
            ("", "mine", None),
            ("", None, "spec.runtimeRef"),
            ("team", "", "spec.runtimePatches"),
            (None, "", "spec.runtimePatches"),
        ],
    )
    def test_a_queue_has_a_name(self, of_runtime: str | None, of_patch: str | None, path: str | None) -> None:
        have = grouped(node(), policy="volcano")
        if of_runtime is not None:
            have = have.put("spec", "template", "metadata", value={"annotations": {QUEUE: of_runtime}})
        change = patch()
        if of_patch is not None:
            change["trainingRuntimeSpec"]["template"]["metadata"] = {"annotations": {QUEUE: of_patch}}
        errors = PIPELINE.validate(job(change), None, have).errors
        assert [finding.path for finding in errors] == ([path] if path else [])
        assert all("name a queue" in finding.problem for finding in errors)

    def test_pods_that_ask_for_nothing(self) -> None:
        group = render(job(), grouped(node(), policy="volcano")).objects[0].tree
        assert group["spec"] == {"minMember": 1, "minResources": {}}
