from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.unit.render.objects import (
    PIPELINE,
    container_of,
    in_container,
    in_job,
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
from trainplane.api.tree import get
from trainplane.render.errors import PluginRefusedError

RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
GPU, CPU = "nvidia.com/gpu", "cpu"


def processes(have: dict[str, Any] | None, said: dict[str, Any] | None, number: Any = None, policy: Any = None) -> Any:
    """Return PET_NPROC_PER_NODE for resources of the runtime, of the TrainJob, and what both say of processes."""
    trainer: dict[str, Any] = {"numNodes": 1}
    if said is not None:
        trainer["resourcesPerNode"] = said
    if number is not None:
        trainer["numProcPerNode"] = number
    given = {"numProcPerNode": policy} if policy is not None else {}
    container = node(resources=have) if have is not None else node()
    return values_of(container_of(render(job(trainer=trainer), torch(container, **given))))["PET_NPROC_PER_NODE"]


class TestWorkedExample:
    """The contract's example of torch-distributed with two nodes."""

    def test_it(self) -> None:
        said = {"numNodes": 2, "command": ["torchrun", "t.py"], "env": [{"name": "A", "value": "1"}]}
        rendering = render(job(trainer=said), torch())
        assert rendering.jobset.tree == {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {
                "name": "job",
                "namespace": "team",
                "ownerReferences": [
                    {
                        "apiVersion": "trainer.kubeflow.org/v1alpha1",
                        "kind": "TrainJob",
                        "name": "job",
                        "uid": "uid-1",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": {
                "suspend": False,
                "replicatedJobs": [
                    {
                        "name": "node",
                        "groupName": "default",
                        "replicas": 1,
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {
                                "parallelism": 2,
                                "completions": 2,
                                "template": {
                                    "spec": {
                                        "containers": [
                                            {
                                                "name": "node",
                                                "image": "torch",
                                                "command": ["torchrun", "t.py"],
                                                "env": [
                                                    {"name": "A", "value": "1"},
                                                    {"name": "PET_NNODES", "value": "2"},
                                                    {"name": "PET_NPROC_PER_NODE", "value": "1"},
                                                    {"name": "PET_NODE_RANK", "valueFrom": RANK},
                                                    {"name": "PET_MASTER_ADDR", "value": "job-node-0-0.job"},
                                                    {"name": "PET_MASTER_PORT", "value": "29500"},
                                                    {"name": "MASTER_ADDR", "value": "job-node-0-0.job"},
                                                    {"name": "MASTER_PORT", "value": "29500"},
                                                ],
                                                "ports": [{"containerPort": 29500}],
                                            }
                                        ]
                                    }
                                },
                            },
                        },
                    }
                ],
            },
        }
        assert rendering.objects == (rendering.jobset,)
        assert origin(rendering.jobset, *in_container("env", ("name", "PET_NNODES"), "value")) == "plugin Torch"
        assert origin(rendering.jobset, *in_container("ports", 0)) == "plugin Torch"


class TestProcesses:
    """Processes per node: a number if one is said, `auto` on GPUs, else one for each processor."""

    @pytest.mark.finding("semantics", 10, "GPUs by claims made a process for each CPU")
    @pytest.mark.parametrize(
        ("have", "said", "result"),
        [
            (None, None, "1"),
            ({"requests": {CPU: 4}}, None, "4"),
            ({"limits": {CPU: 4}}, None, "4"),
            ({"limits": {CPU: 8}, "requests": {CPU: 4}}, None, "4"),
            ({"limits": {CPU: 8}, "requests": {CPU: 0}}, None, "8"),
            ({"requests": {CPU: "500m"}}, None, "1"),
            ({"requests": {CPU: "2500m"}}, None, "3"),
            ({"requests": {CPU: 0.5}}, None, "1"),
            ({"limits": {GPU: 1}}, None, "auto"),
            ({"requests": {"amd.com/GPU": "2"}, "limits": {CPU: 4}}, None, "auto"),
            ({"limits": {GPU: 0, CPU: 3}}, None, "3"),
            ({"limits": {"nvidia.com/mig-1g.5gb": 1, CPU: 3}}, None, "auto"),
            ({"limits": {"google.com/tpu": 4, CPU: 3}}, None, "4"),
            ({"limits": {"habana.ai/gaudi": 8, CPU: 96}}, None, "8"),
            ({"limits": {"aws.amazon.com/neuroncore": 2, CPU: 3}}, None, "2"),
            (None, {"requests": {CPU: 6}}, "6"),
            (None, {"limits": {GPU: 2}}, "auto"),
            ({"limits": {CPU: 2}}, {"limits": {CPU: 5}}, "5"),
            ({"limits": {GPU: 2}}, {"limits": {CPU: 5}}, "auto"),
            ({"requests": {CPU: 2}}, {"requests": {"memory": "1Gi"}}, "2"),
            ({"claims": [{"name": "gpu"}], "limits": {CPU: 96}}, None, "auto"),
            ({"limits": {CPU: 96}}, {"claims": [{"name": "gpu"}]}, "auto"),
            ({"claims": [{"name": "nic"}], "limits": {"google.com/tpu": 4}}, None, "4"),
        ],
    )
    def test_by_resources(self, have: Any, said: Any, result: str) -> None:
        assert processes(have, said) == result

    @pytest.mark.parametrize("resources", [None, {"limits": {GPU: 4}}, {"limits": {CPU: 4}}])
    def test_a_number_of_the_trainjob_wins(self, resources: Any) -> None:
        assert processes(resources, None, number=3) == "3"
        assert processes(resources, None, number=3, policy=7) == "3"
        assert processes(resources, None, number="3", policy="auto") == "3"

    @pytest.mark.parametrize(
        ("policy", "resources", "result"),
        [
            (7, {"limits": {CPU: 4}}, "7"),
            ("7", {"limits": {CPU: 4}}, "7"),
            ("auto", {"limits": {CPU: 4}}, "4"),
            ("auto", {"limits": {GPU: 4}}, "auto"),
            ("cpu", {"limits": {GPU: 4, CPU: 3}}, "3"),
            ("cpu", None, "1"),
            ("gpu", {"limits": {GPU: 4}}, "gpu"),
            ("gpu", {"limits": {CPU: 4}}, "gpu"),
        ],
    )
    def test_words_of_older_runtimes_are_honoured(self, policy: Any, resources: Any, result: str) -> None:
        assert processes(resources, None, policy=policy) == result

    @pytest.mark.parametrize(("number", "result"), [("auto", "4"), ("cpu", "4"), ("gpu", "gpu")])
    def test_words_that_an_older_release_stored_in_a_trainjob_too(self, number: str, result: str) -> None:
        assert processes({"limits": {CPU: 4}}, None, number=number, policy=2) == result

    def test_a_text_that_is_neither_is_refused(self) -> None:
        wrong = job(trainer={"numProcPerNode": "many"})
        with pytest.raises(PluginRefusedError, match=r"numProcPerNode: 'many' is no number .* \(plugin Torch\)"):
            render(wrong, torch())
        (finding,) = PIPELINE.validate(wrong, None, torch()).errors
        assert finding.path == "spec.trainer.numProcPerNode"

    def test_an_amount_that_is_no_quantity_is_the_users(self) -> None:
        with pytest.raises(PluginRefusedError, match=r"cpu: '1x' is no quantity"):
            render(job(trainer={"resourcesPerNode": {"limits": {CPU: "1x"}}}), torch())


class TestElastic:
    POLICY: ClassVar[dict[str, int]] = {"minNodes": 2, "maxNodes": 4, "maxRestarts": 10}

    def test_nodes_come_and_go_between_two_bounds(self) -> None:
        rendering = render(
            job(trainer={"numNodes": 3, "numProcPerNode": 2}), torch(nodes=None, elasticPolicy=self.POLICY)
        )
        assert pods_of(rendering) == (3, 3)
        assert values_of(container_of(rendering)) == {
            "PET_NNODES": "2:3",
            "PET_NPROC_PER_NODE": "2",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "job-node-0-0.job:29500",
            "PET_RDZV_ID": "job",
            "PET_MAX_RESTARTS": "10",
            "MASTER_ADDR": "job-node-0-0.job",
            "MASTER_PORT": "29500",
        }

    def test_without_a_word_there_are_as_many_as_may_be(self) -> None:
        rendering = render(job(), torch(nodes=None, elasticPolicy=self.POLICY))
        assert pods_of(rendering) == (4, 4)
        assert values_of(container_of(rendering))["PET_NNODES"] == "2:4"
        path = in_job("node", "template", "spec", "parallelism")
        assert origin(rendering.jobset, *path) == "runtime spec.mlPolicy.torch.elasticPolicy.maxNodes"

    @pytest.mark.parametrize(
        ("policy", "nodes"),
        [({}, "1:1"), ({"minNodes": 2}, "2:2"), ({"maxNodes": 3}, "1:3"), ({"minNodes": 0, "maxNodes": 2}, "1:2")],
    )
    def test_a_bound_may_be_left_out(self, policy: dict[str, int], nodes: str) -> None:
        container = container_of(render(job(), torch(nodes=None, elasticPolicy=policy)))
        assert values_of(container)["PET_NNODES"] == nodes
        assert "PET_MAX_RESTARTS" not in values_of(container)

    def test_how_nodes_meet_may_be_said_otherwise(self) -> None:
        said = job(trainer={"env": [{"name": "PET_RDZV_BACKEND", "value": "etcd-v2"}]})
        container = container_of(render(said, torch(nodes=None, elasticPolicy=self.POLICY)))
        assert values_of(container)["PET_RDZV_BACKEND"] == "etcd-v2"

    @pytest.mark.parametrize(("nodes", "allowed"), [(1, False), (2, True), (4, True), (5, False)])
    def test_bounds_are_kept(self, nodes: int, allowed: bool) -> None:
        verdict = PIPELINE.validate(
            job(trainer={"numNodes": nodes}), None, torch(nodes=None, elasticPolicy=self.POLICY)
        )
        assert verdict.allowed is allowed
        assert all("write 2 to 4" in finding.problem for finding in verdict.errors)


class TestAddress:
    def test_a_subdomain_is_respected(self) -> None:
        have = torch().put("spec", "template", "spec", "network", value={"subdomain": "net"})
        assert values_of(container_of(render(job(trainer={}), have)))["PET_MASTER_ADDR"] == "job-node-0-0.net"

    def test_so_is_another_name_of_the_job(self) -> None:
        have = torch(replicated_job("worker", "trainer", containers=[{"name": "node"}]))
        container = container_of(render(job(), have), job="worker")
        assert values_of(container)["PET_MASTER_ADDR"] == "job-worker-0-0.job"

    def test_a_port_of_the_runtime_stays(self) -> None:
        container = container_of(render(job(trainer={}), torch(node(ports=[{"containerPort": 8080}]))))
        assert container["ports"] == [{"containerPort": 8080}, {"containerPort": 29500}]

    def test_the_runtime_may_have_named_torchs_own(self) -> None:
        have = torch(node(ports=[{"containerPort": 29500, "name": "rdzv"}]))
        assert container_of(render(job(trainer={}), have))["ports"] == [{"containerPort": 29500, "name": "rdzv"}]


class TestPort:
    """The runtime's annotation says at which port nodes meet; everything that names it follows."""

    PORT = "trainer.kubeflow.org/port"

    def said(self, have: Any, text: str = "23456") -> Any:
        return have.put("metadata", "annotations", value={self.PORT: text})

    def test_the_master_listens_there(self) -> None:
        container = container_of(render(job(trainer={"numNodes": 2}), self.said(torch())))
        assert values_of(container)["PET_MASTER_PORT"] == "23456"
        assert container["ports"] == [{"containerPort": 23456}]

    def test_pods_are_those_that_there_are_without_it(self) -> None:
        rendering = render(job(trainer={"numNodes": 2}), self.said(torch()))
        assert pods_of(rendering) == pods_of(render(job(trainer={"numNodes": 2}), torch())) == (2, 2)

    def test_elastic_nodes_meet_there(self) -> None:
        have = self.said(torch(nodes=None, elasticPolicy={"maxNodes": 2}))
        container = container_of(render(job(), have))
        assert values_of(container)["PET_RDZV_ENDPOINT"] == "job-node-0-0.job:23456"
        assert container["ports"] == [{"containerPort": 23456}]

    def test_so_do_those_of_torchtune(self) -> None:
        tuned = job(trainer={"command": ["tune", "run"], "numProcPerNode": 2}, runtime_name="torchtune-llama3.2-1b")
        command = container_of(render(tuned, self.said(torch(node(command=["tune", "run"])))))["command"]
        assert "--rdzv_endpoint=job-node-0-0.job:23456" in command

    @pytest.mark.parametrize(("text", "port"), [("23456", "23456"), (None, "29400")])
    def test_and_those_of_a_runtimes_own_tune_run(self, text: str | None, port: str) -> None:
        command = ["tune", "run", "--rdzv_endpoint=localhost:29400", "full_finetune_distributed"]
        have = torch(node(command=command), nodes=2)
        container = container_of(render(job(), self.said(have, text) if text else have))
        assert container["command"] == [*command[:2], f"--rdzv_endpoint=job-node-0-0.job:{port}", *command[3:]]

    def test_further_containers_are_told_too(self) -> None:
        target = {"jobName": "node", "containerNames": ["monitor"]}
        have = self.said(torch(JOB, envInjection={"targets": [target]}))
        assert values_of(container_of(render(job(), have), "monitor"))["PET_MASTER_PORT"] == "23456"

    def test_what_is_no_port_is_refused(self) -> None:
        with pytest.raises(PluginRefusedError, match="from 1 to 65535"):
            render(job(), self.said(torch(), "http"))
        (finding,) = PIPELINE.validate(job(), None, self.said(torch(), "http")).errors
        assert finding.path == "spec.runtimeRef"
        assert self.PORT in finding.problem


class TestReplicas:
    """Ranks are counted within one Job and Kueue sizes one: a runtime with more, which admission refuses, gets one."""

    def have(self, **policy: Any) -> Any:
        return torch({**node(), "replicas": 3}, **policy)

    @pytest.mark.parametrize("nodes", [1, 4])
    def test_it_renders_as_if_it_said_one(self, nodes: int) -> None:
        said = job(trainer={"numNodes": nodes})
        rendering = render(said, self.have())
        assert rendering.jobset.tree == render(said, torch()).jobset.tree
        assert get(rendering.jobset.tree, *in_job("node", "replicas")) == 1
        assert pods_of(rendering) == (nodes, nodes)
        values = values_of(container_of(rendering))
        assert values["PET_NNODES"] == str(nodes)
        assert values["PET_NODE_RANK"] == RANK
        assert values["PET_MASTER_ADDR"] == "job-node-0-0.job"

    def test_so_do_elastic_nodes(self) -> None:
        policy: Any = {"nodes": None, "elasticPolicy": {"minNodes": 2, "maxNodes": 4}}
        assert render(job(), self.have(**policy)).jobset.tree == render(job(), torch(**policy)).jobset.tree

    def test_other_jobs_keep_theirs(self) -> None:
        servers = {**replicated_job("servers"), "replicas": 2}
        rendering = render(job(trainer={"numNodes": 2}), torch(node(), servers))
        assert get(rendering.jobset.tree, *in_job("servers", "replicas")) == 2


class TestWithoutTrainer:
    """A TrainJob that leaves all to the runtime trains on all its nodes too."""

    def test_variables_and_port_are_set(self) -> None:
        container = container_of(render(job(), torch(nodes=3)))
        assert values_of(container)["PET_NNODES"] == "3"
        assert values_of(container)["PET_MASTER_ADDR"] == "job-node-0-0.job"
        assert container["ports"] == [{"containerPort": 29500}]

    @pytest.mark.parametrize(("nodes", "place"), [(1, "localhost"), (2, "job-node-0-0.job")])
    def test_nodes_of_a_runtimes_own_tune_run_meet(self, nodes: int, place: str) -> None:
        command = ["tune", "run", "--rdzv_endpoint=localhost:29500", "full_finetune_distributed"]
        container = container_of(render(job(), torch(node(command=command), nodes=nodes)))
        assert container["command"] == [*command[:2], f"--rdzv_endpoint={place}:29500", *command[3:]]

    def test_a_runtime_that_trains_nowhere_is_left_alone(self) -> None:
        have = torch(replicated_job("other"))
        assert container_of(render(job(trainer={"numNodes": 3}), have), "other", "other") == {
            "name": "other",
            "image": "image/other",
        }
        assert pods_of(render(job(trainer={"numNodes": 3}), have), "other") == (1, 1)

    def test_other_frameworks_get_nothing(self) -> None:
        assert container_of(render(job(trainer={}), runtime())) == {"name": "node", "image": "torch"}
        jax = container_of(render(job(trainer={}), runtime(policy={"jax": {}})))
        assert not [name for name in values_of(jax) if name.startswith("PET_")]


JOB = replicated_job(
    "node",
    "trainer",
    containers=[{"name": "node", "image": "torch"}, {"name": "monitor", "image": "monitor"}],
    initContainers=[{"name": "check", "image": "check"}, {"name": "monitor", "image": "monitor"}],
)
ALL = ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"]


class TestFurtherContainers:
    def have(self, job_name: str, *containers: str) -> Any:
        target = {"jobName": job_name, "containerNames": list(containers)}
        return torch(JOB, replicated_job("other"), nodes=2, envInjection={"targets": [target]})

    def test_containers_and_init_containers_get_all_variables(self) -> None:
        rendering = render(job(), self.have("node", "monitor", "check"))
        assert list(values_of(container_of(rendering, "monitor"))) == ALL
        pod = get(rendering.jobset.tree, *in_container()[:-2])
        assert [list(values_of(entry)) for entry in pod["initContainers"]] == [ALL, []]
        assert "ports" not in container_of(rendering, "monitor")

    def test_also_beside_torchtune_and_in_another_job(self) -> None:
        tuned = job(trainer={"command": ["tune", "run"]}, runtime_name="torchtune-llama3.2-1b")
        rendering = render(tuned, self.have("other", "other"))
        assert list(values_of(container_of(rendering, "other", "other"))) == ALL
        assert values_of(container_of(rendering, "other", "other"))["PET_NNODES"] == "2"

    @pytest.mark.parametrize("target", [("node", "ghost"), ("ghost", "monitor")])
    def test_a_target_that_is_missing_is_refused(self, target: tuple[str, str]) -> None:
        have = self.have(*target)
        with pytest.raises(PluginRefusedError, match=f"container {target[1]} of job {target[0]}"):
            render(job(), have)
        (finding,) = PIPELINE.validate(job(), None, have).errors
        assert finding.path == "spec.runtimeRef"
        assert finding.cause == "Invalid"


class TestValidation:
    def test_variables_that_are_torchs_own(self) -> None:
        env = [{"name": name, "value": "1"} for name in ("PET_NODE_RANK", "MINE", "PET_MASTER_ADDR")]
        (finding,) = PIPELINE.validate(job(trainer={"env": env}), None, torch()).errors
        assert finding.path == "spec.trainer.env"
        assert finding.problem.startswith("PET_MASTER_ADDR, PET_NODE_RANK:")

    def test_they_are_anyones_in_other_frameworks(self) -> None:
        env = [{"name": "PET_NODE_RANK", "value": "1"}]
        assert PIPELINE.validate(job(trainer={"env": env}), None, runtime()).allowed

    def test_a_request_over_the_limit(self) -> None:
        said = job(trainer={"resourcesPerNode": {"requests": {CPU: 4, "memory": "1Gi"}}})
        (finding,) = PIPELINE.validate(said, None, torch(node(resources={"limits": {CPU: 2, "memory": "1Gi"}}))).errors
        assert finding.path == "spec.trainer.resourcesPerNode"
        assert "request 4 of cpu and be limited to 2" in finding.problem

    def test_what_the_runtime_alone_says_is_told_of_the_runtime(self) -> None:
        odd = torch(node(resources={"limits": {CPU: 2}, "requests": {CPU: 4}}))
        (finding,) = PIPELINE.validate(job(trainer={"numNodes": 2}), None, odd).errors
        assert finding.path == "spec.runtimeRef"
        assert "containers[name=node].resources.requests.cpu: would request 4 of cpu" in finding.problem

    @pytest.mark.parametrize("trainer", [None, {}, {"numNodes": 4, "command": ["torchrun"], "numProcPerNode": 2}])
    def test_a_good_trainjob(self, trainer: Any) -> None:
        said = {} if trainer is None else {"trainer": trainer}
        verdict = PIPELINE.validate(job(patch(nodeSelector={"a": "b"}), **said), None, torch())
        assert verdict.allowed
        assert verdict.warnings == ()
