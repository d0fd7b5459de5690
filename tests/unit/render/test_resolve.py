"""What every framework does alike: patches, counts, and what spec.trainer says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import (
    PIPELINE,
    container_of,
    in_container,
    in_job,
    in_pod,
    job,
    node,
    origin,
    patch,
    pods_of,
    render,
    replicated_job,
    runtime,
    torch,
    values_of,
)
from trainplane.api import names
from trainplane.api.tree import get
from trainplane.render.errors import PatchError, ResolveError
from trainplane.render.resolve import resolve

UNEQUAL = ("semantics", 2, "a GPU request that is not its limit was accepted, though no pod may have it")
KUEUE = names.PATCH_MANAGER_KUEUE


class TestMetadata:
    def test_the_template_gives_labels_and_annotations(self) -> None:
        given = {"labels": {"l": "1"}, "annotations": {"a": "2"}, "name": "odd", "finalizers": ["f"]}
        metadata = render(job(), runtime(metadata=given)).jobset.tree["metadata"]
        assert metadata["labels"] == {"l": "1"}
        assert metadata["annotations"] == {"a": "2"}
        assert metadata["name"] == "job"
        assert "finalizers" not in metadata

    def test_patches_overlay_it_in_their_order(self) -> None:
        def said(manager: str, **metadata: Any) -> dict[str, Any]:
            return {"manager": manager, "trainingRuntimeSpec": {"template": {"metadata": metadata}}}

        patches = said("a.com/x", labels={"l": "2", "m": "2"}), said("b.com/y", labels={"m": "3"}, name="odd")
        rendered = render(job(*patches), runtime(metadata={"labels": {"l": "1", "k": "1"}})).jobset
        assert rendered.tree["metadata"]["labels"] == {"k": "1", "l": "2", "m": "3"}
        assert rendered.tree["metadata"]["name"] == "job"
        labels = ("metadata", "labels")
        assert [origin(rendered, *labels, key) for key in "klm"] == ["runtime", "patch a.com/x", "patch b.com/y"]

    def test_the_labels_of_the_trainjob_and_of_the_runtime_are_their_own(self) -> None:
        mine = job().put("metadata", "labels", value={"kueue.x-k8s.io/queue-name": "q"})
        theirs = runtime().put("metadata", "labels", value={"trainer.kubeflow.org/framework": "torch"})
        assert "labels" not in render(mine, theirs).jobset.tree["metadata"]


class TestPatches:
    def test_a_patch_reaches_the_pod(self) -> None:
        rendered = render(
            job(patch(nodeSelector={"gpu": "a"}, terminationGracePeriodSeconds=300, metadata={"labels": {"l": "1"}})),
            runtime(),
        ).jobset
        assert get(rendered.tree, *in_pod("node", "nodeSelector")) == {"gpu": "a"}
        assert get(rendered.tree, *in_pod("node", "terminationGracePeriodSeconds")) == 300
        assert get(rendered.tree, *in_job("node", "template", "spec", "template", "metadata", "labels")) == {"l": "1"}
        assert origin(rendered, *in_pod("node", "nodeSelector", "gpu")) == "patch example.com/team"
        assert origin(rendered, *in_container("image")) == "runtime"
        assert origin(rendered, *in_job("node", "name")) == "runtime"

    def test_labels_of_older_generations_reach_the_pods_and_yield_to_todays_patches(self) -> None:
        old: dict[str, Any] = {
            "manager": names.PATCH_MANAGER_OLDER_FIELDS,
            "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"team": "a", "tier": "old"}}}},
        }
        newer = patch(metadata={"labels": {"tier": "new"}})
        rendered = render(job(old, newer), runtime()).jobset
        assert get(rendered.tree, "metadata", "labels") == {"team": "a", "tier": "old"}
        pod = get(rendered.tree, *in_job("node", "template", "spec", "template", "metadata", "labels"))
        assert pod == {"team": "a", "tier": "new"}

    def test_patches_of_several_managers_apply_in_the_order_of_the_list(self) -> None:
        patches = (
            patch("a.com/x", nodeSelector={"a": "1", "b": "1"}, tolerations=[{"key": "x"}]),
            patch("b.com/y", nodeSelector={"b": "2"}, tolerations=[{"key": "y"}]),
        )
        rendered = render(job(*patches), runtime()).jobset
        assert get(rendered.tree, *in_pod("node", "nodeSelector")) == {"a": "1", "b": "2"}
        assert get(rendered.tree, *in_pod("node", "tolerations")) == [{"key": "y"}]
        assert origin(rendered, *in_pod("node", "nodeSelector", "a")) == "patch a.com/x"
        assert origin(rendered, *in_pod("node", "nodeSelector", "b")) == "patch b.com/y"

    def test_kueue_adds_tolerations(self) -> None:
        have = runtime(replicated_job("node", "trainer", tolerations=[{"key": "mine"}]))
        rendered = render(job(patch(KUEUE, tolerations=[{"key": "flavor"}])), have).jobset
        assert get(rendered.tree, *in_pod("node", "tolerations")) == [{"key": "mine"}, {"key": "flavor"}]
        assert origin(rendered, *in_pod("node", "tolerations", 0)) == "runtime"
        assert origin(rendered, *in_pod("node", "tolerations", 1)) == f"patch {KUEUE}"

    @pytest.mark.finding("semantics", 4, "a manager listed after Kueue overrode its placement")
    @pytest.mark.parametrize("behind", [True, False])
    def test_kueue_has_the_last_word_wherever_it_stands(self, behind: bool) -> None:
        metadata = {"labels": {"kueue.x-k8s.io/podset": "node"}, "annotations": {"kueue.x-k8s.io/workload": "w"}}
        gate, flavor = {"name": "kueue.x-k8s.io/topology"}, {"key": "flavor"}
        kueues = patch(
            KUEUE, metadata=metadata, nodeSelector={"tier": "cheap"}, tolerations=[flavor], schedulingGates=[gate]
        )
        others = {"labels": {"kueue.x-k8s.io/podset": "x", "a": "b"}, "annotations": {"kueue.x-k8s.io/workload": "x"}}
        mine = patch(metadata=others, nodeSelector={"tier": "premium", "zone": "a"}, tolerations=[{"key": "mine"}])
        rendered = render(job(*((kueues, mine) if behind else (mine, kueues))), runtime()).jobset
        assert get(rendered.tree, *in_pod("node", "nodeSelector")) == {"tier": "cheap", "zone": "a"}
        assert get(rendered.tree, *in_pod("node", "tolerations")) == [{"key": "mine"}, flavor]
        assert get(rendered.tree, *in_pod("node", "schedulingGates")) == [gate]
        pod = get(rendered.tree, *in_job("node", "template", "spec", "template", "metadata"))
        assert pod == {**metadata, "labels": {**metadata["labels"], "a": "b"}}

    def test_kueues_patch_before_it_has_admitted_changes_nothing(self) -> None:
        empty = {"manager": KUEUE, "trainingRuntimeSpec": {"template": {"spec": {}}}}
        assert render(job(empty), runtime()).jobset.tree == render(job(), runtime()).jobset.tree

    @pytest.mark.parametrize("entry", [{"manager": "a.com/x"}, {"manager": "a.com/x", "trainingRuntimeSpec": {}}])
    def test_a_patch_that_says_nothing_changes_nothing(self, entry: dict[str, Any]) -> None:
        assert render(job(entry), runtime()).jobset.tree == render(job(), runtime()).jobset.tree

    def test_replicated_jobs_keep_the_runtimes_order(self) -> None:
        jobs = [replicated_job(name) for name in ("c", "a", "b")]
        rendered = render(job(patch(job="b", nodeSelector={"x": "1"}), patch("z.com/z", job="a")), runtime(*jobs))
        assert [entry["name"] for entry in rendered.jobset.tree["spec"]["replicatedJobs"]] == ["c", "a", "b"]

    @pytest.mark.parametrize(
        ("entry", "path", "problem"),
        [
            (patch(job="ghost"), "replicatedJobs[name=ghost]", "the runtime has no replicated job of this name"),
            (patch(containers=[{"name": "ghost"}]), "containers[name=ghost]", "no container of this name; it has node"),
            (patch(initContainers=[{"name": "ghost"}]), "initContainers[name=ghost]", "it has first"),
            (patch(containers=[{"name": "first"}]), "containers[name=first]", "move the entry to initContainers"),
            (patch(initContainers=[{"name": "node"}]), "initContainers[name=node]", "move the entry to containers"),
        ],
    )
    def test_a_target_that_the_runtime_lacks_is_an_error(self, entry: dict[str, Any], path: str, problem: str) -> None:
        have = runtime(
            replicated_job("node", "trainer", containers=[{"name": "node"}], initContainers=[{"name": "first"}])
        )
        with pytest.raises(PatchError) as error:
            render(job(entry), have)
        assert error.value.manager == "example.com/team"
        assert error.value.finding.path.startswith("spec.runtimePatches[manager=example.com/team]")
        assert error.value.finding.path.endswith(path)
        assert problem in error.value.finding.problem
        assert not error.value.retryable
        assert error.value.whose == "user"

    def test_a_patch_that_cannot_be_merged_names_its_manager_and_field(self) -> None:
        wrong = patch(volumes=[{"emptyDir": {}}])
        with pytest.raises(PatchError, match=r"spec.runtimePatches\[manager=example.com/team\].*volumes\[0\]") as error:
            render(job(wrong), runtime())
        assert error.value.manager == "example.com/team"


class TestCounts:
    @pytest.mark.parametrize(
        ("policy", "parallelism", "pods"),
        [
            (None, None, 1),
            (None, 3, 3),
            (None, 0, 1),
            ({}, None, 1),
            ({}, 3, 1),
            ({"numNodes": 5}, 3, 5),
            ({"numNodes": 0}, 3, 1),
            ({"numNodes": 4, "torch": {}}, None, 4),
        ],
    )
    def test_a_trainer_has_the_policys_nodes_else_its_parallelism(
        self, policy: Any, parallelism: int | None, pods: int
    ) -> None:
        trains = node()
        if parallelism is not None:
            trains["template"]["spec"].update(parallelism=parallelism, completions=99)
        assert pods_of(render(job(), runtime(trains, policy=policy))) == (pods, pods)

    def test_a_job_that_does_not_train_has_its_parallelism(self) -> None:
        other = replicated_job("other")
        other["template"]["spec"]["parallelism"] = 3
        rendered = render(job(trainer={"numNodes": 7}), runtime(node(), other, policy={"numNodes": 5}))
        assert pods_of(rendered) == (7, 7)
        assert pods_of(rendered, "other") == (3, 3)

    @pytest.mark.parametrize("policy", [None, {}, {"numNodes": 5}, {"numNodes": 5, "torch": {}}, {"xgboost": {}}])
    @pytest.mark.parametrize("nodes", [0, 1, 100])
    def test_the_trainjob_says_otherwise(self, policy: Any, nodes: int) -> None:
        rendered = render(job(trainer={"numNodes": nodes}), runtime(policy=policy))
        assert pods_of(rendered) == (nodes, nodes)
        assert origin(rendered.jobset, *in_job("node", "template", "spec", "parallelism")) == (
            "trainjob spec.trainer.numNodes"
        )

    def test_counts_know_their_origin(self) -> None:
        counted = render(job(), runtime(policy={"numNodes": 2})).jobset
        assert origin(counted, *in_job("node", "template", "spec", "completions")) == "runtime spec.mlPolicy.numNodes"
        plain = render(job(), runtime()).jobset
        assert origin(plain, *in_job("node", "template", "spec", "completions")).startswith("runtime ")

    def test_each_part_of_a_trainjob_is_one_job(self) -> None:
        jobs = [replicated_job(name, name) for name in ("dataset-initializer", "model-initializer")]
        for entry in (several := [*jobs, node(), replicated_job("other")]):
            entry["replicas"] = 3
        rendered = render(job(), runtime(*several))
        assert [entry["replicas"] for entry in rendered.jobset.tree["spec"]["replicatedJobs"]] == [1, 1, 1, 3]
        assert origin(rendered.jobset, *in_job("node", "replicas")) == "plugin JobSet"


class TestTrainer:
    def test_image_command_and_args_replace(self) -> None:
        have = runtime(node(command=["old"], args=["old"]))
        said = {"image": "mine", "command": ["python", "t.py"], "args": ["--x"]}
        rendering = render(job(trainer=said), have)
        assert {key: container_of(rendering)[key] for key in said} == said
        for key in said:
            assert origin(rendering.jobset, *in_container(key)) == f"trainjob spec.trainer.{key}"

    def test_what_is_not_said_stays(self) -> None:
        container = container_of(render(job(trainer={"numNodes": 2}), runtime(node(command=["old"], args=["a"]))))
        assert (container["image"], container["command"], container["args"]) == ("torch", ["old"], ["a"])

    def test_an_empty_command_means_the_images_own(self) -> None:
        container = container_of(render(job(trainer={"command": [], "args": []}), runtime(node(command=["old"]))))
        assert not container.keys() & {"command", "args"}

    def test_an_empty_image_means_the_runtimes(self) -> None:
        assert container_of(render(job(trainer={"image": ""}), runtime()))["image"] == "torch"

    def test_variables_replace_in_place_and_follow(self) -> None:
        have = runtime(node(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]))
        rendering = render(job(trainer={"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "4"}]}), have)
        assert values_of(container_of(rendering)) == {"A": "4", "B": "2", "C": "3"}
        assert list(values_of(container_of(rendering))) == ["A", "B", "C"]
        assert origin(rendering.jobset, *in_container("env", ("name", "A"))) == "trainjob spec.trainer.env"
        assert origin(rendering.jobset, *in_container("env", ("name", "B"))) == "runtime"

    @pytest.mark.parametrize(
        ("said", "given"),
        [
            ({"name": "A"}, {"name": "A", "value": ""}),
            (
                {"name": "A", "value": "", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
            ),
            (
                {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}},
                {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}},
            ),
        ],
    )
    def test_a_variable_has_a_value_or_a_source(self, said: dict[str, Any], given: dict[str, Any]) -> None:
        assert container_of(render(job(trainer={"env": [said]}), runtime()))["env"] == [given]

    def test_containers_of_other_names_and_other_jobs_are_left_alone(self) -> None:
        have = runtime(
            replicated_job("node", "trainer", containers=[{"name": "sidecar"}, {"name": "node"}]),
            replicated_job("other", containers=[{"name": "node"}]),
        )
        rendering = render(job(trainer={"image": "mine", "env": [{"name": "A", "value": "1"}]}), have)
        assert container_of(rendering, "sidecar") == {"name": "sidecar"}
        assert container_of(rendering, "node", job="other") == {"name": "node"}
        assert container_of(rendering)["image"] == "mine"

    def test_a_launcher_that_trains_shares_variables_and_resources_with_the_nodes(self) -> None:
        policy = {"mpi": {"runLauncherAsNode": True}}
        have = runtime(
            replicated_job("node", containers=[{"name": "node", "image": "mpi"}]),
            replicated_job("launcher", "trainer", containers=[{"name": "node", "image": "mpi"}]),
            policy=policy,
        )
        said = {"image": "mine", "env": [{"name": "A", "value": "1"}], "resourcesPerNode": {"limits": {"cpu": "1"}}}
        rendering = render(job(trainer=said), have)
        worker, launcher = container_of(rendering), container_of(rendering, job="launcher")
        assert (worker["image"], launcher["image"]) == ("mpi", "mine")
        assert worker["env"] == launcher["env"][:1] == said["env"]
        assert worker["resources"] == launcher["resources"] == said["resourcesPerNode"]

    def test_no_trainer_changes_nothing(self) -> None:
        assert container_of(render(job(), runtime())) == {"name": "node", "image": "torch"}


HAVE = {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}, "requests": {"memory": "1Gi"}, "claims": [{"name": "c"}]}


class TestResources:
    def test_they_merge_by_resource_and_the_trainjob_wins(self) -> None:
        said = {"limits": {"cpu": "4"}, "requests": {"cpu": "500m"}}
        rendering = render(job(trainer={"resourcesPerNode": said}), torch(node(resources=HAVE)))
        assert container_of(rendering)["resources"] == {
            "limits": {"cpu": "4", "nvidia.com/gpu": "1"},
            "requests": {"memory": "1Gi", "cpu": "500m"},
            "claims": [{"name": "c"}],
        }
        limits = in_container("resources", "limits")
        assert origin(rendering.jobset, *limits, "cpu") == "trainjob spec.trainer.resourcesPerNode.limits"
        assert origin(rendering.jobset, *limits, "nvidia.com/gpu") == "runtime"

    def test_a_requested_device_without_a_limit_gets_it(self) -> None:
        said = {"requests": {"cpu": "1", "nvidia.com/gpu": "2", "example.com/nic": 1, "kubernetes.io/x": 1}}
        rendering = render(job(trainer={"resourcesPerNode": said}), torch(node()))
        resources = container_of(rendering)["resources"]
        assert resources["requests"] == {name: str(amount) for name, amount in said["requests"].items()}
        assert resources["limits"] == {"nvidia.com/gpu": "2", "example.com/nic": "1"}
        limits = in_container("resources", "limits", "nvidia.com/gpu")
        assert origin(rendering.jobset, *limits) == "trainjob spec.trainer.resourcesPerNode.requests"

    def test_a_limit_that_is_there_stays(self) -> None:
        said = {"requests": {"nvidia.com/gpu": "1"}}
        rendering = render(job(trainer={"resourcesPerNode": said}), torch(node(resources=HAVE)))
        assert container_of(rendering)["resources"]["limits"] == HAVE["limits"]

    @pytest.mark.finding(*UNEQUAL)
    @pytest.mark.parametrize("name", ["nvidia.com/gpu", "rdma/hca_shared", "hugepages-2Mi"])
    @pytest.mark.parametrize("kind", ["limits", "requests"])
    @pytest.mark.parametrize("kinds", [("limits", "requests"), ("limits",)], ids=["both", "limit"])
    def test_of_what_must_be_equal_the_trainjob_sets_both_sides(
        self, name: str, kind: str, kinds: tuple[str, ...]
    ) -> None:
        have = torch(node(resources={one: {name: "8", "cpu": "1"} for one in kinds}))
        asked = job(trainer={"resourcesPerNode": {kind: {name: "16"}}})
        resources = container_of(render(asked, have))["resources"]
        assert resources["limits"][name] == "16"
        assert resources.get("requests", {}).get(name, "16") == "16"
        assert PIPELINE.validate(asked, None, have).allowed

    @pytest.mark.finding(*UNEQUAL)
    @pytest.mark.parametrize("name", ["nvidia.com/gpu", "hugepages-1Gi"])
    def test_what_is_said_of_both_sides_must_be_equal(self, name: str) -> None:
        asked = job(trainer={"resourcesPerNode": {"limits": {name: "2", "cpu": "1"}, "requests": {name: "1"}}})
        (finding,) = PIPELINE.validate(asked, None, torch()).errors
        assert finding.path == "spec.trainer.resourcesPerNode"
        assert f"request 1 of {name} and be limited to 2" in finding.problem
        same = job(trainer={"resourcesPerNode": {"limits": {name: "1", "cpu": "1"}, "requests": {name: "1000m"}}})
        assert PIPELINE.validate(same, None, torch()).allowed

    def test_claims_merge_by_name(self) -> None:
        said = {"claims": [{"name": "c", "request": "r"}, {"name": "d"}]}
        rendering = render(job(trainer={"resourcesPerNode": said}), torch(node(resources=HAVE)))
        assert container_of(rendering)["resources"]["claims"] == said["claims"]

    @pytest.mark.finding("semantics", 3, "resourcesPerNode vanished on a runtime without mlPolicy")
    def test_they_reach_the_pods_of_a_runtime_without_a_policy_too(self) -> None:
        said = {"limits": {"cpu": "4"}}
        rendering = render(job(trainer={"resourcesPerNode": said}), runtime(node(resources=HAVE)))
        assert container_of(rendering)["resources"]["limits"] == {**HAVE["limits"], "cpu": "4"}  # type: ignore[dict-item]


class TestForm:
    def test_nulls_count_as_absent(self) -> None:
        have = runtime().put("spec", "template", "spec", "network", value=None)
        assert "network" not in render(job(), have).jobset.tree["spec"]

    @pytest.mark.parametrize(
        "jobs", [["text"], [{"name": "node", "template": []}], [{"name": "node", "template": {"spec": "x"}}]]
    )
    def test_a_template_of_another_form_is_an_error(self, jobs: Any) -> None:
        odd = runtime().put("spec", "template", "spec", "replicatedJobs", value=jobs)
        with pytest.raises(ResolveError, match=r"spec\.runtimeRef"):
            resolve(job(), odd)

    @pytest.mark.parametrize("kind", ["limits", "requests"])
    @pytest.mark.parametrize("amounts", ["x", 3, [1], True])
    def test_amounts_of_another_form_are_the_trainjobs_error(self, kind: str, amounts: Any) -> None:
        said = job(trainer={"resourcesPerNode": {kind: amounts}})
        with pytest.raises(ResolveError, match=rf"resourcesPerNode\.{kind}: must be amounts by resource") as caught:
            resolve(said, torch(node()))
        assert repr(amounts) in str(caught.value)

    def test_no_replicated_jobs_make_an_empty_plan(self) -> None:
        assert resolve(job(), runtime().drop("spec", "template", "spec")).pod_sets == ()

    def test_fields_that_we_do_not_know_survive(self) -> None:
        have = runtime(node(tomorrow={"x": [1]})).put("spec", "template", "spec", "future", value={"y": 2})
        rendering = render(job(trainer={"image": "mine"}), have)
        assert container_of(rendering)["tomorrow"] == {"x": [1]}
        assert rendering.jobset.tree["spec"]["future"] == {"y": 2}
