"""What a dispatched TrainJob trained is where it was to go before its worker's copy is deleted."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from lab import node
from lab.engines import binary
from lab.images import reference
from tests.fleet import objects
from tests.fleet.api import Api
from tests.unit.initializers.versity import KEY, SECRET, Store, serving
from trainplane.client.reading.outputs import read_outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from lab.fleet import Fleet
    from tests.fleet.hub.stage import Seen

PORT = 7070
RUNTIME = "sends-output"
PROGRAM = (
    'mkdir "$OUTPUT_DIR/step-1" && head -c 5000000 /dev/urandom | tee "$OUTPUT_DIR/step-1/w" > "$OUTPUT_DIR/model"'
)


@pytest.fixture
def store(viewed_fleet: Fleet, real_worker: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return an S3 server beside the worker's pods, which have the sender's image; the runtime is on all clusters."""
    node.give(real_worker, "initializers")
    runtime = objects.runtime(RUNTIME, image=reference("python"))
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    pod |= {"nodeSelector": {"kubernetes.io/hostname": node.NAME}, "tolerations": [objects.REAL]}
    pod["containers"][0] |= {"imagePullPolicy": "Never", "command": ["bash", "-c", PROGRAM]}
    for cluster in viewed_fleet.clusters:
        Api(cluster).apply(runtime)
    with serving(tmp_path_factory.mktemp("versitygw")) as served:
        command = [binary("versitygw"), "--port", f"0.0.0.0:{PORT}", "--quiet", "posix", str(served.root)]
        keys = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        real_worker.start("versitygw", list(map(str, command)), keys)
        yield served
        real_worker.kill("versitygw")


def test_the_output_is_there_when_the_hub_says_complete_and_the_workers_copy_is_gone(seen: Seen, store: Store) -> None:
    team = seen.team
    worker = team.cluster("worker1")
    keys = {"ENDPOINT": f"http://{worker.address}:{PORT}", "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}
    meta = {"name": "store", "namespace": team.namespace}
    worker.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {**keys, "REGION": "us-east-1"}}
    )
    uri = f"s3://bucket/{team.namespace}"
    annotations = {"trainplane.dev/output": uri, "trainplane.dev/output-secret": "store"}
    team.submit_seen("sends", runtime=RUNTIME, cpu="100m", annotations=annotations)
    found: dict[str, Any] = {}

    def over() -> bool:
        job = team.job("sends")
        found.update(job or {})
        return bool(job and {"Complete", "Failed"} & {one["type"] for one in _true(job)})

    team.wait("sends to end on the hub", over)
    folder = store.root / "bucket" / team.namespace
    manifest = (folder / "trainplane-output.json").read_bytes()
    assert [one["type"] for one in _true(found)][-2:] == ["OutputSent", "Complete"], found["status"]["conditions"]
    team.wait("the worker's copy to go", lambda: team.job("sends", on="worker1") is None)
    for file in json.loads(manifest)["files"]:
        assert hashlib.sha256((folder / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    (output,) = read_outputs(found)
    assert (output.state, output.files, output.bytes) == ("Sent", 2, 10_000_000)
    assert output.digest == f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    shown = seen.tree("sends")["status"]
    assert {one["type"] for one in shown["conditions"]} >= {"OutputSent", "Complete"}


def _true(job: dict[str, Any]) -> list[dict[str, Any]]:
    conditions = (job.get("status") or {}).get("conditions") or []
    return [one for one in conditions if one["status"] == "True"]
