from __future__ import annotations

from typing import Any

import pytest

from trainplane.api import tree
from trainplane.api.jobset import Container, JobSetTemplate, ReplicatedJob

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}},
    "spec": {
        "network": {"subdomain": "sub"},
        "replicatedJobs": [
            {
                "name": "model-initializer",
                "replicas": 2,
                "template": {
                    "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "model-initializer"}}
                },
            },
            {
                "name": "node",
                "template": {
                    "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                    "spec": {
                        "parallelism": 3,
                        "template": {
                            "spec": {
                                "initContainers": [{"name": "first"}],
                                "containers": [
                                    {
                                        "name": "node",
                                        "image": "torch",
                                        "command": ["c"],
                                        "args": ["a"],
                                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                                        "resources": {"requests": {"cpu": 1}, "limits": {"nvidia.com/gpu": "2"}},
                                    }
                                ],
                            }
                        },
                    },
                },
            },
        ],
    },
}


@pytest.fixture
def template() -> JobSetTemplate:
    return JobSetTemplate.copy_of(TEMPLATE)


@pytest.fixture
def node(template: JobSetTemplate) -> ReplicatedJob:
    job = template.job("node")
    assert job is not None
    return job


@pytest.fixture
def container(node: ReplicatedJob) -> Container:
    found = node.container("node")
    assert found is not None
    return found


def test_reads_a_template(template: JobSetTemplate) -> None:
    assert [job.name for job in template.jobs] == ["model-initializer", "node"]
    assert template.labels == {"l": "1"}
    assert template.annotations == {"a": "2"}
    assert template.subdomain == "sub"
    assert template.job("other") is None
    assert [job.name for job in template.jobs_of("trainer")] == ["node"]


def test_reads_a_job(node: ReplicatedJob) -> None:
    assert (node.ancestor, node.parallelism, node.replicas) == ("trainer", 3, 1)
    assert [one.name for one in node.init_containers] == ["first"]
    assert node.container("first") is None


def test_reads_a_container(container: Container) -> None:
    assert (container.image, container.command, container.args) == ("torch", ["c"], ["a"])
    assert container.requests == {"cpu": 1}
    assert container.limits == {"nvidia.com/gpu": "2"}
    assert [one["name"] for one in container.env] == ["A", "B"]


@pytest.mark.parametrize("empty", [{}, {"spec": {}}, {"spec": {"replicatedJobs": None}}, {"metadata": None}])
def test_what_is_missing_reads_as_empty_and_reading_makes_nothing(empty: dict[str, Any]) -> None:
    template = JobSetTemplate.copy_of(empty)
    assert (template.jobs, template.labels, template.annotations, template.subdomain) == ([], {}, {}, "")
    assert template.tree == empty


def test_an_empty_job_and_container_read_as_empty() -> None:
    job = ReplicatedJob({"name": "x"})
    assert (job.ancestor, job.parallelism, job.containers, job.init_containers, job.pod_spec) == (None, 1, [], [], {})
    container = Container({"name": "c", "env": None})
    assert (container.image, container.command, container.args, container.env) == ("", [], [], [])
    assert (container.requests, container.limits) == ({}, {})
    assert job.tree == {"name": "x"}
    assert container.tree == {"name": "c", "env": None}


def test_a_variable_is_set_in_its_place_or_at_the_end(container: Container) -> None:
    container.set_env({"name": "A", "value": "9"}, {"name": "C", "value": "3"})
    assert container.tree["env"] == [
        {"name": "A", "value": "9"},
        {"name": "B", "value": "2"},
        {"name": "C", "value": "3"},
    ]


def test_one_volume_may_be_mounted_at_two_paths(container: Container) -> None:
    container.set_mounts({"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"})
    container.set_mounts({"name": "w", "mountPath": "/a"})
    assert container.tree["volumeMounts"] == [{"name": "w", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]


def test_two_unnamed_ports_are_two_ports(container: Container) -> None:
    container.set_ports({"containerPort": 1})
    container.set_ports({"containerPort": 29500})
    assert [port["containerPort"] for port in container.tree["ports"]] == [1, 29500]


def test_a_source_of_variables_is_added_once(container: Container) -> None:
    for _ in range(2):
        container.add_env_from({"secretRef": {"name": "s"}})
    assert container.tree["envFrom"] == [{"secretRef": {"name": "s"}}]


def test_writes_make_what_is_missing() -> None:
    template = JobSetTemplate.copy_of({"spec": {"replicatedJobs": [{"name": "x", "template": None}]}})
    (job,) = template.jobs
    job.set_pods(2)
    job.set_replicas(1)
    job.label_pods({"a": "b"})
    job.annotate_pods({"c": "d"})
    job.set_volumes({"name": "v", "emptyDir": {}})
    job.set_init_containers({"name": "i"})
    assert template.tree["spec"]["replicatedJobs"] == [
        {
            "name": "x",
            "replicas": 1,
            "template": {
                "spec": {
                    "parallelism": 2,
                    "completions": 2,
                    "template": {
                        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                        "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [{"name": "i"}]},
                    },
                }
            },
        }
    ]


def test_a_copy_is_written_and_the_original_is_not(node: ReplicatedJob, container: Container) -> None:
    before = tree.copy(TEMPLATE)
    node.set_pods(9)
    container.set("image", "other")
    assert before == TEMPLATE
    assert container.image == "other"
