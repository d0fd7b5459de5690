"""What is trained in real pods arrives, or the TrainJob says why not; under the tenant's and operator's own rights."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.shell import WAITING
from tests.sdk.kubernetes.stage import PATIENCE, runtime, train_job
from tests.unit.initializers.versity import KEY, SECRET
from trainplane.api import names
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.errors import RefusedError, TrainplaneError
from trainplane.client.options import Name
from trainplane.client.types.outputs import Output
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.initializers.outputs.conftest import Site

MANIFEST = "trainplane-output.json"
CHECKPOINT = "trainplane-checkpoint.json"
WRITE = 'mkdir -p "$OUTPUT_DIR/step-1"; head -c 3000000 /dev/urandom > "$OUTPUT_DIR/step-1/weights.bin"'
_ASK = """
import os, ssl, sys, urllib.error, urllib.request
url = os.environ["KUBEFLOW_TRAINER_SERVER_URL"].removesuffix("status").replace(*sys.argv[1].split(":")) + "training"
token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read().strip()
context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token})
try:
    print(urllib.request.urlopen(request, context=context, timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
"""


async def until(holds: Callable[[], Any]) -> Any:
    """Wait until something holds, and return it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = holds()
            if found:
                return found
            await asyncio.sleep(0.1)


def listed(folder: Path) -> dict[str, str]:
    """Return what a manifest lists, by path, after it was compared with the files beside it."""
    manifest = json.loads((folder / MANIFEST).read_text())
    found = {file["path"]: file["sha256"] for file in manifest["files"]}
    for path, digest in found.items():
        assert hashlib.sha256((folder / path).read_bytes()).hexdigest() == digest
    return found


async def submit(site: Site, name: str, output: Output) -> None:
    client = AsyncTrainerClient(backend=site.stage.backend)
    await client.train("shell", options=[Name(name)], output=output)


def status(site: Site, name: str) -> dict[str, Any]:
    """Return a TrainJob's status; good news comes after a moment."""
    found: dict[str, Any] = site.stage.cluster.get("trainjob", name, f"--namespace={site.stage.namespace}")
    return found.get("status", {})  # type: ignore[no-any-return] # a tree


def conditions(site: Site, name: str) -> list[tuple[str, str, str]]:
    return [(one["type"], one["status"], one["reason"]) for one in status(site, name).get("conditions", ())]


async def test_checkpoints_go_while_two_nodes_train_and_all_of_it_at_the_end(site: Site, tmp_path: Path) -> None:
    stage = site.stage
    two = runtime("shell", f"{WRITE}; {WAITING}; echo done > $OUTPUT_DIR/model.txt; ln -s model.txt $OUTPUT_DIR/last")
    two["spec"]["mlPolicy"]["numNodes"] = 2
    stage.apply(two, runtime("other", WAITING))
    await submit(site, "sends", Output(site.uri("sends"), "store"))
    await stage.backend.submit(train_job("bystander", "other"))
    folder = site.arrived("sends")
    await until((folder / "step-1" / CHECKPOINT).exists)
    await stage.wait("sends", "Running")
    await stage.wait("bystander", "Running")
    assert not (folder / MANIFEST).exists(), "there is more to come"
    # A sender that had ended in the second pod would leave that pod unready.
    await until(lambda: status(site, "sends").get("nodesReady") == "2/2")
    assert not conditions(site, "sends")
    (waiting,) = (await stage.backend.get_job("sends")).outputs
    assert (waiting.state, waiting.uri) == ("Waiting", site.uri("sends"))
    client = AsyncTrainerClient(backend=stage.backend)
    with pytest.raises(RefusedError, match="Waiting"):
        await client.download_output("sends", tmp_path)
    await attacked(site)

    await stage.tell("sends")
    done = await stage.wait("sends", "Complete", "Failed")
    assert done.status == "Complete", done.cause
    assert conditions(site, "sends")[-2:] == [
        ("OutputSent", "True", "OutputSent"),
        ("Complete", "True", "AllJobsCompleted"),
    ]
    assert listed(folder).keys() == {"step-1/weights.bin", "model.txt", "last"}
    manifest = (folder / MANIFEST).read_bytes()
    (output,) = done.outputs
    assert (output.state, output.files) == ("Sent", 3)
    assert output.digest == f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    told = json.loads(manifest)["provenance"]
    assert (told["namespace"], told["trainJob"], told["runtime"]["name"]) == (stage.namespace, "sends", "shell")
    keys = {"ENDPOINT": site.store.endpoint, "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1"}
    mine = await client.download_output("sends", tmp_path / "mine", keys)
    assert listed(mine) == listed(folder)
    (folder / "model.txt").write_text("replaced\n")
    with pytest.raises(TrainplaneError, match=r"differs|Changed|Checksum"):
        await client.download_output("sends", tmp_path / "again", keys)


async def attacked(site: Site) -> None:
    """Try what a tenant may not, while the training runs."""
    stage = site.stage
    for change in ({"trainplane.dev/output": "s3://elsewhere/x"}, {"trainplane.dev/output": None}):
        with pytest.raises(RefusedError, match="Create another TrainJob"):
            await stage.backend.patch_job("sends", {"metadata": {"annotations": change}})
    labels = {"jobset.sigs.k8s.io/jobset-name": "bystander"}
    (pod,) = await stage.client.list_all(PODS, stage.namespace, labels=labels)

    async def ask(path: str) -> str:
        command = ["python3", "-c", _ASK, path]
        result = await stage.client.exec(
            stage.namespace, pod["metadata"]["name"], command, container="node", timeout_seconds=30
        )
        return result.stdout.decode().strip()

    assert json.loads(await ask("nothing:nothing")) == {"training": "running"}
    assert await ask("/bystander/:/sends/") == "403", "a token of another TrainJob's pod"


async def test_a_claim_is_as_good_as_a_bucket(site: Site) -> None:
    folder = site.claim("models")
    site.stage.apply(runtime("shell", f"{WRITE}; umask 077; echo secret > $OUTPUT_DIR/model.txt"))
    await submit(site, "kept", Output("pvc://models/mine", "store"))
    done = await site.stage.wait("kept", "Complete", "Failed")
    assert done.status == "Complete", done.cause
    assert listed(folder / "mine").keys() == {"step-1/weights.bin", "model.txt"}


async def test_a_bucket_that_denies_fails_the_job_and_nothing_trains_twice(site: Site) -> None:
    stage = site.stage
    site.secret("wrong", ACCESS_KEY_ID=KEY, SECRET_ACCESS_KEY="not-this-key-at-all", SETTLE_SECONDS="1")
    retried = runtime("shell", f"{WRITE}; echo once", restartPolicy="OnFailure")
    retried["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 3}
    stage.apply(retried)
    await submit(site, "denied", Output(site.uri("denied"), "wrong"))
    done = await stage.wait("denied", "Complete", "Failed")
    assert done.status == "Failed"
    assert conditions(site, "denied")[-2:] == [
        ("OutputSent", "False", "OutputNotSent"),
        ("Failed", "True", "OutputNotSent"),
    ]
    assert done.cause is not None
    assert done.cause.kind == "OutputNotSent"
    assert "Denied" in done.cause.message
    (output,) = done.outputs
    assert (output.state, "Denied" in output.message) == ("NotSent", True)
    assert not (site.arrived("denied") / MANIFEST).exists()
    labels = {"jobset.sigs.k8s.io/jobset-name": "denied"}
    (pod,) = await stage.client.list_all(PODS, stage.namespace, labels=labels)
    assert [one["restartCount"] for one in pod["status"]["containerStatuses"]] == [0, 0]
    assert "not-this-key-at-all" not in json.dumps(pod["status"])


async def test_what_is_stopped_in_mid_training_goes_on_and_loses_nothing(site: Site) -> None:
    stage = site.stage
    site.claim("work")
    program = (
        'if [ -e "$OUTPUT_DIR/step-1" ]; then mkdir "$OUTPUT_DIR/step-2"; echo two > "$OUTPUT_DIR/step-2/weights.bin"; '
        f"else {WRITE}; sleep 1000; fi"
    )
    mounts = {"volumeMounts": [{"name": "work", "mountPath": "/workspace"}]}
    volume = {"name": "work", "persistentVolumeClaim": {"claimName": "work"}}
    stage.apply(runtime("shell", program, container=mounts, volumes=[volume]))
    await submit(site, "stopped", Output(site.uri("stopped"), "store"))
    folder = site.arrived("stopped")
    await until((folder / "step-1" / CHECKPOINT).exists)
    sent = (folder / "step-1" / "weights.bin").stat().st_mtime_ns
    client = AsyncTrainerClient(backend=stage.backend)
    await client.suspend_job("stopped")
    labels = {"jobset.sigs.k8s.io/jobset-name": "stopped"}
    async with asyncio.timeout(PATIENCE):
        while await stage.client.list_all(PODS, stage.namespace, labels=labels):  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.2)
    await client.resume_job("stopped")
    done = await stage.wait("stopped", "Complete", "Failed")
    assert done.status == "Complete", done.cause
    assert listed(folder).keys() == {"step-1/weights.bin", "step-2/weights.bin"}
    assert (folder / "step-1" / "weights.bin").stat().st_mtime_ns == sent, "what is there is not sent again"


async def test_a_training_that_fails_fails_at_once_and_says_nothing_of_output(site: Site) -> None:
    stage = site.stage
    stage.apply(runtime("shell", f"{WRITE}; exit 3"))
    await submit(site, "broken", Output(site.uri("broken"), "store"))
    done = await stage.wait("broken", "Complete", "Failed")
    assert done.status == "Failed"
    assert done.cause is not None
    assert done.cause.exit_code == 3
    assert names.OUTPUT_SENT not in {kind for kind, _, _ in conditions(site, "broken")}
    assert not (site.arrived("broken") / MANIFEST).exists()
