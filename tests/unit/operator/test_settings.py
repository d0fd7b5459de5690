from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainplane.api import configuration
from trainplane.api.configuration import Configuration, Output
from trainplane.api.errors import ConfigurationError
from trainplane.operator.settings import Settings, address, parse

SHIPPED = """
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
health: {healthProbeBindAddress: ":8081", readinessEndpointName: readyz, livenessEndpointName: healthz}
metrics: {bindAddress: ":8443", secureServing: true}
webhook: {port: 9443, host: ""}
leaderElection:
  {leaderElect: true, resourceName: trainer.kubeflow.org, resourceNamespace: "", leaseDuration: 15s,
   renewDeadline: 10s, retryPeriod: 2s}
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 5
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
certManagement:
  {enable: true, webhookServiceName: kubeflow-trainer-controller-manager,
   webhookSecretName: kubeflow-trainer-webhook-cert}
clientConnection: {qps: 50, burst: 100}
"""


def write(folder: Path, text: str) -> str:
    path = folder / "config.yaml"
    path.write_text(text)
    return str(path)


def with_file(tree: dict[str, Any]) -> Settings:
    identity = {"apiVersion": "config.trainer.kubeflow.org/v1alpha1", "kind": "Configuration"}
    return Settings(configuration=configuration.read({**identity, **tree}))


def test_the_references_deployment_starts_ours(tmp_path: Path) -> None:
    arguments = [f"--config={write(tmp_path, SHIPPED)}", "--zap-log-level=2"]
    settings = parse(arguments, {"POD_NAMESPACE": "kubeflow"})
    assert settings.workers("TrainJob") == 5
    assert settings.workers("TrainingRuntime") == 1
    lease = settings.lease()
    assert lease is not None
    assert (lease.namespace, lease.name, lease.lease_duration, lease.renew_deadline, lease.retry_period) == (
        "kubeflow",
        "trainer.kubeflow.org",
        15,
        10.0,
        2.0,
    )
    assert settings.webhook().port == 9443
    assert settings.webhook().host is None
    assert settings.log_format == "json"


def test_without_a_file_all_is_at_its_default() -> None:
    settings = parse([], {})
    assert settings.configuration == Configuration()
    assert settings.lease() is None
    assert settings.workers("TrainJob") == 32
    assert settings.namespace == "kubeflow-system"
    assert settings.certificates == Path("/tmp/k8s-webhook-server/serving-certs")


def test_flags() -> None:
    settings = parse(
        [
            "--kubeconfig=K",
            "--namespace=mine",
            "--watch-namespace=team-a",
            "--webhook-cert-dir=certs",
            "--zap-devel",
            "--zap-time-encoding=rfc3339",
            "--feature-gates=TrainJobStatus=false",
        ],
        {},
    )
    assert settings.kubeconfig == "K"
    assert settings.namespace == "mine"
    assert settings.watch_namespace == "team-a"
    assert settings.certificates == Path("certs")
    assert settings.log_format == "console"
    assert settings.configuration.feature_gates == {"TrainJobStatus": False}


def test_the_gates_of_flags_go_before_the_files(tmp_path: Path) -> None:
    tree = {**yaml.safe_load(SHIPPED), "featureGates": {"TrainJobStatus": False}}
    path = write(tmp_path, yaml.safe_dump(tree))
    assert parse([f"--config={path}"], {}).workers("TrainJob") == 5
    assert not parse([f"--config={path}"], {}).configuration.enabled("TrainJobStatus")
    assert parse([f"--config={path}", "--feature-gates=TrainJobStatus=true"], {}).configuration.enabled(
        "TrainJobStatus"
    )


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("TrainJobStatus", "=true or =false"),
        ("Ghost=true", "featureGates.Ghost: is not known"),
        ("=true", "is not known"),
    ],
)
def test_gates_that_cannot_be(flag: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        parse([f"--feature-gates={flag}"], {})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ghost\.yaml: No such file"):
        parse([f"--config={tmp_path}/ghost.yaml"], {})


def test_the_certificates_folder_moves_with_tmpdir() -> None:
    assert parse([], {"TMPDIR": "/else"}).certificates == Path("/else/k8s-webhook-server/serving-certs")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [(":8081", None, 8081), ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:80", "::1", 80)],
)
def test_addresses(text: str, host: str | None, port: int) -> None:
    found = address(text, "health")
    assert found is not None
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize("text", ["", "0"])
def test_no_address_is_no_server(text: str) -> None:
    assert address(text, "metrics") is None


@pytest.mark.parametrize("text", ["8081x", ":", "host:99999", "host:http"])
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"metrics\.bindAddress: is"):
        address(text, "metrics.bindAddress")


def test_election_can_be_turned_off_and_moved() -> None:
    assert with_file({"leaderElection": {"leaderElect": False}}).lease() is None
    lease = with_file({"leaderElection": {"resourceNamespace": "else"}}).lease()
    assert lease is not None
    assert lease.namespace == "else"


def test_a_wrong_address_stops_the_start(tmp_path: Path) -> None:
    tree = {**yaml.safe_load(SHIPPED), "health": {"healthProbeBindAddress": "nowhere"}}
    with pytest.raises(ConfigurationError, match="healthProbeBindAddress"):
        parse([f"--config={write(tmp_path, yaml.safe_dump(tree))}"], {})


def test_the_image_that_sends_output_is_this_releases_unless_it_is_named() -> None:
    assert re.fullmatch(r"ghcr\.io/trainplane/initializers:v[0-9][A-Za-z0-9._-]*", Settings().output_image())
    named = Configuration(output=Output(image="registry.example.com/initializers:1"))
    assert Settings(configuration=named).output_image() == "registry.example.com/initializers:1"


@pytest.mark.parametrize("image", ["two words", "line\nbreak", "x" * 501])
def test_an_image_that_is_none(image: str) -> None:
    tree = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "output": {"image": image},
    }
    with pytest.raises(ConfigurationError, match=r"output\.image"):
        configuration.read(tree)


def test_flags_of_training_operator_choose_older_kinds() -> None:
    found = parse(
        [
            "--enable-scheme=pytorchjob",
            "--enable-scheme=TFJob",
            "--gang-scheduler-name=volcano",
            "--pytorch-init-container-image=img:1",
        ]
    ).configuration.legacy
    assert found.kinds == ["pytorchjobs", "tfjobs"]
    assert (found.gang_scheduler_name, found.init_image) == ("volcano", "img:1")


def test_an_older_kind_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"legacy.kinds\[0\]: is 'mxjob'"):
        parse(["--enable-scheme=mxjob"])
