"""On a real API server: it takes the older jobs of the corpus and what they become, and a tenant's rights do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.processes import wait_for
from tests.legacy.migrate.corpus import expectations, manifests
from trainplane.api import tree as trees
from trainplane.cli import main
from trainplane.legacy.migrate.convert import migrate
from trainplane.legacy.migrate.proof import rendered
from trainplane.legacy.migrate.shipped import FRAMEWORKS, shipped_runtime

if TYPE_CHECKING:
    from lab.cluster import Cluster

REPOSITORY = Path(__file__).parents[3]
CORPUS = {name: job for name, job in manifests().items() if "becomes" in expectations()[name]}
UNSERVED = "MPIJob"
"""Its v1 is converted by the operator's webhook, which does not run here."""
STORED = ("pytorch-mnist", "pytorch-kueue", "tensorflow-parameter-servers", "v2alpha1-resnet", "mpi-pi")


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """A control plane with our CRDs and those of older kinds."""
    for folder in ("crds", "crds-legacy"):
        cluster.kubectl("apply", "--server-side", f"--filename={REPOSITORY / 'manifests' / folder}")
    plurals = [f"{word}jobs" for word in ("pytorch", "tf", "xgboost", "paddle", "jax", "mpi")]
    older = [f"v2alpha1{word}s" for word in ("trainjob", "trainingruntime", "clustertrainingruntime")]
    crds = [f"{plural}.kubeflow.org" for plural in (*plurals, *older)]
    today = ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
    cluster.wait_established(*crds, *(f"{plural}.trainer.kubeflow.org" for plural in today))
    return cluster


@pytest.fixture
def tenant(installed: Cluster, namespace: str) -> Path:
    """The kubeconfig of somebody who may read older jobs of one namespace, and nothing else."""
    kubeconfig = installed.user(f"tenant-{namespace}", f"tenant-{namespace}")
    rules = [{"apiGroups": ["kubeflow.org"], "resources": ["*"], "verbs": ["get", "list"]}]
    metadata = {"name": "reads-older-jobs", "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    installed.apply(
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": f"tenant-{namespace}"}],
        },
    )
    return kubeconfig


def placed(tree: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return an object in the test's namespace, where its kind has one."""
    if "namespace" not in tree["metadata"]:
        return tree
    return {**tree, "metadata": {**tree["metadata"], "namespace": namespace}}


def accepts(cluster: Cluster, namespace: str, objects: list[dict[str, Any]]) -> None:
    """Let the API server judge objects without storing them."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [placed(one, namespace) for one in objects]})
    words = ("create", "--dry-run=server", "--validate=strict", "--output=name", "--filename=-")
    told = cluster.kubectl(*words, f"--namespace={namespace}", stdin=text, check=False)
    assert told.code == 0, told.output[-2000:]
    assert len(told.output.splitlines()) >= len(objects)


def jobs_of(jobset: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the Jobs that JobSet makes of a JobSet, the first of each replicated job, with its claims."""
    name = jobset["metadata"]["name"]
    policies = jobset["spec"].get("volumeClaimPolicies", ())
    claims = [claim["metadata"]["name"] for policy in policies for claim in policy["templates"]]
    made = []
    for job in jobset["spec"]["replicatedJobs"]:
        spec = trees.copy({"completionMode": "Indexed", **job["template"]["spec"]})
        pod = spec["template"]["spec"]
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
        pod["volumes"] = [*pod.get("volumes", ()), *volumes]
        metadata = {"name": f"{name}-{job['name']}-0"}
        made.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    return made


def test_the_api_server_takes_the_corpus_and_what_it_becomes(installed: Cluster, namespace: str) -> None:
    older = [job for job in CORPUS.values() if (job["kind"], job["apiVersion"]) != (UNSERVED, "kubeflow.org/v1")]
    accepts(installed, namespace, older)
    accepts(installed, namespace, [one for job in CORPUS.values() for one in migrate(job).objects])


def test_the_api_server_and_jobset_take_what_the_trainjobs_render_to(installed: Cluster, namespace: str) -> None:
    jobsets, jobs = [], []
    for job in CORPUS.values():
        *runtimes, trainjob = migrate(job).objects
        shipped = trainjob["spec"].get("runtimeRef", {}).get("name", "").removesuffix("-distributed")
        if trainjob["kind"] != "TrainJob" or (not runtimes and shipped not in FRAMEWORKS.values()):
            continue  # a runtime, or on one that is not known here
        jobset = rendered(placed(trainjob, namespace), *(runtimes or [shipped_runtime(shipped)]))
        del jobset["metadata"]["ownerReferences"]
        jobsets.append({**jobset, "metadata": {**jobset["metadata"], "namespace": namespace}})
        jobs += jobs_of(jobset)
    assert len(jobsets) > 35
    accepts(installed, namespace, jobsets)
    accepts(installed, namespace, jobs)


def test_jobset_gives_master_and_workers_the_ranks_that_they_had(installed: Cluster, namespace: str) -> None:
    runtime, trainjob = migrate(CORPUS["pytorch-master-differs"]).objects
    jobset = rendered(placed(trainjob, namespace), runtime)
    name = jobset["metadata"]["name"]
    jobset["metadata"] = {"name": name, "namespace": namespace}
    installed.apply(jobset)

    def pods() -> list[dict[str, Any]]:
        selector = f"--selector=jobset.sigs.k8s.io/jobset-name={name}"
        found: list[dict[str, Any]] = installed.get(f"--namespace={namespace}", "pods", selector)["items"]
        return found

    wait_for("four pods", lambda: len(pods()) == 4, seconds=60)
    ranks = {
        pod["spec"]["hostname"]: pod["metadata"]["annotations"]["jobset.sigs.k8s.io/job-global-index"] for pod in pods()
    }
    workers = {f"{name}-worker-{index}-0": str(index + 1) for index in range(3)}
    assert ranks == {f"{name}-master-0-0": "0", **workers}
    assert {pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] for pod in pods()} == {name}
    assert {pod["spec"]["subdomain"] for pod in pods()} == {name}


def test_a_tenant_moves_jobs_of_their_own(
    installed: Cluster, tenant: Path, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    installed.apply(*(placed(CORPUS[name], namespace) for name in STORED))
    words = ["-n", namespace, "--kubeconfig", str(tenant)]
    assert main(["migrate", "pytorchjob/pytorch-mnist", *words]) == 0
    runtime, job = yaml.safe_load_all(capsys.readouterr().out)
    installed.apply(runtime, job)
    stored = installed.get(f"--namespace={namespace}", "trainjob.trainer.kubeflow.org", "pytorch-mnist")
    assert stored["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"
    assert stored["spec"]["trainer"]["numNodes"] == 3

    assert main(["migrate", "--all", "--dry-run", *words, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in told["objects"]} == {CORPUS[name]["metadata"]["name"] for name in STORED}
    assert {one["turn"] for one in told["objects"]} == {"waiting"}


def test_what_a_tenant_may_not_read_is_told(tenant: Path, namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "--all", "--dry-run", "-A", "--kubeconfig", str(tenant), "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["objects"] == []
    assert "forbidden" in told["unseen"]["pytorchjobs"]
    assert main(["migrate", "pytorchjob/x", "-n", "default", "--kubeconfig", str(tenant)]) == 2
    assert namespace not in capsys.readouterr().out
