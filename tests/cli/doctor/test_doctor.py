"""`trainplane doctor` on a real control plane: all well, then one planted fault after the other."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from lab import jobset, reference, trainplane
from lab.cluster import Cluster
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.pki import Authority
from lab.processes import wait_for
from lab.webhooks import documents
from trainplane.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VALIDATORS = "validatingwebhookconfigurations"
RUNTIME = "fit-torch"


def _runtime() -> dict[str, Any]:
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    runtime["metadata"]["name"] = RUNTIME
    return reference.with_image(runtime, image("torch"))


@pytest.fixture(autouse=True)
def _default_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFAULT_TRAINING_RUNTIME", RUNTIME)


@pytest.fixture(scope="module")
def patient(cluster: Cluster) -> Iterator[Cluster]:
    """Return the suite's cluster, with a runtime of this module's own: what is planted there is taken out again."""
    cluster.apply(_runtime())
    yield cluster
    cluster.kubectl("delete", "clustertrainingruntime", RUNTIME)


@pytest.fixture
def doomed() -> Iterator[Cluster]:
    """Return a cluster to break for good, with JobSet, our operator and one runtime."""
    cluster = Cluster.up(f"doomed-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        trainplane.install(cluster)
        cluster.apply(_runtime())
        yield cluster
    finally:
        cluster.down()


class Doctor:
    """Asks as a user would, by the command line."""

    def __init__(self, kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._kubeconfig = kubeconfig
        self._capsys = capsys

    def ask(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the report."""
        self._capsys.readouterr()
        code = main(["doctor", "--kubeconfig", str(self._kubeconfig), "--output", "json", *words])
        return code, json.loads(self._capsys.readouterr().out)

    def wrong(self) -> list[tuple[str, str]]:
        """Return area and text of all that is wrong."""
        return [(one["area"], one["text"]) for one in self.ask()[1]["findings"] if one["level"] == "wrong"]


@pytest.fixture
def doctor(patient: Cluster, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(patient.kubeconfig, capsys)


def test_nothing_is_wrong_where_nothing_is(doctor: Doctor, patient: Cluster) -> None:
    code, report = doctor.ask()
    assert [one for one in report["findings"] if one["level"] in {"wrong", "unknown"}] == []
    assert (code, report["fit"]) == (0, True)
    texts = " ".join(one["text"] for one in report["findings"])
    assert "Kubernetes v1." in texts
    assert "a TrainJob of runtime fit-torch would be accepted (dry run)" in texts
    assert patient.get("trainjobs", "--namespace", "default")["items"] == []


def test_somebody_without_rights_is_told_which(patient: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = Doctor(patient.user("stranger", "stranger"), capsys).ask()
    levels = {(one["area"], one["level"]) for one in report["findings"]}
    assert code == 1
    assert {("rights", "wrong"), ("webhooks", "unknown"), ("runtimes", "unknown")} <= levels
    assert ("APIs", "wrong") not in levels  # what is served, everybody may see


def test_a_namespace_that_is_not_there_is_told(doctor: Doctor) -> None:
    code, report = doctor.ask("--namespace", "nowhere")
    assert code == 1
    assert "there is no namespace nowhere" in {one["text"] for one in report["findings"]}


def test_a_cluster_that_does_not_answer_is_told(
    patient: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = tmp_path / "kubeconfig"
    away.write_text(patient.kubeconfig.read_text().replace(f"127.0.0.1:{patient.port}", "127.0.0.1:1"))
    code, report = Doctor(away, capsys).ask()
    assert (code, report["reached"]) == (2, False)


def test_a_webhook_that_trusts_another_authority_is_found_by_the_trial(
    doctor: Doctor, patient: Cluster, tmp_path: Path
) -> None:
    Authority.create(tmp_path, "stranger")
    stranger = (tmp_path / "ca.crt").read_bytes()
    with _bundle(patient, stranger):  # the suite runs one test at a time: nobody else creates a job meanwhile

        def found() -> bool:  # the API server reads webhooks anew within a second or two
            return any(area == "trial" and "x509" in text for area, text in doctor.wrong())

        wait_for("the doctor to find the webhook", found, seconds=60)
    wait_for("the webhook to be well again", lambda: doctor.wrong() == [], seconds=60)


@contextlib.contextmanager
def _bundle(cluster: Cluster, authority: bytes) -> Iterator[None]:
    """Let the operator's validators be trusted by another authority than theirs, for a while."""
    name = next(
        one["metadata"]["name"]
        for one in cluster.get(VALIDATORS)["items"]
        if one["metadata"]["name"].startswith(trainplane.ENGINE)
    )
    before = cluster.get(VALIDATORS, name)
    after = json.loads(json.dumps(before))
    for hook in after["webhooks"]:
        hook["clientConfig"]["caBundle"] = base64.b64encode(authority).decode()
    for one in (before, after):
        one["metadata"] = {"name": name}
    cluster.apply(after)
    try:
        yield
    finally:
        cluster.apply(before)


@pytest.mark.full
def test_what_is_missing_is_told(doomed: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    doctor = Doctor(doomed.kubeconfig, capsys)
    assert doctor.wrong() == []
    doomed.kubectl("delete", "clustertrainingruntime", RUNTIME)
    assert [area for area, _ in doctor.wrong()] == ["runtimes"]
    doomed.apply(_runtime())
    doomed.kubectl("delete", "crd", "jobsets.jobset.x-k8s.io")

    def told() -> bool:  # the API server takes a resource out of discovery a moment after its CRD is gone
        found = doctor.wrong()
        return [area for area, _ in found] == ["APIs"] and "jobset" in found[0][1]

    wait_for("the doctor to miss JobSets alone", told, seconds=60)
