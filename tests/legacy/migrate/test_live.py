"""On a real API server with our webhooks: it takes the older jobs of the corpus and what they become, and a tenant's
rights do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.paths import REPOSITORY
from lab.processes import wait_for
from lab.webhooks import documents
from tests.cli.tenant import wait_allowed
from tests.legacy.migrate.corpus import expectations, manifests
from trainplane.api import tree as trees
from trainplane.cli import main
from trainplane.legacy.migrate.convert import migrate
from trainplane.legacy.migrate.proof import rendered
from trainplane.legacy.migrate.shipped import FRAMEWORKS, shipped_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster

Tree = dict[str, Any]

CORPUS = {name: job for name, job in manifests().items() if "becomes" in expectations()[name]}
STORED = ("pytorch-mnist", "pytorch-kueue", "tensorflow-parameter-servers", "v2alpha1-resnet", "mpi-pi")


@pytest.fixture
def tenant(cluster: Cluster, namespace: str) -> Path:
    """The kubeconfig of somebody who may read older jobs of one namespace, and nothing else."""
    kubeconfig = cluster.user(f"tenant-{namespace}", f"tenant-{namespace}")
    rules = [{"apiGroups": ["kubeflow.org"], "resources": ["*"], "verbs": ["get", "list"]}]
    metadata = {"name": "reads-older-jobs", "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    cluster.apply(
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": f"tenant-{namespace}"}],
        },
    )
    wait_allowed(cluster, f"tenant-{namespace}", "list", "pytorchjobs", namespace)
    return kubeconfig


def placed(tree: Tree, namespace: str) -> Tree:
    """Return an object in the test's namespace, where its kind has one."""
    if "namespace" not in tree["metadata"]:
        return tree
    return {**tree, "metadata": {**tree["metadata"], "namespace": namespace}}


def accepts(cluster: Cluster, namespace: str, objects: list[Tree]) -> None:
    """Let the API server judge objects without storing them."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [placed(one, namespace) for one in objects]})
    words = ("create", "--dry-run=server", "--validate=strict", "--output=name", "--filename=-")
    told = cluster.kubectl(*words, f"--namespace={namespace}", stdin=text, check=False)
    assert told.code == 0, told.output[-2000:]
    assert len(told.output.splitlines()) >= len(objects)


def jobs_of(jobset: Tree) -> list[Tree]:
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


def moved() -> list[tuple[list[Tree], Tree]]:
    """Return the TrainJobs of the corpus, each with the runtimes that were made for it, or that we ship."""
    found = []
    for job in CORPUS.values():
        *runtimes, trainjob = migrate(job).objects
        shipped = trainjob["spec"].get("runtimeRef", {}).get("name", "").removesuffix("-distributed")
        if trainjob["kind"] == "TrainJob" and (runtimes or shipped in FRAMEWORKS.values()):
            found.append((runtimes or [shipped_runtime(shipped)], trainjob))
    return found


@pytest.fixture
def runtimes(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Store the runtimes of all that moved: our webhooks judge TrainJobs by them."""
    made = [runtime for runtimes, _ in moved() for runtime in runtimes if runtime["kind"] == "TrainingRuntime"]
    shipped = documents(*sorted((REPOSITORY / "runtimes").glob("*-distributed.yaml")))
    cluster.apply(*({**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in made), *shipped)
    yield
    cluster.kubectl("delete", "clustertrainingruntimes", *(one["metadata"]["name"] for one in shipped))


@pytest.mark.usefixtures("runtimes")
def test_the_api_server_and_our_webhooks_take_the_corpus_and_what_it_becomes(cluster: Cluster, namespace: str) -> None:
    accepts(cluster, namespace, [*CORPUS.values()])
    accepts(cluster, namespace, [trainjob for _, trainjob in moved()])


def test_the_api_server_and_jobset_take_what_the_trainjobs_render_to(cluster: Cluster, namespace: str) -> None:
    jobsets, jobs = [], []
    for runtimes, trainjob in moved():
        jobset = rendered(placed(trainjob, namespace), *runtimes)
        del jobset["metadata"]["ownerReferences"]
        jobsets.append({**jobset, "metadata": {**jobset["metadata"], "namespace": namespace}})
        jobs += jobs_of(jobset)
    assert len(jobsets) > 35
    accepts(cluster, namespace, jobsets)
    accepts(cluster, namespace, jobs)


def test_jobset_gives_master_and_workers_the_ranks_that_they_had(cluster: Cluster, namespace: str) -> None:
    runtime, trainjob = migrate(CORPUS["pytorch-master-differs"]).objects
    jobset = rendered(placed(trainjob, namespace), runtime)
    name = jobset["metadata"]["name"]
    jobset["metadata"] = {"name": name, "namespace": namespace}
    cluster.apply(jobset)

    def pods() -> list[Tree]:
        selector = f"--selector=jobset.sigs.k8s.io/jobset-name={name}"
        found: list[Tree] = cluster.get(f"--namespace={namespace}", "pods", selector)["items"]
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
    cluster: Cluster, tenant: Path, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.apply(*(placed(CORPUS[name], namespace) for name in STORED))
    words = ["-n", namespace, "--kubeconfig", str(tenant)]
    assert main(["migrate", "pytorchjob/pytorch-mnist", *words]) == 0
    runtime, job = yaml.safe_load_all(capsys.readouterr().out)
    cluster.apply(runtime, job)
    stored = cluster.get(f"--namespace={namespace}", "trainjob.trainer.kubeflow.org", "pytorch-mnist")
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
