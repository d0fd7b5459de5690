"""What pods are given to report progress with."""

from __future__ import annotations

from tests.unit.render.objects import container_of, job, render, runtime, values_of
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.trainjobstatus import TrainJobStatus

SERVER = "https://trainer.system.svc:10443"
URL = f"{SERVER}/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/job/status"
AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/job/status"
PIPELINE = Pipeline.default(also=[TrainJobStatus(SERVER)])


def test_variables_mount_and_volume_are_the_references() -> None:
    rendering = PIPELINE.render(job(), runtime())
    container = container_of(rendering)
    namespace = rendering.plan.namespace
    values = values_of(container)
    assert values["KUBEFLOW_TRAINER_SERVER_URL"] == URL.replace("default", namespace)
    assert values["KUBEFLOW_TRAINER_SERVER_CA_CERT"] == "/var/run/secrets/kubeflow/trainer/ca.crt"
    assert values["KUBEFLOW_TRAINER_SERVER_TOKEN"] == "/var/run/secrets/kubeflow/trainer/token"
    mount = {"name": "kubeflow-trainer-token", "mountPath": "/var/run/secrets/kubeflow/trainer", "readOnly": True}
    assert mount in container["volumeMounts"]
    pods = rendering.plan.trainer_set
    assert pods is not None
    token = {"audience": AUDIENCE.replace("default", namespace), "expirationSeconds": 3600, "path": "token"}
    authority = {
        "name": "kubeflow-trainer-status-ca",
        "items": [{"key": "ca.crt", "path": "ca.crt"}],
        "optional": True,
    }
    assert pods.pod_spec["volumes"] == [
        {
            "name": "kubeflow-trainer-token",
            "projected": {"sources": [{"serviceAccountToken": token}, {"configMap": authority}]},
        }
    ]
    assert [one.tree["kind"] for one in rendering.objects] == ["JobSet"], "the ConfigMap is the namespace's"


def test_resources_and_counts_are_as_without() -> None:
    said = job(trainer={"numNodes": 3, "resourcesPerNode": {"requests": {"cpu": "2"}}})
    ours, plain = PIPELINE.render(said, runtime()), render(said, runtime())
    assert container_of(ours).get("resources") == container_of(plain).get("resources")
    assert [pods.count for pods in ours.plan.pod_sets] == [pods.count for pods in plain.plan.pod_sets]


def test_a_variable_of_the_trainjob_stays() -> None:
    mine = [{"name": "KUBEFLOW_TRAINER_SERVER_URL", "value": "https://mine"}]
    assert (
        values_of(container_of(PIPELINE.render(job(trainer={"env": mine}), runtime())))[mine[0]["name"]]
        == "https://mine"
    )


def test_without_the_plugin_nothing_is_added() -> None:
    assert (
        PIPELINE.without("TrainJobStatus").render(job(), runtime()).jobset.tree == render(job(), runtime()).jobset.tree
    )
    plain = Pipeline.default()
    assert plain.without("TrainJobStatus") is plain
