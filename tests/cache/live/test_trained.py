"""Real pods train from a cache that is a step of their TrainJob, or a TrainJob of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.images import reference as image
from lab.images import trainplane as images
from lab.paths import REPOSITORY
from tests.cache.live.conftest import QUEUE
from tests.cache.test_iceberg import written
from tests.fenced import blocks
from tests.initializers.chain.store import BUCKET
from tests.seeds.documents.indentation import indented
from tests.seeds.documents.reading import documents, statements
from tests.unit.cache.data import write_parquet

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from tests.e2e.user import User
    from tests.initializers.chain.store import Store
    from tests.suite import SuiteReport

Tree = dict[str, Any]

API = "trainer.kubeflow.org/v1alpha1"
CACHE = "cache-initializer"
ROWS = 5_000
PAGE = REPOSITORY / "docs/data-cache.md"
PACKAGES = {"packages": REPOSITORY / "build/torchdata", "source": REPOSITORY / "src"}
"""What the image of a training would have: `trainplane[cache]`."""
PROGRAM = Path(__file__).with_name("training.py").read_text()

needs_documents = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")


@pytest.fixture(scope="module")
def folder(bucket: Store, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder of Parquet in the bucket."""
    place = tmp_path_factory.mktemp("rows")
    write_parquet(place, *[1_000] * (ROWS // 1_000))
    bucket.send(place, "sets/rows")
    return f"s3://{BUCKET}/sets/rows"


@pytest.fixture(scope="module")
def iceberg(cluster: Cluster) -> tuple[Path, str]:
    """Return a folder of the node with an Iceberg table, and the table's metadata file."""
    place = cluster.folder / "volumes/warehouse"
    place.mkdir(parents=True)
    return place, str(written(place, f"file://{place}").metadata_location)


def shipped(name: str) -> Tree:
    """Return a runtime of ours, with the lab's images and amounts that it has."""
    runtime: Tree = yaml.safe_load((REPOSITORY / f"runtimes/{name}.yaml").read_text())
    for step in steps(runtime):
        (container,) = step["containers"]
        container["image"] = images.name("cache") if "/cache:" in container["image"] else image("torch")
        container["resources"] = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    return runtime


def steps(runtime: Tree) -> list[Tree]:
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return [job["template"]["spec"]["template"]["spec"] for job in jobs]


def training(job: Tree, *words: str) -> Tree:
    """Return a TrainJob that trains `training.py` on the lab's torch, with what its image lacks mounted."""
    env = [{"name": "PYTHONPATH", "value": ":".join(f"/{name}" for name in PACKAGES)}]
    command = [*words, "--no-python", "python3", "-c", PROGRAM]
    job["spec"]["trainer"] = {**job["spec"].get("trainer", {}), "command": ["torchrun"], "args": command, "env": env}
    job["spec"].setdefault("runtimePatches", []).append(mounted("node", PACKAGES))
    return job


def mounted(step: str, folders: dict[str, Path], *, at: str = "/") -> Tree:
    """Return a patch that lets a step's container see folders of the node."""
    container = "node" if step == "node" else step
    mounts = [{"name": name, "mountPath": f"{at}{name}", "readOnly": True} for name in folders]
    volumes = [{"name": name, "hostPath": {"path": str(path)}} for name, path in folders.items()]
    pod = {"volumes": volumes, "containers": [{"name": container, "volumeMounts": mounts}]}
    change = {"name": step, "template": {"spec": {"template": {"spec": pod}}}}
    spec = {"template": {"spec": {"replicatedJobs": [change]}}}
    return {"manager": f"example.com/{step}", "trainingRuntimeSpec": spec}


def submit(user: User, job: Tree) -> None:
    """Create a TrainJob; Kueue refuses one whose runtime it has not seen yet, so ask again for a moment."""

    def accepted() -> bool:
        done = user.apply(job, check=False)
        assert done.code == 0 or "not found" in done.output, done.output
        return done.code == 0

    user.wait(f"Kueue to know the runtime of {job['metadata']['name']}", accepted)


def result(user: User, job: str) -> Tree:
    """Wait for the end of a TrainJob, and return what its training said."""
    user.wait_state(job, "Succeeded", via=["Queued", "Suspended", "Pending", "Running"])
    (line,) = (line for line in user.logs(job) if line.startswith("result "))
    found: Tree = json.loads(line.removeprefix("result "))
    return found


def remove(user: User, job: str) -> None:
    """Delete a TrainJob, and see everything of it go."""
    user.kubectl("delete", "trainjob", job, "--wait=false")
    kinds = ("jobsets", "pods", "services", "secrets")
    user.wait(
        f"all of {job} to go", lambda: not [one for kind in kinds for one in user.names(kind) if one.startswith(job)]
    )


def test_two_pods_read_every_row_once_and_the_trainjob_ends_without_the_cache(
    user: User, folder: str, report: SuiteReport
) -> None:
    """The page's example, in a queue: what Kueue charges for is what runs."""
    user.cluster.apply(shipped("torch-distributed-with-cache"))
    (text,) = (text for text in blocks(PAGE, "yaml") if "name: train-from-cache" in text)
    job = training(yaml.safe_load(text))
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
    job["spec"]["initializer"]["dataset"]["storageUri"] = folder
    submit(user, job)
    user.wait("the pods that train", lambda: len(user.pods("train-from-cache", "node")) == 2)
    running = {step: len(user.pods("train-from-cache", step)) for step in (CACHE, "node")}
    (workload,) = user.cluster.get(f"--namespace={user.namespace}", "workloads")["items"]
    charged = workload["status"]["admission"]["podSetAssignments"]
    assert {one["name"]: one["count"] for one in charged} == running == {CACHE: 1, "node": 2}
    assert {one["name"]: one["resourceUsage"]["cpu"] for one in charged} == {CACHE: "100m", "node": "200m"}

    told = result(user, "train-from-cache")
    assert (told["rows"], told["different"], told["ranks"]) == (ROWS, ROWS, [ROWS // 2, ROWS // 2])
    report.figure("wait_ms_per_step", told["wait_ms_per_step"])
    remove(user, "train-from-cache")


@needs_documents
def test_the_guides_runtime_serves_a_table_as_it_is_written(user: User, iceberg: tuple[Path, str]) -> None:
    """But for the image that trains, which nobody has."""
    (one,) = (one for one in statements() if one.id == "003-yaml-1")
    runtime = yaml.safe_load(indented(one.text))
    steps(runtime)[1]["containers"][0] |= {"image": image("torch"), "imagePullPolicy": "Never"}
    user.cluster.apply(runtime)
    place, metadata = iceberg
    env = [{"name": "METADATA_LOC", "value": metadata}, {"name": "CLUSTER_SIZE", "value": "3"}]
    spec: Tree = {
        "runtimeRef": {"name": runtime["metadata"]["name"]},
        "initializer": {"dataset": {"storageUri": "cache://schema_name/table_name", "env": env}},
        "runtimePatches": [mounted(CACHE, {"warehouse": place}, at=f"{place.parent}/")],
    }
    job: Tree = {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": "guide"}, "spec": spec}
    submit(user, training(job, "--standalone", "--nproc-per-node=2"))
    user.wait("the pods that serve", lambda: len(user.pods("guide", CACHE)) == 3)
    told = result(user, "guide")
    assert (told["rows"], told["different"]) == (ROWS, ROWS)
    remove(user, "guide")


@needs_documents
def test_the_guides_snippet_asks_for_a_cache_of_five_pods(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """With our module's name in its import line, and a function under the name that it uses."""
    user.cluster.apply(shipped("torch-distributed-with-cache"))
    monkeypatch.setenv("KUBECONFIG", str(user.cluster.kubeconfig))
    (one,) = (one for one in statements() if one.id == "003-python-1")
    names: Tree = {"my_train_func": _train}
    exec(one.text.replace("kubeflow.trainer", "trainplane"), names)  # noqa: S102 a document's own lines
    home = user.elsewhere("default")
    name = names["job_name"]
    home.wait("its JobSet", lambda: name in home.names("jobsets"))
    jobs = {job["name"]: job["template"]["spec"] for job in home.get("jobset", name)["spec"]["replicatedJobs"]}
    assert {step: spec["parallelism"] for step, spec in jobs.items()} == {CACHE: 5, "node": 8}
    (container,) = jobs[CACHE]["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["memory"] == "64Gi"
    home.kubectl("delete", "trainjob", name)


def _train() -> None:
    """What a user would train."""


def test_several_trainjobs_read_from_a_cache_that_is_one_of_its_own(user: User, folder: str) -> None:
    """The page's second example: it is counted by its nodes, and stays until it is deleted or nobody reads."""
    user.cluster.apply(shipped("data-cache"), shipped("torch-distributed-with-cache"))
    (text,) = (text for text in blocks(PAGE, "yaml") if "name: tables" in text)
    cache, job = yaml.safe_load_all(text)
    cache["spec"]["initializer"]["dataset"]["storageUri"] = folder
    runtime = shipped("torch-distributed")
    user.cluster.apply(runtime)
    submit(user, cache)
    submit(user, training(job))
    told = result(user, job["metadata"]["name"])
    assert (told["rows"], told["different"]) == (ROWS, ROWS)
    assert user.state("tables") == "Running"
    remove(user, job["metadata"]["name"])
    remove(user, "tables")
