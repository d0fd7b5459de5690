"""Bombs in objects: small to write, and once as dear to read as hours and gigabytes.

Each is sent to the real webhook server, a process of its own under a memory limit. It must answer, refuse with a code
and words that are the user's and not "the webhook failed", at most half a second of its CPU and 64 MB of its memory
later; and whoever comes next is served.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.security.grown import job, runtime, train_job
from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Iterator

Tree = dict[str, Any]

SECONDS = 0.5
"""Of the server's CPU, for one review."""
SLOW = 2.0
"""How much longer it may take on a machine that is busy, or slower than ours: shared caches make CPU time longer."""
MEGABYTES = 64.0
PATIENCE = 20.0
"""Seconds to wait for an answer: an attack that works takes minutes."""
TICKS = 100.0
MUTATE = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
VALIDATE = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
MUTATE_RUNTIME = "/mutate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
VALIDATE_RUNTIME = "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
AUTHOR = "whoever may create a TrainJob"
ADMIN = "whoever may create a runtime in a namespace"
WRITER = "whoever may write ConfigMaps"
MOST = 2**31 - 1


@dataclass
class Answer:
    """What became of a review."""

    status: int
    response: Tree
    seconds: float
    megabytes: float

    @property
    def allowed(self) -> bool:
        return bool(self.response.get("allowed"))

    @property
    def code(self) -> int:
        return int(self.response.get("status", {}).get("code", 0))

    @property
    def message(self) -> str:
        return str(self.response.get("status", {}).get("message", ""))


class Webhook:
    """The webhook's process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.security.webhook_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert self._process.stdout is not None
        self._port, self._behind = map(int, self._process.stdout.readline().split())
        self._proc = Path(f"/proc/{self._process.pid}")
        self.hurt = False
        """Whether an attack worked: then the next one gets another process."""

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def put(self, tree: Tree) -> None:
        """Put an object where the webhook reads from."""
        self._post(self._behind, "/put", json.dumps(tree).encode())

    def reconcile(self, name: str) -> tuple[Tree, float, float]:
        """Let the operator look at a TrainJob; return what came of it, with seconds of CPU and megabytes."""
        (_, body), seconds, megabytes = self._measured(self._behind, "/reconcile", json.dumps({"name": name}).encode())
        return json.loads(body), seconds, megabytes

    def review(self, path: str, new: Tree | bytes, old: Tree | None = None) -> Answer:
        """Send a review."""
        text = new if isinstance(new, bytes) else json.dumps(new, separators=(",", ":")).encode()
        head = {"uid": "1-2-3", "kind": {"kind": "TrainJob"}, "name": "job", "namespace": "team"}
        head["operation"] = "CREATE" if old is None else "UPDATE"
        request = json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"object":' + text
        if old is not None:
            request += b',"oldObject":' + json.dumps(old, separators=(",", ":")).encode()
        body = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":' + request + b"}}"
        (status, answer), seconds, megabytes = self._measured(self._port, path, body)
        response = json.loads(answer)["response"] if status == http.HTTPStatus.OK else {}
        return Answer(status, response, seconds, megabytes)

    def _measured(self, port: int, path: str, body: bytes) -> tuple[tuple[int, bytes], float, float]:
        (self._proc / "clear_refs").write_text("5")  # the high-water mark of memory begins anew
        seconds, megabytes = self._cpu(), self._memory("VmRSS")
        answer = self._post(port, path, body)
        return answer, self._cpu() - seconds, max(0.0, self._memory("VmHWM") - megabytes)

    def _post(self, port: int, path: str, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _cpu(self) -> float:
        fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def _memory(self, name: str) -> float:
        lines = (self._proc / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


@pytest.fixture(scope="module")
def processes() -> Iterator[list[Webhook]]:
    """Hold the process that is in use."""
    running: list[Webhook] = []
    yield running
    for one in running:
        one.stop()


@pytest.fixture
def webhook(processes: list[Webhook]) -> Iterator[Webhook]:
    """Return the webhook, alive and unhurt; afterwards an honest TrainJob is served as ever."""
    if processes and processes[-1].hurt:
        processes.pop().stop()
    if not processes:
        processes.append(Webhook())
    server = processes[-1]
    server.hurt = True
    yield server
    honest = server.review(VALIDATE, train_job("torch-distributed", trainer={"numNodes": 4}))
    assert (honest.allowed, honest.message) == (True, "")
    server.hurt = False


def refused(answer: Answer, *words: str) -> None:
    """Check that a bomb was refused, in words, at little cost."""
    assert answer.status == http.HTTPStatus.OK
    assert not answer.allowed
    assert answer.code in {403, 422}, answer.message[:2000]
    for word in words:
        assert word in answer.message[:4000]
    cheap(answer)


def cheap(answer: Answer) -> None:
    """Check that a review cost little, whatever came of it."""
    assert answer.status == http.HTTPStatus.OK
    assert answer.code < http.HTTPStatus.INTERNAL_SERVER_ERROR, answer.message[:2000]
    assert len(answer.message) < 64 << 10
    assert answer.seconds <= SECONDS * SLOW
    assert answer.megabytes <= MEGABYTES


def entries(count: int, prefix: str = "a", **fields: Any) -> list[Tree]:
    return [{"name": f"{prefix}{n}", **fields} for n in range(count)]


def pods(name: str = "node", **pod: Any) -> Tree:
    return {"name": name, "template": {"spec": {"template": {"spec": pod}}}}


def patch(*jobs: Tree, manager: str = "example.com/a") -> Tree:
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": list(jobs)}}}}


# --- counts


@pytest.mark.attack(AUTHOR, "no more reviews for anyone: lists of two thousand million nodes")
@pytest.mark.parametrize("name", ["deepspeed-distributed", "tensorflow-distributed", "flux-distributed"])
@pytest.mark.parametrize("nodes", [MOST, 2_000_000, 100_000])
def test_nodes_without_end(webhook: Webhook, name: str, nodes: int) -> None:
    answer = webhook.review(VALIDATE, train_job(name, trainer={"numNodes": nodes}))
    refused(answer, "spec.trainer.numNodes", "32768", "limits.podsPerTrainJob")


@pytest.mark.attack(AUTHOR, "a hostfile larger than a ConfigMap holds, built again at each try")
def test_a_hostfile_that_no_configmap_holds(webhook: Webhook) -> None:
    long = {**train_job("deepspeed-distributed", trainer={"numNodes": 32_000})}
    long["metadata"] = {**long["metadata"], "name": "a" * 30}
    refused(webhook.review(VALIDATE, long), "spec.trainer.numNodes", "hostfile", "ConfigMap")


@pytest.mark.attack(AUTHOR, "an operator that never gets past a TrainJob which was stored before there were bounds")
@pytest.mark.parametrize("name", ["deepspeed-distributed", "tensorflow-distributed"])
def test_nodes_without_end_that_are_stored_already(webhook: Webhook, name: str) -> None:
    webhook.put(train_job(name, trainer={"numNodes": MOST}))
    found, seconds, megabytes = webhook.reconcile("job")
    assert not found["jobset"]
    assert any("spec.trainer.numNodes" in message or "pods" in message for message in found["messages"])
    assert seconds <= SECONDS * SLOW
    assert megabytes <= MEGABYTES


@pytest.mark.attack(ADMIN, "a JobSet controller with two thousand million Jobs to make")
@pytest.mark.parametrize(
    "fields",
    [
        {"replicas": MOST},
        {"template": {"spec": {"parallelism": MOST, "template": {"spec": {"containers": [{"name": "a"}]}}}}},
    ],
    ids=["replicas", "parallelism"],
)
def test_a_runtime_with_pods_without_end(webhook: Webhook, fields: Tree) -> None:
    bomb = runtime(job("node", "trainer"), job("more", **fields), name="bomb")
    refused(webhook.review(VALIDATE_RUNTIME, bomb), "pods", "limits.podsPerTrainJob")
    webhook.put(bomb)  # stored before there were bounds
    refused(webhook.review(VALIDATE, train_job("bomb")), "pods", "limits.podsPerTrainJob")


@pytest.mark.attack(AUTHOR, "a review of a runtime's annotations that takes the time of everybody's")
@pytest.mark.parametrize("count", [12_000, 2000])
def test_a_runtime_with_annotations_without_end(webhook: Webhook, count: int) -> None:
    bomb = runtime(job("node", "trainer"), name="bomb")
    bomb["metadata"]["annotations"] = {f"a{number}": "b" for number in range(count)}
    bomb["spec"]["mlPolicy"] = {"mpi": {"mpiImplementation": "IntelMPI"}}
    cheap(webhook.review(MUTATE_RUNTIME, bomb))


# --- lists searched in lists


@pytest.mark.attack(AUTHOR, "nine seconds of everybody's time for 300 KB of variables")
@pytest.mark.parametrize("count", [16_000, 6000, 2000])
def test_variables_by_the_thousand(webhook: Webhook, count: int) -> None:
    cheap(webhook.review(VALIDATE, train_job("torch-distributed", trainer={"env": entries(count)})))


@pytest.mark.attack(AUTHOR, "eight seconds of everybody's time for 300 KB of overrides, before the schema is asked")
@pytest.mark.parametrize("count", [8000, 3000])
def test_overrides_by_the_thousand(webhook: Webhook, count: int) -> None:
    override = {"targetJobs": [{"name": "node"}]}
    bomb = train_job(podSpecOverrides=[{**override, "volumes": entries(count, one)} for one in "ab"])
    cheap(webhook.review(MUTATE, bomb))
    many = train_job(podSpecOverrides=[{**override, "volumes": entries(1, f"v{n}")} for n in range(count // 3)])
    cheap(webhook.review(MUTATE, many))


@pytest.mark.attack(AUTHOR, "patches that are compared with each other one by one")
@pytest.mark.parametrize("field", ["volumes", "tolerations", "schedulingGates", "containers", "imagePullSecrets"])
def test_patches_by_the_thousand(webhook: Webhook, field: str) -> None:
    have = job("node", "trainer")
    have["template"]["spec"]["template"]["spec"][field] = [{"name": "node"}, *entries(7000)]
    webhook.put(runtime(have, name="wide"))
    changed: Tree = {field: entries(7000)}
    changes = patch(pods(**changed), manager=names.PATCH_MANAGER_KUEUE)
    bomb = train_job("wide", trainer={"resourcesPerNode": {"requests": {"cpu": "1"}}}, runtimePatches=[changes])
    cheap(webhook.review(MUTATE, bomb))
    cheap(webhook.review(VALIDATE, bomb))
    cheap(webhook.review(VALIDATE, bomb, train_job("wide")))


@pytest.mark.attack(ADMIN, "sidecars that are added up again for each of them")
def test_sidecars_by_the_thousand(webhook: Webhook) -> None:
    have = job("node", "trainer")
    sidecar: Tree = {"restartPolicy": "Always"}
    have["template"]["spec"]["template"]["spec"]["initContainers"] = [
        {"name": f"s{n}", "resources": {"requests": {f"r{n}": "1"}}, **sidecar} for n in range(2500)
    ]
    webhook.put(runtime(have, name="sidecars", podGroupPolicy={"volcano": {}}))
    cheap(webhook.review(VALIDATE, train_job("sidecars")))


# --- little said, much made


@pytest.mark.attack(AUTHOR, "gigabytes of answer: one large override for each of thousands of jobs")
def test_an_override_for_thousands_of_jobs(webhook: Webhook) -> None:
    targets = [{"name": f"j{n}"} for n in range(4000)]
    for override in ({"volumes": entries(4000)}, {"nodeSelector": {"a": "x" * 700_000}}):
        bomb = train_job(podSpecOverrides=[{"targetJobs": targets, **override}])
        refused(webhook.review(MUTATE, bomb), "spec.podSpecOverrides", "targetJobs")


@pytest.mark.attack(AUTHOR, "a JobSet a thousand times as large as the TrainJob")
@pytest.mark.parametrize(
    "spec",
    [
        {"trainer": {"env": entries(5000)}},
        {"trainer": {"args": ["x" * 1_000_000]}},
        {"trainer": {"resourcesPerNode": {"requests": {f"r{n}": "1" for n in range(10_000)}}}},
        {
            "runtimePatches": [
                {
                    "manager": names.PATCH_MANAGER_OLDER_FIELDS,
                    "trainingRuntimeSpec": {
                        "template": {"metadata": {"labels": dict.fromkeys(map(str, range(9000)), "")}}
                    },
                }
            ]
        },
        {"initializer": {"dataset": {"storageUri": "hf://a/b", "env": entries(5000)}}},
    ],
    ids=["variables", "arguments", "resources", "metadata", "initializer"],
)
def test_one_word_for_each_of_a_thousand_jobs(webhook: Webhook, spec: Tree) -> None:
    parts = ("trainer", "dataset-initializer")
    jobs = [job(f"job-{n}", parts[n % 2]) for n in range(900)]
    webhook.put(runtime(job("node", "trainer"), *jobs, name="broad"))
    bomb = train_job("broad", **spec)
    bomb["metadata"] = {**bomb["metadata"], "labels": {names.LABEL_QUEUE: "q"}}
    cheap(webhook.review(MUTATE, bomb))
    refused(webhook.review(VALIDATE, bomb), "comes to a JobSet of more than")


@pytest.mark.attack(AUTHOR, "a long name written out anew for each of thousands of fields")
def test_a_long_name_above_many_fields(webhook: Webhook) -> None:
    jobs = [pods(f"job-{n}", tolerations=[{"key": "a"}]) for n in range(1000)]
    webhook.put(runtime(job("node", "trainer"), *(job(f"job-{n}") for n in range(1000)), name="long"))
    bomb = train_job("long", trainer={"resourcesPerNode": {"requests": {"cpu": "1"}}})
    bomb["metadata"] = {**bomb["metadata"], "labels": {names.LABEL_QUEUE: "q"}}
    bomb["spec"]["runtimePatches"] = [patch(*jobs, manager="m" * 1_000_000)]
    cheap(webhook.review(MUTATE, bomb))
    cheap(webhook.review(VALIDATE, bomb))


@pytest.mark.attack(AUTHOR, "a refusal of gigabytes: every fault told with the list of all that would be right")
def test_thousands_of_faults(webhook: Webhook) -> None:
    webhook.put(runtime(job("node", "trainer"), *(job(f"job-{n}") for n in range(1000)), name="many"))
    bomb = train_job("many", runtimePatches=[patch(*(pods(f"none-{n}") for n in range(2000)))])
    answer = webhook.review(VALIDATE, bomb)
    refused(answer, "the runtime has no replicated job of this name", "and perhaps more")


# --- forms that cost more than they look


def nested(depth: int, inner: bytes = b"") -> bytes:
    text = json.dumps(train_job("torch-distributed", trainer={"args": ["@"]}), separators=(",", ":")).encode()
    return text.replace(b'"@"', b"[" * depth + inner + b"]" * depth)


@pytest.mark.attack(AUTHOR, "an end by recursion")
@pytest.mark.parametrize("depth", [300, 450, 900, 9900, 100_000])
@pytest.mark.parametrize("path", [MUTATE, VALIDATE])
def test_nesting_without_end(webhook: Webhook, path: str, depth: int) -> None:
    answer = webhook.review(path, nested(depth))
    cheap(answer)
    assert answer.response["uid"] == "1-2-3"
    if path == VALIDATE:
        assert not answer.allowed


@pytest.mark.attack(AUTHOR, "seventy megabytes of empty lists out of three of text")
@pytest.mark.parametrize("inner", [b"[],", b"{},", b"0,", b'"",'], ids=["lists", "objects", "numbers", "texts"])
def test_a_million_of_nothing(webhook: Webhook, inner: bytes) -> None:
    refused(webhook.review(MUTATE, nested(1, inner * (2_900_000 // len(inner)) + b"0")), "values", "16384")


@pytest.mark.attack(AUTHOR, "hours of arithmetic with numbers of a million digits")
@pytest.mark.parametrize("digits", [b"9" * 1_000_000, b"9" * 4000, b"1e999999", b"0." + b"1" * 1_000_000])
@pytest.mark.parametrize("field", ["numNodes", "numProcPerNode", "resourcesPerNode"])
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["number", "text"])
def test_numbers_of_a_million_digits(webhook: Webhook, field: str, digits: bytes, quote: bytes) -> None:
    value: Any = {"requests": {"cpu": "@"}} if field == "resourcesPerNode" else "@"
    bomb = train_job("torch-distributed", trainer={field: value})
    bomb["metadata"] = {**bomb["metadata"], "labels": {names.LABEL_QUEUE: "q"}}
    text = json.dumps(bomb).encode().replace(b'"@"', quote + digits + quote)
    cheap(webhook.review(MUTATE, text))
    cheap(webhook.review(VALIDATE, text))


# --- the snapshot


def aliases(levels: int = 8) -> str:
    """Return a runtime's spec that a few lines make of ten to the power of their number."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    node = json.dumps(job("node", "trainer"))[:-1]
    return f"spec:\n  template:\n    spec:\n      replicatedJobs:\n      - {node},\n" + "".join(
        f"        {line}{',' if line is not lines[-1] else '}'}\n" for line in lines
    )


SNAPSHOTS = {
    "aliases": aliases(),
    "nesting": "spec: " + "[" * 400_000,
    "base 60": "spec: 1" + ":1" * 400_000,
    "directives": "".join(f"%TAG !e{n}! tag:x,2000:\n" for n in range(35_000)) + "---\n",
    "lists": "spec: [" + "[]," * 340_000 + "]",
    "digits": "spec: " + "9" * 1_000_000,
}


@pytest.mark.attack(WRITER, "the operator's memory, its time or its end, by a text in the place of a snapshot")
@pytest.mark.parametrize("bomb", SNAPSHOTS.values(), ids=SNAPSHOTS.keys())
def test_a_bomb_for_a_snapshot(webhook: Webhook, bomb: str) -> None:
    head = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: torch-distributed}\n"
    )
    kept = train_job("torch-distributed", trainer={"numNodes": 2})
    webhook.put(snapshot(kept, bomb if bomb.startswith("%") else head + bomb))
    webhook.put({**kept, "metadata": {**kept["metadata"], "generation": 1}})
    found, seconds, megabytes = webhook.reconcile("job")
    assert seconds <= SECONDS * SLOW, found
    assert megabytes <= MEGABYTES
    edited = {**kept, "spec": {**kept["spec"], "runtimePatches": [patch(pods(nodeSelector={"a": "b"}))]}}
    for path in (MUTATE, VALIDATE):
        cheap(webhook.review(path, edited, kept))
    webhook.put(snapshot(kept, head))


@pytest.mark.attack(WRITER, "an operator that goes round in a circle: two jobs of one name, each waiting for the other")
def test_a_circle_in_a_snapshot(webhook: Webhook) -> None:
    waits = {"dependsOn": [{"name": "node", "status": "Ready"}]}
    circle = runtime(
        *(job("node", "trainer"), job("node", "trainer", **waits)),
        name="torch-distributed",
        podGroupPolicy={"coscheduling": {}},
    )
    kept = train_job("torch-distributed", trainer={"numNodes": 2})
    webhook.put(snapshot(kept, json.dumps(circle)))
    webhook.put({**kept, "metadata": {**kept["metadata"], "generation": 1}})
    _, seconds, _ = webhook.reconcile("job")
    assert seconds <= SECONDS * SLOW


def snapshot(kept: Tree, text: str) -> Tree:
    owner = {"apiVersion": names.API_VERSION, "kind": "TrainJob", "name": "job", "uid": "uid-job", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.snapshot_name("job"),
            "namespace": kept["metadata"]["namespace"],
            "uid": "uid-snapshot",
            "ownerReferences": [owner],
        },
        "data": {names.SNAPSHOT_KEY: text},
    }
