"""What the API server accepts, refuses and fills in by our CRDs alone, without a webhook.

The numbers are those of the reference's own cases (contract §8.2). Cases 43, 50, 52 and 53 are refused by a later
schema than v2.3's; here, as in v2.3, the schema accepts them and admission judges.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.api.conftest import Server

Manifest = dict[str, Any]

MIB = 1024 * 1024
CONTROLLER = "trainer.kubeflow.org/trainjob-controller"


def train_job(name: str = "job", **spec: Any) -> Manifest:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
    }


def runtime(kind: str = "TrainingRuntime", **policy: Any) -> Manifest:
    pod = {"containers": [{"name": "node", "image": "torch"}]}
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def patch_entry(manager: str, **pod: Any) -> Manifest:
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}


ACCEPTED = {
    "32 cluster runtime": runtime("ClusterTrainingRuntime"),
    "33, 34 runtime": runtime(),
    "43 mpi with no process, as v2.3": runtime(mpi={"numProcPerNode": 0}),
    **{f"42 {name}": runtime(mpi={"mpiImplementation": name}) for name in ("Intel", "IntelMPI", "MPICH")},
    "50 negative numNodes, as v2.3": train_job(trainer={"numNodes": -1}),
    "51 zero numNodes": train_job(trainer={"numNodes": 0}),
    "52 negative numProcPerNode, as v2.3": train_job(trainer={"numProcPerNode": -1}),
    "53 zero numProcPerNode, as v2.3": train_job(trainer={"numProcPerNode": 0}),
    "54 positive both": train_job(trainer={"numNodes": 2, "numProcPerNode": 4}),
    "64 empty storageUri": train_job(initializer={"dataset": {"storageUri": ""}}),
    "66 dataset URI": train_job(initializer={"dataset": {"storageUri": "hf://org/name"}}),
    "68 model URI": train_job(initializer={"model": {"storageUri": "gs://bucket/model"}}),
    "69 command item of 1 MiB": train_job(trainer={"command": ["x" * MIB]}),
    "71 args item of 1 MiB": train_job(trainer={"args": ["x" * MIB]}),
    "73 name": train_job("a-job-1"),
    "74 name of 63": train_job("a" * 63),
    "79 managedBy ours": train_job(managedBy=CONTROLLER),
    "80 managedBy multikueue": train_job(managedBy="kueue.x-k8s.io/multikueue"),
    "82 two managers on one job": train_job(
        runtimePatches=[patch_entry("a.com/x", nodeSelector={"a": "b"}), patch_entry("b.com/x", nodeSelector={})]
    ),
    "83 manager": train_job(runtimePatches=[patch_entry("kueue.k8s.io/manager")]),
    "85 grace period": train_job(runtimePatches=[patch_entry("a.com/x", terminationGracePeriodSeconds=300)]),
    "87 no grace": train_job(runtimePatches=[patch_entry("a.com/x", terminationGracePeriodSeconds=0)]),
    "Kueue's empty entry": train_job(
        runtimePatches=[{"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}]
    ),
    "quantities as the SDK sends them": train_job(
        trainer={"resourcesPerNode": {"requests": {"nvidia.com/gpu": 2, "cpu": 4, "memory": "8Gi"}}}
    ),
    "200 arguments, as v2.1": train_job(trainer={"args": [f"--flag-{n}" for n in range(200)]}),
    "200 variables, as v2.1": train_job(trainer={"env": [{"name": f"V{n}", "value": ""} for n in range(200)]}),
    "numProcPerNode as a text, as v2.0": train_job(trainer={"numProcPerNode": "auto"}),
    "the group of old documents": train_job(
        runtimeRef={"apiGroup": "kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"}
    ),
    "labels and annotations, as v2.0": train_job(labels={"a": "b"}, annotations={"c": "d"}),
    "podSpecOverrides, as v2.0": train_job(
        podSpecOverrides=[{"targetJobs": [{"name": "node"}], "serviceAccountName": "me", "tolerations": [{}]}]
    ),
    "podTemplateOverrides, as v2.1": train_job(
        podTemplateOverrides=[
            {
                "targetJobs": [{"name": "node"}],
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}], "affinity": {}},
            }
        ]
    ),
    "torch with processes in a word": runtime(numNodes=1, torch={"numProcPerNode": "auto"}),
    "torch with processes as a number": runtime(torch={"numProcPerNode": 4}),
    "torch with processes as digits": runtime(torch={"numProcPerNode": "4"}),
    "torch elastic": runtime(
        torch={
            "elasticPolicy": {
                "minNodes": 1,
                "maxNodes": 4,
                "maxRestarts": 3,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "value": "1"}}}
                ],
            }
        }
    ),
    "a document's runtime, for MultiKueue": {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch-distributed", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                                "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "torch"}]}}},
                            },
                        }
                    ]
                }
            },
        },
    },
    "a document's TrainJob, for MultiKueue": train_job(
        runtimeRef={"name": "torch-distributed", "kind": "ClusterTrainingRuntime"},
        trainer={
            "numNodes": 2,
            "resourcesPerNode": {"requests": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}},
        },
    ),
    "runtime with a readiness probe and dependsOn": {
        **runtime("ClusterTrainingRuntime"),
        "spec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "cache-initializer",
                            "template": {
                                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "cache"}},
                                "spec": {
                                    "template": {
                                        "spec": {
                                            "containers": [
                                                {
                                                    "name": "c",
                                                    "readinessProbe": {"grpc": {"port": 50051}, "periodSeconds": 5},
                                                }
                                            ]
                                        }
                                    }
                                },
                            },
                        },
                        {
                            "name": "node",
                            "dependsOn": [{"name": "cache-initializer", "status": "Ready"}],
                            "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}},
                        },
                    ]
                }
            }
        },
    },
}

ONE_FRAMEWORK = "name one framework"
NAME = "metadata.name must"
URI = "must be empty or a URI"

REFUSED = {
    "35 mpi and torch": (runtime(mpi={}, torch={}), ONE_FRAMEWORK),
    "36 jax and torch": (runtime(jax={}, torch={}), ONE_FRAMEWORK),
    "37 torch and flux": (runtime(torch={}, flux={}), ONE_FRAMEWORK),
    "38 mpi and flux": (runtime(mpi={}, flux={}), ONE_FRAMEWORK),
    "39 jax and flux": (runtime(jax={}, flux={}), ONE_FRAMEWORK),
    "40 jax and mpi": (runtime(jax={}, mpi={}), ONE_FRAMEWORK),
    "41 all four": (runtime(jax={}, mpi={}, torch={}, flux={}), ONE_FRAMEWORK),
    "xgboost and torch": (runtime(xgboost={}, torch={}), ONE_FRAMEWORK),
    "42 an MPI that nobody knows": (runtime(mpi={"mpiImplementation": "LAM"}), "Unsupported value"),
    "61 flux without a process": (runtime(flux={"numProcPerNode": 0}), "at least one process"),
    "63 dataset without a scheme": (train_job(initializer={"dataset": {"storageUri": "imagenet"}}), URI),
    "65 dataset without a path": (train_job(initializer={"dataset": {"storageUri": "s3://"}}), URI),
    "67 model without a scheme": (train_job(initializer={"model": {"storageUri": "llama"}}), URI),
    "70 command item past 1 MiB": (train_job(trainer={"command": ["x" * (MIB + 1)]}), "may not be more than 1048576"),
    "72 args item past 1 MiB": (train_job(trainer={"args": ["x" * (MIB + 1)]}), "may not be more than 1048576"),
    "75 capital letter": (train_job("Job"), "metadata.name"),
    "76 name with a digit first": (train_job("1job"), NAME),
    "77 name with a hyphen last": (train_job("job-"), "metadata.name"),
    "78 name of 64": (train_job("a" * 64), NAME),
    "81 managedBy another": (train_job(managedBy="example.com/other"), f"must be {CONTROLLER}"),
    "86 negative grace": (
        train_job(runtimePatches=[patch_entry("a.com/x", terminationGracePeriodSeconds=-1)]),
        "greater than or equal to 0",
    ),
    "a manager twice": (
        train_job(runtimePatches=[patch_entry("a.com/x"), patch_entry("a.com/x")]),
        "Duplicate value",
    ),
    "no deadline": (train_job(activeDeadlineSeconds=0), "greater than or equal to 1"),
    "more processes than an int32": (train_job(trainer={"numProcPerNode": 2**31}), "2147483647"),
    "no runtimeRef": ({**train_job(), "spec": {}}, "runtimeRef"),
    "a field that no release has": (train_job(trainer={"gpus": 1}), 'unknown field "spec.trainer.gpus"'),
    "the main container in envInjection": (
        runtime(torch={"envInjection": {"targets": [{"jobName": "node", "containerNames": ["node"]}]}}),
        "leave node out",
    ),
    "torch with no process": (runtime(torch={"numProcPerNode": 0}), "auto, cpu, gpu or a number"),
    "torch with an unknown word": (runtime(torch={"numProcPerNode": "tpu"}), "auto, cpu, gpu or a number"),
    "elastic with numNodes": (runtime(numNodes=2, torch={"elasticPolicy": {"minNodes": 1}}), "leave numNodes out"),
    "an empty runtime": ({**runtime(), "spec": {}}, "should have at least 1 properties"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepts(server: Server, case: str) -> None:
    answer = server.create(ACCEPTED[case])
    assert answer.code == 0, answer.output


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_and_says_why(server: Server, case: str) -> None:
    manifest, reason = REFUSED[case]
    answer = server.create(manifest)
    assert answer.code != 0
    assert reason in answer.output


@pytest.mark.parametrize(
    ("case", "path", "value"),
    [
        ("88", ("spec", "suspend"), False),
        ("89", ("spec", "managedBy"), CONTROLLER),
        ("90", ("spec", "runtimeRef", "apiGroup"), "trainer.kubeflow.org"),
        ("91", ("spec", "runtimeRef", "kind"), "ClusterTrainingRuntime"),
    ],
)
def test_fills_in_a_train_job(server: Server, case: str, path: tuple[str, ...], value: object) -> None:
    assert tree.get(server.stored(train_job()), *path) == value


def test_fills_in_a_runtime(server: Server) -> None:
    """Cases 44 to 47, and what Kueue's Go code reads without looking whether it is there."""
    stored = server.stored(runtime(mpi={}))["spec"]
    assert stored["mlPolicy"]["mpi"] == {
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/root/.ssh",
        "runLauncherAsNode": False,
        "numProcPerNode": 1,
    }
    (job,) = stored["template"]["spec"]["replicatedJobs"]
    assert (job["replicas"], job["groupName"]) == (1, "default")
    assert server.stored(runtime(flux={}))["spec"]["mlPolicy"]["flux"] == {"numProcPerNode": 1}
    ports = copy.deepcopy(runtime())
    container = ports["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    container["containers"][0]["ports"] = [{"containerPort": 1}]
    pod = tree.get(
        server.stored(ports), "spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template", "spec"
    )
    assert pod["containers"][0]["ports"] == [{"containerPort": 1, "protocol": "TCP"}]


def test_leaves_torch_processes_out_when_the_runtime_does(server: Server) -> None:
    assert server.stored(runtime(torch={}))["spec"]["mlPolicy"]["torch"] == {}


@pytest.mark.parametrize("case", [case for case in ACCEPTED if "as v2" in case or "old" in case or "Kueue" in case])
def test_loses_nothing_before_admission_sees_it(server: Server, case: str) -> None:
    manifest = ACCEPTED[case]
    stored = server.stored(manifest)["spec"]
    for key, value in manifest["spec"].items():
        assert includes(stored[key], value), key


def includes(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and includes(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(includes, whole, part))
    return bool(whole == part)


STORED = train_job(
    "stored",
    suspend=True,
    initializer={"dataset": {"storageUri": "hf://org/name"}},
    trainer={"image": "torch", "args": ["a"], "numNodes": 1, "numProcPerNode": 2},
    runtimePatches=[patch_entry("a.com/x", terminationGracePeriodSeconds=1, nodeSelector={"a": "b"})],
)

OLD = train_job(
    "old",
    runtimeRef={"apiGroup": "kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"},
    trainer={"image": "torch", "numProcPerNode": "4"},
    podSpecOverrides=[{"targetJobs": [{"name": "node"}], "serviceAccountName": "me"}],
)


OLD_WORD = train_job("old-word", trainer={"image": "torch", "numProcPerNode": "gpu"})


@pytest.fixture(scope="module")
def stored(server: Server) -> Iterator[Server]:
    for manifest in (STORED, OLD, OLD_WORD):
        answer = server.create(manifest, dry_run=False)
        assert answer.code == 0, answer.output
    yield server
    server.cluster.kubectl("delete", "trainjob", "stored", "old", "old-word", f"--namespace={server.namespace}")


FIXED = "cannot be changed once the TrainJob exists"


@pytest.mark.parametrize(
    ("case", "spec"),
    [
        ("93", {"managedBy": "kueue.x-k8s.io/multikueue"}),
        ("94", {"runtimeRef": {"name": "other"}}),
        ("94, the group", {"runtimeRef": {"apiGroup": "kubeflow.org"}}),
        ("95", {"initializer": {"dataset": {"storageUri": "hf://other"}}}),
        ("96, the image", {"trainer": {"image": "other"}}),
        ("96, the arguments", {"trainer": {"args": ["b"]}}),
        ("96, nodes", {"trainer": {"numNodes": 2}}),
        ("96, processes", {"trainer": {"numProcPerNode": 3}}),
        ("96, processes as a text", {"trainer": {"numProcPerNode": "2"}}),
        ("96, one part more", {"trainer": {"command": ["x"]}}),
        ("96, one part less", {"trainer": {"args": None}}),
        ("96, no processes", {"trainer": {"numProcPerNode": None}}),
        ("98", {"runtimePatches": [patch_entry("a.com/x", terminationGracePeriodSeconds=2)]}),
    ],
)
def test_holds_what_is_fixed(stored: Server, case: str, spec: Manifest) -> None:
    answer = stored.patch("trainjob/stored", {"spec": spec})
    assert answer.code != 0, answer.output
    assert FIXED in answer.output


@pytest.mark.parametrize(
    ("case", "spec"),
    [
        ("97", {"runtimePatches": [patch_entry("a.com/x", terminationGracePeriodSeconds=1, nodeSelector={"a": "c"})]}),
        ("Kueue's start", {"suspend": False}),
    ],
)
def test_lets_change_what_may(stored: Server, case: str, spec: Manifest) -> None:
    answer = stored.patch("trainjob/stored", {"spec": spec})
    assert answer.code == 0, answer.output


def test_lets_admission_turn_old_fields_into_new_ones(stored: Server) -> None:
    """What the webhook does at the next write to a TrainJob that an older release stored."""
    turned = {
        "runtimeRef": {"apiGroup": "trainer.kubeflow.org"},
        "trainer": {"numProcPerNode": 4},
        "podSpecOverrides": None,
        "runtimePatches": [patch_entry("a.com/x", serviceAccountName="me")],
    }
    answer = stored.patch("trainjob/old", {"spec": turned})
    assert answer.code == 0, answer.output


@pytest.mark.parametrize("processes", [8, None])
def test_lets_admission_turn_a_word_into_a_number_or_leave_it_out(stored: Server, processes: int | None) -> None:
    answer = stored.patch("trainjob/old-word", {"spec": {"trainer": {"numProcPerNode": processes}}})
    assert answer.code == 0, answer.output


@pytest.mark.parametrize(
    "spec",
    [
        {"trainer": {"numProcPerNode": 8}},
        {"trainer": {"numProcPerNode": None}},
        {"trainer": {"numProcPerNode": "8"}},
        {"runtimeRef": {"apiGroup": "trainer.kubeflow.org", "name": "other"}},
        {"runtimeRef": {"apiGroup": "example.com"}},
        {"trainer": {"numProcPerNode": 4, "image": "other"}},
        {"trainer": {"numProcPerNode": 4, "args": ["b"]}},
    ],
)
def test_turning_is_no_way_around_what_is_fixed(stored: Server, spec: Manifest) -> None:
    answer = stored.patch("trainjob/old", {"spec": spec})
    assert answer.code != 0
    assert FIXED in answer.output
