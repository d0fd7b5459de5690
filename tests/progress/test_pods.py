"""Real pods report: the official SDK unchanged, our own, and those who may not."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lab import trainplane
from lab.paths import REPOSITORY
from tests.e2e.shell import WAITING
from tests.progress import loop, watched
from tests.sdk.kubernetes.stage import PATIENCE, runtime, train_job
from tests.size import FULL
from trainplane.api import names
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.options import Name
from trainplane.client.types.trainers import CustomTrainer
from trainplane.kube.pki import CertificatePolicy, renew
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport
    from trainplane.client.types.jobs import TrainJob

OFFICIAL = REPOSITORY / "build/official-sdk"
_POST = """
import json, os, ssl, sys, urllib.error, urllib.request
url, token = sys.argv[1] or os.environ["KUBEFLOW_TRAINER_SERVER_URL"], sys.argv[2]
if token.startswith("/"):
    token = open(token).read().strip()
body = json.dumps({"trainerStatus": {"progressPercentage": 7, "lastUpdatedTime": "2026-01-01T00:00:00Z"}}).encode()
headers = {"Authorization": "Bearer " + token} if token else {}
context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
try:
    print(urllib.request.urlopen(urllib.request.Request(url, body, headers), context=context, timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
MOST_WATCH_MB = 40
_MINE = "/var/run/secrets/kubeflow/trainer/token"


async def shown(stage: Stage, name: str, holds: Callable[[TrainJob], Any]) -> TrainJob:
    """Wait until a TrainJob is shown so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            job = await stage.backend.get_job(name)
            if holds(job):
                return job
            await asyncio.sleep(0.3)


async def pod_of(stage: Stage, name: str) -> str:
    (pod,) = await stage.client.list_all(PODS, stage.namespace, labels={"jobset.sigs.k8s.io/jobset-name": name})
    found: str = pod["metadata"]["name"]
    return found


async def post(stage: Stage, pod: str, url: str = "", token: str = _MINE) -> int:
    """Report from a pod, and return the code of the answer."""
    command = ["python3", "-c", _POST, url, token]
    result = await stage.client.exec(stage.namespace, pod, command, container="node", timeout_seconds=30)
    return int(result.stdout)


async def test_the_official_sdk_reports_unchanged(stage: Stage) -> None:
    program = (
        "from kubeflow.trainer import update_trainjob_status as say\n"
        "print('sent', say(progress_percent=40, estimated_remaining_seconds=60, metrics={'loss': 0.5, 'epoch': 2}))\n"
    )
    folders = [sys.base_prefix, str(OFFICIAL)]  # its Python with all that it needs, as they are on this machine
    volumes = [{"name": f"sdk-{n}", "hostPath": {"path": path}} for n, path in enumerate(folders)]
    mounts = [{"name": f"sdk-{n}", "mountPath": path, "readOnly": True} for n, path in enumerate(folders)]
    shell = f"{OFFICIAL}/bin/python -c {shlex.quote(program)}; {WAITING}"
    stage.apply(runtime("official", shell, volumes=volumes, container={"volumeMounts": mounts}))
    await stage.backend.submit(train_job("official", "official"))
    job = await shown(stage, "official", lambda job: job.progress)
    assert job.progress is not None
    assert (job.progress.percent, job.progress.remaining_seconds) == (40, 60)
    assert job.progress.metrics == {"loss": "0.5", "epoch": "2"}
    await stage.tell("official")
    await stage.wait("official", "Complete")
    assert [line.text for line in await stage.logs("official")] == ["sent True"]
    managers = stage.cluster.get("trainjob", "official", f"--namespace={stage.namespace}", "--show-managed-fields")
    wrote = {one["manager"]: one for one in managers["metadata"]["managedFields"]}["trainer-status"]
    assert wrote["operation"] == "Apply"
    assert wrote["fieldsV1"]["f:status"].keys() == {"f:trainerStatus"}


async def test_our_own_sdk_reports_and_the_last_word_stays(stage: Stage) -> None:
    stage.apply(runtime("plain", "true"))
    client = AsyncTrainerClient(backend=stage.backend)
    await client.train("plain", trainer=CustomTrainer(loop.train), options=[Name("ours")])
    assert (await client.wait_for_job_status("ours", timeout=PATIENCE)).status == "Complete"
    assert [line.text for line in await stage.logs("ours")] == [
        *("step 1 True", "step 2 False", "step 3 False", "step 4 True"),
    ]
    job = await shown(stage, "ours", lambda job: job.progress and job.progress.percent == 100)
    assert job.progress is not None
    assert job.progress.metrics == {"step": "4", "loss": "0.25"}
    # Its beginning is kept at once, its end a moment after the last report is in the status.
    await shown(
        stage, "ours", lambda job: [value for _, value in job.metrics_history.get("progress", ())][-1:] == [100]
    )


async def test_the_timeline_is_told_when_all_else_is_gone(stage: Stage, report: SuiteReport) -> None:
    stage.apply(runtime("plain", "true"))
    client = AsyncTrainerClient(backend=stage.backend)
    await client.train("plain", trainer=CustomTrainer(loop.train), options=[Name("lived")])
    assert (await client.wait_for_job_status("lived", timeout=PATIENCE)).status == "Complete"
    stage.cluster.kubectl("delete", "jobset", "lived", f"--namespace={stage.namespace}")
    job = await shown(stage, "lived", lambda job: not job.steps)
    assert [one.stage for one in job.timeline] == ["Scheduled", "Pulled", "Running", "FirstStep", "Succeeded"]
    times = [job.creation_timestamp, *(one.time for one in job.timeline)]
    assert times == sorted(times)
    kept = stage.cluster.get("trainjob", "lived", f"--namespace={stage.namespace}")["status"]["timeline"]
    assert [one["stage"] for one in kept] == [one.stage for one in job.timeline]
    report.figure("timeline_bytes", len(json.dumps(kept, separators=(",", ":"))))


async def test_who_may_not_report(stage: Stage) -> None:
    stage.apply(runtime("shell", WAITING))
    for name in ("mine", "theirs"):
        await stage.backend.submit(train_job(name))
        await stage.wait(name, "Running")
    mine, theirs = [await pod_of(stage, name) for name in ("mine", "theirs")]
    result = await stage.client.exec(stage.namespace, theirs, ["cat", _MINE], container="node")
    stolen = result.stdout.decode()
    where = (await stage.client.exec(stage.namespace, theirs, ["printenv", "KUBEFLOW_TRAINER_SERVER_URL"])).stdout
    their_url = where.decode().strip()
    assert await post(stage, mine) == 200
    assert await post(stage, mine, token="") == 401
    assert await post(stage, mine, token="not.a.token") == 401
    header, payload, signature = stolen.split(".")
    assert await post(stage, mine, their_url, f"{header}.{payload}.{signature[::-1]}") == 401
    assert await post(stage, mine, their_url) == 403
    assert await post(stage, mine, token=stolen) == 403
    assert await post(stage, mine, token="/var/run/secrets/kubernetes.io/serviceaccount/token") == 403
    unbound = stage.cluster.kubectl(
        *("create", "token", "default", f"--namespace={stage.namespace}"),
        f"--audience=trainer.kubeflow.org/v1alpha1/namespaces/{stage.namespace}/trainjobs/mine/status",
    )
    assert await post(stage, mine, token=unbound.stdout.strip()) == 403
    assert (await stage.backend.get_job("theirs")).progress is None
    await stage.client.delete(PODS, theirs, stage.namespace)
    async with asyncio.timeout(PATIENCE):
        while not stage.cluster.kubectl("get", "pod", theirs, f"--namespace={stage.namespace}", check=False).code:  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.3)
    # Its pod is gone. That the token was a good one may be remembered for a minute; that the pod is there only until
    # the operator hears that it is gone.
    async with asyncio.timeout(PATIENCE):
        while (code := await post(stage, mine, their_url, stolen)) == 200:  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.3)
    assert code in {401, 403}


async def test_ten_thousand_pods_are_watched_with_little_memory(stage: Stage, report: SuiteReport) -> None:
    """Ten thousand copies of a real pod, each changed once, in a mirror of their own."""
    stage.apply(runtime("shell", WAITING))
    await stage.backend.submit(train_job("watched"))
    await stage.wait("watched", "Running")
    pod = await stage.client.get(PODS, await pod_of(stage, "watched"), stage.namespace)
    pod["metadata"] |= {"name": "POD-NAME", "resourceVersion": "VERSION"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, watched.__file__, "10000", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate(json.dumps(pod).encode())
    cost = json.loads(printed)
    report.figure("watch_mb_10k_pods", cost["mb"])
    report.figure("watch_us_per_change", cost["us_per_change"])
    assert cost["mb"] < MOST_WATCH_MB


async def test_a_new_authority_reaches_a_trainjob_that_runs(stage: Stage) -> None:
    stage.apply(runtime("shell", WAITING))
    await stage.backend.submit(train_job("trusts"))
    await stage.wait("trusts", "Running")
    pod = await pod_of(stage, "trusts")
    assert await post(stage, pod) == 200
    file = stage.cluster.folder / f"{trainplane.ENGINE}-certs" / "ca.crt"
    material, _ = renew(None, CertificatePolicy((trainplane.SERVICE,)), datetime.now(UTC))
    bundle = material.ca_crt + file.read_bytes()
    file.write_bytes(bundle)

    def trusted() -> str:
        found = stage.cluster.get("configmap", names.STATUS_CA_CONFIG_MAP, f"--namespace={stage.namespace}")
        text: str = found["data"]["ca.crt"]
        return text

    async with asyncio.timeout(PATIENCE):
        while trusted() != bundle.decode():  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.5)
        while FULL:  # the kubelet brings it within a minute or two
            read = await stage.client.exec(stage.namespace, pod, ["cat", f"{_MINE.removesuffix('token')}ca.crt"])
            if read.stdout == bundle:
                break
            await asyncio.sleep(1)
    assert await post(stage, pod) == 200
