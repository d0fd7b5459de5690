"""Fields that do not exist yet survive, wherever a later release may put them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.api import document, tree
from trainplane.api.errors import DecodeError
from trainplane.api.jobset import JobSetTemplate
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import JobStatus, RuntimeRef, TrainJob, TrainJobSpec, TrainJobStatus

if TYPE_CHECKING:
    import msgspec

JOB: dict[str, Any] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {
        "name": "job",
        "namespace": "team",
        "uid": "u",
        "labels": {"a": "b"},
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "x", "controller": True}],
    },
    "spec": {
        "runtimeRef": {"name": "torch", "kind": "TrainingRuntime"},
        "initializer": {"dataset": {"storageUri": "hf://a/b", "env": [{"name": "A", "value": ""}]}},
        "trainer": {
            "image": "torch",
            "args": ["a"],
            "numNodes": 2,
            "numProcPerNode": "auto",
            "resourcesPerNode": {"requests": {"cpu": 4.0}},
            "env": [{"name": "B", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "v"}}}],
        },
        "runtimePatches": [
            {
                "manager": "kueue.x-k8s.io/manager",
                "time": "2026-01-02T03:04:05Z",
                "trainingRuntimeSpec": {
                    "template": {
                        "metadata": {"labels": {"c": "d"}},
                        "spec": {
                            "replicatedJobs": [
                                {
                                    "name": "node",
                                    "template": {
                                        "spec": {
                                            "template": {
                                                "metadata": {"annotations": {"e": "f"}},
                                                "spec": {
                                                    "nodeSelector": {"g": "h"},
                                                    "tolerations": [{"key": "k"}],
                                                    "containers": [{"name": "node", "env": [{"name": "C"}]}],
                                                },
                                            }
                                        }
                                    },
                                }
                            ]
                        },
                    }
                },
            }
        ],
        "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "volumes": [{"name": "v"}]}],
        "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"imagePullSecrets": [{"name": "s"}]}}],
        "labels": {"x": "y"},
        "annotations": {"x": "y"},
        "suspend": True,
        "managedBy": "kueue.x-k8s.io/multikueue",
        "activeDeadlineSeconds": 60,
    },
    "status": {
        "conditions": [
            {
                "type": "Suspended",
                "status": "True",
                "reason": "Suspended",
                "message": "m",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
        "jobsStatus": [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}],
        "trainerStatus": {"progressPercentage": 5, "lastUpdatedTime": "2026-01-02T03:04:05Z", "metrics": []},
    },
}

RUNTIME: dict[str, Any] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {
        "mlPolicy": {
            "numNodes": 1,
            "torch": {
                "numProcPerNode": "gpu",
                "elasticPolicy": {"minNodes": 1, "metrics": [{"type": "Resource"}]},
                "envInjection": {"targets": [{"jobName": "node", "containerNames": ["side"]}]},
            },
        },
        "podGroupPolicy": {"volcano": {"networkTopology": {"mode": "soft"}}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "network": {"subdomain": "s"},
                "replicatedJobs": [
                    {
                        "name": "node",
                        "replicas": 1,
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {
                                "template": {
                                    "spec": {"containers": [{"name": "node", "image": "torch", "env": [{"name": "A"}]}]}
                                }
                            },
                        },
                    }
                ],
            },
        },
    },
}


def objects(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every object of a tree, so that a field can be put into each."""
    found = [path] if isinstance(value, dict) else []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        found += objects(inner, (*path, step))
    return found


FREE = {("labels",), ("annotations",), ("nodeSelector",)}
"""Maps of texts: a field that does not exist yet is just another key there."""


def with_future_fields(original: dict[str, Any]) -> dict[str, Any]:
    """Return a tree in which every object has a field that no release has yet."""
    changed: Any = original
    for path in objects(original):
        if path[-1:] not in FREE:
            changed = tree.put(changed, *path, "fieldOf2031", value={"deep": [str(path), {"x": 1.5}]})
    result: dict[str, Any] = changed
    return result


@pytest.mark.parametrize(("kind", "original"), [(TrainJob, JOB), (ClusterTrainingRuntime, RUNTIME)])
def test_a_field_that_does_not_exist_yet_survives_everywhere(
    kind: type[msgspec.Struct], original: dict[str, Any]
) -> None:
    future = with_future_fields(original)
    assert len(objects(future)) > 2 * len(objects(original))
    assert json.loads(document.decode(json.dumps(future), kind).encode()) == future


@pytest.mark.parametrize("path", [path for path in objects(JOB) if path[-1:] not in FREE])
def test_a_change_elsewhere_loses_no_field(path: tuple[Any, ...]) -> None:
    future = tree.put(JOB, *path, "fieldOf2031", value={"deep": [1]})
    job = document.read(future, TrainJob)

    changed = job.put("spec", "suspend", value=False).put("metadata", "labels", "new", value="x").drop("spec", "labels")

    assert changed.view.spec.suspend is False
    assert changed.view.metadata.labels["new"] == "x"
    kept = tree.get(changed.tree, *path)
    assert kept is None if path[:2] == ("spec", "labels") else kept["fieldOf2031"] == {"deep": [1]}


def test_a_template_is_changed_without_losing_fields() -> None:
    runtime = document.read(with_future_fields(RUNTIME), ClusterTrainingRuntime)
    template = JobSetTemplate.copy_of(runtime.tree["spec"]["template"])
    job = template.job("node")
    assert job is not None
    container = job.container("node")
    assert container is not None

    container.set_env({"name": "PET_NNODES", "value": "2"})
    job.set_pods(2)

    for path in objects(RUNTIME["spec"]["template"]):
        assert path[-1:] in FREE or "fieldOf2031" in tree.get(template.tree, *path)
    assert "PET_NNODES" not in json.dumps(runtime.tree)


def test_the_view_is_what_we_understand() -> None:
    job = document.read(JOB, TrainJob).view
    assert job.metadata.name == "job"
    assert job.metadata.creation_timestamp is not None
    assert job.metadata.creation_timestamp.year == 2026
    assert job.spec.runtime_ref == RuntimeRef(name="torch", kind="TrainingRuntime")
    assert job.spec.trainer is not None
    assert job.spec.trainer.num_proc_per_node == "auto"
    assert job.spec.trainer.resources_per_node == {"requests": {"cpu": 4.0}}
    (patch,) = job.spec.runtime_patches
    assert patch.training_runtime_spec is not None
    assert patch.training_runtime_spec.template is not None
    assert patch.training_runtime_spec.template.spec is not None
    (replicated,) = patch.training_runtime_spec.template.spec.replicated_jobs
    assert replicated.name == "node"
    assert job.spec.pod_spec_overrides[0].target_jobs[0].name == "node"
    assert job.status.jobs_status[0].active == 1


def test_the_view_fills_in_the_defaults_of_the_crd() -> None:
    job = document.read({"metadata": {"name": "j"}, "spec": {"runtimeRef": {"name": "t"}}}, TrainJob).view
    assert job.spec.runtime_ref.api_group == "trainer.kubeflow.org"
    assert job.spec.runtime_ref.kind == "ClusterTrainingRuntime"
    assert job.spec.managed_by == "trainer.kubeflow.org/trainjob-controller"
    assert job.status == TrainJobStatus()
    runtime = document.read({"spec": {"mlPolicy": {"mpi": {}, "flux": {}}}}, TrainingRuntime).view
    assert runtime.spec.ml_policy is not None
    assert runtime.spec.ml_policy.mpi is not None
    assert runtime.spec.ml_policy.mpi.ssh_auth_mount_path == "/root/.ssh"


def test_a_null_is_a_field_that_is_not_there() -> None:
    job = document.read(
        {"metadata": {"labels": None}, "spec": {"runtimeRef": {"name": "t"}, "trainer": None}}, TrainJob
    )
    assert job.view.metadata.labels == {}
    assert job.tree["metadata"] == {"labels": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"spec": {"runtimeRef": {"name": "t"}, "trainer": {"numNodes": "two"}}}',
            "spec.trainer.numNodes: expected int",
        ),
        ('{"spec": {}}', "spec: object missing required field runtimeRef"),
        (
            '{"spec": {"runtimeRef": {"name": "t"}, "runtimePatches": [{"manager": 1}]}}',
            r"spec.runtimePatches\[0\].manager",
        ),
        ("[]", "the document: expected object"),
        ("{", "the document: not JSON"),
    ],
)
def test_a_wrong_document_names_the_field(text: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        document.decode(text, TrainJob)


def test_an_error_keeps_path_and_problem_apart() -> None:
    with pytest.raises(DecodeError) as caught:
        document.read({"spec": {"runtimeRef": {"name": 5}}}, TrainJob)
    assert caught.value.path == "spec.runtimeRef.name"
    assert caught.value.problem == "expected str, got int"


def test_what_we_make_says_its_kind_and_leaves_defaults_out() -> None:
    job = TrainJob(spec=TrainJobSpec(runtime_ref=RuntimeRef(name="torch")))
    assert (
        document.to_tree(job)
        == json.loads(document.encode(job))
        == {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "spec": {"runtimeRef": {"name": "torch"}},
        }
    )


def test_a_job_status_writes_its_zeros() -> None:
    status = TrainJobStatus(jobs_status=[JobStatus(name="node", active=1)])
    assert document.to_tree(status)["jobsStatus"] == [
        {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    ]


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=5), st.integers() | st.text(max_size=3) | st.none()))
def test_any_further_field_survives(further: dict[str, Any]) -> None:
    future = {**JOB, "spec": {**further, **JOB["spec"]}}
    assert json.loads(document.read(future, TrainJob).encode()) == json.loads(json.dumps(future))
