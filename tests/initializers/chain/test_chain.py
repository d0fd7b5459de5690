"""Dataset and model arrive on the claim that two machines train from, or the TrainJob says why not: real pods.

All TrainJobs begin at once, on claims of their own; each test waits for its own.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.initializers.chain import hub
from tests.initializers.chain.store import KEY, SECRET, Store
from tests.initializers.chain.tenant import MACHINES, RUNTIME, Tenant
from trainplane import (
    HuggingFaceModelInitializer,
    Initializer,
    JobFailedError,
    PVCInitializer,
    S3DatasetInitializer,
    SecretRef,
)
from trainplane.options import Name

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suite import SuiteReport

PATIENCE = 180
"""Seconds that anything may take on a busy machine of two cores."""
DATASET = {"train.parquet": "rows " * 1_000_000, "deep/test.parquet": "more rows"}
MODEL = {"config.json": "{}", "model.safetensors": "weights " * 1000}
WRONG = "another-secret-5678"
FAILURES = {"denied": ("AccessDenied", "Denied: "), "missing": ("DataMissing", "NotFound: ")}
"""The TrainJob, its class, and how the program's own words begin."""


def bucket(store: Store, path: str, secret: str) -> S3DatasetInitializer:
    return S3DatasetInitializer(
        f"s3://bucket/{path}",
        endpoint=store.endpoint,
        access_key_id=SecretRef(secret, "id"),
        secret_access_key=SecretRef(secret, "key"),
        region="us-east-1",
    )


@pytest.fixture(scope="module", autouse=True)
def volumes(tenant: Tenant, store: Store) -> dict[str, Path]:
    """Fill the sources, and let all TrainJobs begin; return the folder that each of them shares."""
    store.put({f"sets/alpaca/{name}": text for name, text in DATASET.items()} | {"sets/alpaca-more/x": "a sibling"})
    tenant.keep("right", id=KEY, key=SECRET)
    tenant.keep("wrong", id=KEY, key=WRONG)
    claim = tenant.offer("models", claimed=True) / "tiny"
    claim.mkdir()
    for name, text in MODEL.items():
        (claim / name).write_text(text)
    url = hub.start(tenant.cluster, {f"owner/tiny/{name}": text for name, text in MODEL.items()})
    asked = {
        "claim": Initializer(bucket(store, "sets/alpaca", "right"), PVCInitializer("pvc://models/tiny")),
        "hub": Initializer(
            bucket(store, "sets/alpaca/", "right"), HuggingFaceModelInitializer("hf://owner/tiny@v1", endpoint=url)
        ),
        "denied": Initializer(bucket(store, "sets/alpaca", "wrong")),
        "missing": Initializer(bucket(store, "sets/alp", "right")),
    }
    folders = {name: tenant.offer(f"initializer-{name}") for name in asked}
    for name, initializer in asked.items():
        tenant.client.train(runtime=RUNTIME, initializer=initializer, options=[Name(name)])
    return folders


def digests(folder: str, files: dict[str, str]) -> list[str]:
    found = ((f"{folder}/{name}", hashlib.sha256(text.encode()).hexdigest()) for name, text in files.items())
    return [f"{path} {digest}" for path, digest in sorted(found)]


@pytest.mark.parametrize("job", ["claim", "hub"])
def test_two_machines_train_from_what_arrived(
    job: str, tenant: Tenant, volumes: dict[str, Path], report: SuiteReport
) -> None:
    began = time.monotonic()
    tenant.client.wait_for_job_status(job, {"Complete"}, timeout=PATIENCE)
    report.figure(f"chain_{job}_seconds", time.monotonic() - began)
    wanted = digests("/workspace/dataset", DATASET) + digests("/workspace/model", MODEL)
    for step in ("node-0", "node-1"):
        assert list(tenant.client.get_job_logs(job, step=step)) == wanted
    assert {pod["spec"]["nodeName"] for pod in tenant.pods(job, "node")} == set(MACHINES)
    fetched = {path.stat().st_uid for part in ("dataset", "model") for path in (volumes[job] / part).iterdir()}
    assert fetched == {65532}, "not by root"


def test_a_claim_is_mounted_to_be_read(tenant: Tenant) -> None:
    tenant.client.wait_for_job_status("claim", {"Complete"}, timeout=PATIENCE)
    (model,) = tenant.pods("claim", "model-initializer")
    (container,) = model["spec"]["containers"]
    (mount,) = (one for one in container["volumeMounts"] if one["mountPath"] == "/pvc/models")
    assert mount["readOnly"]


def end_of(pod: dict[str, Any]) -> tuple[int | None, str]:
    """Return the exit code of a pod's container, and why the pod ended; a node that refuses a pod runs none of it."""
    status = pod["status"]
    ends = [one["state"]["terminated"] for one in status.get("containerStatuses", []) if "terminated" in one["state"]]
    code = ends[0]["exitCode"] if ends else None
    return code, " ".join([status["phase"], status.get("reason", ""), *(end.get("reason", "") for end in ends)])


@pytest.mark.parametrize("job", FAILURES)
def test_the_trainjob_says_why_its_data_did_not_arrive(job: str, tenant: Tenant) -> None:
    cause, word = FAILURES[job]
    with pytest.raises(JobFailedError):
        tenant.client.wait_for_job_status(job, {"Complete"}, timeout=PATIENCE)
    explanation = tenant.client.explain_job(job)
    assert (explanation.cause, explanation.step, explanation.certainty) == (cause, "dataset-initializer", "certain")
    assert explanation.detail.startswith(word)
    assert word in tenant.condition(job, "Failed")["message"]
    ends = [end_of(pod) for pod in tenant.pods(job, "dataset-initializer")]
    assert [code for code, _ in ends].count(1) == 1, f"what no other try would mend is not tried again: {ends}"
    lines = "\n".join(tenant.client.get_job_logs(job, step="dataset-initializer"))
    assert not [secret for secret in (SECRET, WRONG) if secret in lines + str(explanation)]
