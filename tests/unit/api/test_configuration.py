from __future__ import annotations

import re

import pytest

from trainplane.api import configuration
from trainplane.api.configuration import Configuration, LeaderElection, load, seconds
from trainplane.api.errors import ConfigurationError

HEAD = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n"

SHIPPED = (
    HEAD
    + """
health: {healthProbeBindAddress: ":8081", readinessEndpointName: readyz, livenessEndpointName: healthz}
metrics: {bindAddress: ":8443", secureServing: true}
webhook: {port: 9443, host: ""}
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  resourceNamespace: ""
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 5
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
certManagement:
  enable: true
  webhookServiceName: kubeflow-trainer-controller-manager
  webhookSecretName: kubeflow-trainer-webhook-cert
clientConnection: {qps: 50, burst: 100}
statusServer: {port: 10443, qps: 5, burst: 10}
"""
)


@pytest.mark.parametrize("text", ["", "{}", "# nothing\n", HEAD])
def test_nothing_means_all_defaults(text: str) -> None:
    found = load(text)
    assert found == Configuration()
    assert (found.webhook.port, found.webhook.host) == (9443, "")
    assert (found.metrics.bind_address, found.metrics.secure_serving) == (":8443", True)
    assert found.metrics.auth.enabled
    assert found.health.health_probe_bind_address == ":8081"
    assert found.leader_election is None
    assert found.cert_management.enable
    assert found.cert_management.webhook_service_name == "kubeflow-trainer-controller-manager"
    assert found.cert_management.webhook_secret_name == "kubeflow-trainer-webhook-cert"
    assert (found.client_connection.qps, found.client_connection.burst) == (50, 100)
    assert (found.status_server.port, found.status_server.qps, found.status_server.burst) == (10443, 5, 10)
    assert found.tls.next_protos == ["http/1.1"]
    assert found.limits.pods_per_train_job == 32_768


def test_reads_the_file_that_the_reference_ships() -> None:
    found = load(SHIPPED)
    assert found.leader_election == LeaderElection()
    assert found.controller.group_kind_concurrency["TrainJob.trainer.kubeflow.org"] == 5


def test_a_feature_gate() -> None:
    assert load("").enabled("TrainJobStatus")
    assert load(HEAD + "featureGates: {TrainJobStatus: true}").enabled("TrainJobStatus")
    assert not load(HEAD + "featureGates: {TrainJobStatus: false}").enabled("TrainJobStatus")


def test_older_kinds_are_served_only_if_they_are_named() -> None:
    assert load("").legacy.kinds == []
    assert load(HEAD + "legacy: {kinds: [pytorchjobs, mpijobs]}").legacy.kinds == ["pytorchjobs", "mpijobs"]


def test_the_gate_of_kueues_documents_is_known_and_on() -> None:
    assert load("").enabled("JobManagedBy")
    assert not load(HEAD + "featureGates: {JobManagedBy: false}").enabled("JobManagedBy")


def test_patches_may_be_held_to_some_fields() -> None:
    assert load("").admission.allowed_runtime_patches is None
    assert load(HEAD + "admission: {allowedRuntimePatches: []}").admission.allowed_runtime_patches == []
    path = "template.spec.replicatedJobs[*].template.spec.template.spec.nodeSelector"
    found = load(f"{HEAD}admission:\n  allowedRuntimePatches: ['{path}']")
    assert found.admission.allowed_runtime_patches == [path]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("webhook: {port: 1}", "apiVersion: is None: write config.trainer.kubeflow.org/v1alpha1"),
        (HEAD.replace("v1alpha1", "v2"), "apiVersion: is 'config.trainer.kubeflow.org/v2'"),
        (HEAD.replace("kind: Configuration", "kind: Config"), "kind: is 'Config'"),
        (HEAD + "webhok: {}", "unknown field webhok"),
        (HEAD + "webhook: {ports: 1}", "webhook: object contains unknown field ports"),
        (HEAD + "webhook: {port: many}", "webhook.port: expected int, got str"),
        (HEAD + "webhook: {port: 0}", "webhook.port: is 0: write a port from 1 to 65535"),
        (HEAD + "webhook: {port: 65536}", "webhook.port: is 65536"),
        (HEAD + "statusServer: {port: -1}", "statusServer.port: is -1"),
        (HEAD + "clientConnection: {qps: -0.5}", "clientConnection.qps: is -0.5: write 0 or more"),
        (HEAD + "clientConnection: {burst: -1}", "clientConnection.burst: is -1"),
        (HEAD + "statusServer: {qps: -1}", "statusServer.qps: is -1"),
        (HEAD + "statusServer: {burst: -1}", "statusServer.burst: is -1"),
        (HEAD + "controller: {groupKindConcurrency: {Pod: 0}}", "controller.groupKindConcurrency[Pod]: is 0"),
        (HEAD + "featureGates: {Turbo: true}", "featureGates.Turbo: is not known"),
        (HEAD + "tls: {minVersion: '1.4'}", "tls.minVersion: is '1.4': write one of 1.0, 1.1, 1.2, 1.3"),
        (HEAD + "leaderElection: {leaseDuration: soon}", "leaderElection.leaseDuration: 'soon' is no duration"),
        (HEAD + "leaderElection: {leaseDuration: 10s}", "leaseDuration: must be longer than renewDeadline"),
        (HEAD + "leaderElection: {retryPeriod: 10s}", "renewDeadline: must be longer than retryPeriod"),
        (HEAD + "leaderElection: {retryPeriod: 0s}", "retryPeriod: must be longer than 0"),
        (HEAD + "admission: {allowedRuntimePatches: [x..y]}", "admission.allowedRuntimePatches[0]: 'x..y' is no path"),
        (HEAD + "admission: {allowedRuntimePatches: [template, template.specs]}", "[1]: 'template.specs': there is no"),
        (HEAD + "legacy: {kinds: [pytorchjobs, pods]}", "legacy.kinds[1]: is 'pods': write one of pytorchjobs, tfjobs"),
        (HEAD + "legacy: {gangSchedulerName: slurm}", "legacy.gangSchedulerName: is 'slurm': write one of volcano"),
        (HEAD + "legacy: {clusterDomain: 'a b'}", "legacy.clusterDomain: is 'a b': write a domain"),
        (HEAD + "legacy: {initImage: 'a b'}", "legacy.initImage: is 'a b': write the name of an image"),
        (HEAD + "webhook: {port: 1, port: 2}", "port: stands twice"),
        (HEAD + "webhook: [", "not YAML"),
        ("- a", "the document: expected object, got array"),
    ],
)
def test_a_wrong_file_names_the_field(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        load(text)


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(HEAD + "webhook: {port: 0}\nclientConnection: {qps: -1}\ntls: {minVersion: x}")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [("15s", 15), ("1m30s", 90), ("1h", 3600), ("250ms", 0.25), ("1.5s", 1.5), (".5s", 0.5), ("0", 0), ("2us", 2e-6)],
)
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "15", "s", "1 s", "1d", "-1s", "1s1", "1..s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        seconds(text)


def test_every_gate_has_a_default() -> None:
    assert all(isinstance(default, bool) for default in configuration.FEATURE_GATES.values())
