"""Admission reviews, as the API server sends them: mutate, apply the patch, validate, and render what was accepted.

The reviews go over a socket to the operator's own webhook server with its own routes. What the schema refuses goes only
to the mutating webhook, which runs before it; what is accepted must render, and be a JobSet by JobSet's schema.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import msgspec

from tests.security.fuzz import documents, schemas
from tests.security.fuzz.errorlog import ErrorLog
from tests.security.fuzz.mutations import Mutator, copied, encode
from tests.security.fuzz.target import BrokenPromiseError, Target
from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.trainjob import TrainJob
from trainplane.kube.client import Client
from trainplane.kube.codec import decode
from trainplane.kube.errors import NotFoundError
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.resource import Key
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.patches import json_patch
from trainplane.kube.webhook import WebhookServer
from trainplane.operator.apply import Writer
from trainplane.operator.errors import RuntimeUnsupportedError
from trainplane.operator.runtimes import Runtimes
from trainplane.operator.snapshot import Snapshots
from trainplane.operator.stores import Stores
from trainplane.operator.webhooks import (
    MUTATE_TRAIN_JOB,
    PATHS,
    VALIDATE_CLUSTER_TRAINING_RUNTIME,
    VALIDATE_TRAIN_JOB,
    VALIDATE_TRAINING_RUNTIME,
    Webhooks,
)
from trainplane.render.errors import PluginFailedError, RenderError
from trainplane.render.pipeline import Pipeline
from trainplane.resources import JOB_SETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from trainplane.kube.resource import Resource
    from trainplane.render.plan import Runtime

Tree = dict[str, Any]

NAMESPACE: Final = "team"
FUZZED: Final = "fuzzed"
"""The name of a case's own runtime."""


class Answer(NamedTuple):
    """What the webhook said."""

    status: int
    body: bytes

    @property
    def response(self) -> Tree:
        """The verdict."""
        found: Tree = msgspec.json.decode(self.body)["response"]
        return found


class CaseClient(Client):
    """The API server as far as a webhook asks it: the objects of a case, and nothing else."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def permitted(self, permit: Callable[[], None]) -> CaseClient:  # noqa: ARG002 nothing is written
        """Return itself."""
        return self

    async def get(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Any:  # noqa: ARG002 the client's
        found = self.objects.get(resource.plural)
        if found is None:
            raise NotFoundError(f"{resource.plural} {name!r} not found")
        return decode(encode(found), options.get("type_", dict))


class Webhook:
    """The operator's webhook server on a socket, the shipped runtimes in its mirrors."""

    def __init__(self) -> None:
        self.client = CaseClient()
        self.stores = Stores()
        self.pipeline = Pipeline.default()
        self.runtimes = Runtimes(self.client, self.stores)
        clock = FakeClock()
        snapshots = Snapshots(self.client, Writer(self.client, lambda: True), self.runtimes)
        routes = Webhooks(self.client, self.runtimes, snapshots, self.pipeline, clock).routes()
        self.loop = asyncio.new_event_loop()
        self._server = WebhookServer(routes, ListenerSettings(0, "127.0.0.1"))
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._errors = ErrorLog()
        self._version = 1
        self.loop.run_until_complete(self._server.listener.start())
        for runtime in documents.shipped_runtimes():
            self.put(runtime)

    def put(self, runtime: Tree) -> None:
        """Let the mirrors show a runtime."""
        is_own = runtime["kind"] == names.TRAINING_RUNTIME
        store = self.stores.training_runtimes if is_own else self.stores.cluster_training_runtimes
        self._version += 1
        metadata = {**runtime["metadata"], "resourceVersion": str(self._version), "uid": "1"}
        store.put(store.read(msgspec.Raw(encode({**runtime, "metadata": metadata}))))

    def forget(self) -> None:
        """Let there be no runtime of a case's own: a case must not see another's."""
        self._version += 1
        self.stores.training_runtimes.remove(Key(NAMESPACE, FUZZED), self._version)
        self.stores.cluster_training_runtimes.remove(Key("", FUZZED), self._version)

    def ask(self, path: str, body: bytes) -> Answer:
        """Post a body; raises what the server logged as its own fault."""
        answer = self.loop.run_until_complete(self._ask(path, body))
        self._errors.check()
        if answer.status >= 500:
            raise BrokenPromiseError(f"{path} answered {answer.status}: {answer.body[:200]!r}")
        return answer

    def review(self, path: str, new: Any, old: Any = None, *, kind: str = names.TRAIN_JOB, name: str = "job") -> Tree:
        """Ask for a verdict as the API server does; returns the response."""
        request = {
            "uid": "0f9d",
            "kind": {"group": names.GROUP, "version": "v1alpha1", "kind": kind},
            "operation": "CREATE" if old is None else "UPDATE",
            "name": name,
            "namespace": NAMESPACE,
            "userInfo": {"username": "somebody"},
            "object": new,
            "oldObject": old,
        }
        answer = self.ask(
            path, encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        )
        if answer.status != 200:
            raise BrokenPromiseError(f"{path} answered {answer.status}: {answer.body[:200]!r}")
        return judged(answer.response)

    def close(self) -> None:
        """Stop the server."""
        self._errors.close()
        if self._streams is not None:
            self._streams[1].close()
        self.loop.run_until_complete(self._server.listener.stop())
        self.loop.close()

    async def _ask(self, path: str, body: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._server.listener.port, limit=1 << 26)
        reader, writer = self._streams
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
            answer = Answer(int(lines[0].split()[1]), await reader.readexactly(int(headers["content-length"])))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            self._streams = None
            raise BrokenPromiseError(f"{path}: the connection broke without an answer") from error
        if headers.get("connection") == "close":
            writer.close()
            self._streams = None
        return answer


def judged(response: Tree) -> Tree:
    """Return a verdict that is one; raises for what says that the webhook itself failed."""
    status = response.get("status") or {}
    message = str(status.get("message"))
    if status.get("code", 200) >= 500 or " broke (" in message:
        raise BrokenPromiseError(message[:400])
    return response


def patched(tree: Any, response: Tree) -> Any:
    """Return an object with the patch of a verdict applied."""
    if "patch" not in response:
        return tree
    return json_patch(tree, msgspec.json.decode(base64.b64decode(response["patch"])))


class Reviews(Target):
    """TrainJobs and runtimes, made from the schemas and the examples."""

    name: ClassVar[str] = "reviews"
    cases: ClassVar[int] = 220_000

    def __init__(self) -> None:
        self.webhook = Webhook()
        self._jobs = [msgspec.json.encode(tree) for tree in documents.train_jobs()]
        self._runtimes = [msgspec.json.encode(tree) for tree in documents.runtimes()]
        self._names = [tree["metadata"]["name"] for tree in documents.shipped_runtimes()]
        self._job_schema = schemas.ours("trainjobs")
        self._trainer_schema = self._job_schema.below("spec", "trainer")
        pods = (
            "spec",
            "runtimePatches",
            "trainingRuntimeSpec",
            "template",
            "spec",
            "replicatedJobs",
            "template",
            "spec",
        )
        self._pod_schema = self._job_schema.below(*pods, "template")
        self._runtime_schema = schemas.ours("trainingruntimes")
        self._jobset_schema = schemas.jobset()
        self.accepted: list[Tree] = []
        """Objects rendered from the last case that was accepted."""

    def close(self) -> None:
        self.webhook.close()

    # -- inputs

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        if mutator.chance(0.15):
            case: Tree = {"object": self._runtime(mutator, valid=mutator.chance(0.6))}
            if mutator.chance(0.4):
                case["old"] = self._runtime(mutator, valid=True)
            return encode(case)
        case = {"object": self._job(mutator)}
        if case["object"]["spec"]["runtimeRef"].get("name") == FUZZED:
            case["runtime"] = self._runtime(mutator, valid=True)
        if mutator.chance(0.3):
            case["old"] = copied(case["object"])
            self._change(mutator, case["object"])
            if mutator.chance(0.4):
                case["jobset"] = {"metadata": {"name": "job", "namespace": NAMESPACE}, "spec": {"suspend": True}}
        if mutator.chance(0.4):
            part = mutator.pick(("spec", "spec", "spec", "object", "old"))
            if part == "spec":
                case["object"]["spec"] = mutator.tree(case["object"]["spec"])
            elif part in case:
                case[part] = mutator.tree(case[part])
        return encode(case)

    def _job(self, mutator: Mutator) -> Tree:
        """Return a TrainJob that the schema lets through, with fields that it may have."""
        job: Tree = msgspec.json.decode(mutator.pick(self._jobs))
        spec = job["spec"]
        job["metadata"] = {**job["metadata"], "name": "job", "namespace": NAMESPACE}
        if mutator.chance(0.95):
            kind = mutator.pick((names.CLUSTER_TRAINING_RUNTIME, names.TRAINING_RUNTIME))
            name = FUZZED if kind == names.TRAINING_RUNTIME else mutator.pick(self._names)
            spec["runtimeRef"] = {"kind": kind, "name": name}
        if mutator.chance(0.2):
            job["metadata"]["labels"] = {names.LABEL_QUEUE: "queue"}
        if mutator.chance(0.05):
            job["metadata"]["annotations"] = {names.ANNOTATION_RUNTIME_KIND: names.RUNTIME_KIND_ANY}
        if mutator.chance(0.4):
            spec["suspend"] = True
        for _ in range(mutator.below(3)):
            self._job_schema.grow(job, mutator)
        if mutator.chance(0.5):
            spec.setdefault("trainer", {})
            self._trainer_schema.grow(spec["trainer"], mutator)
        if mutator.chance(0.4):
            self._patch(mutator, spec)
        return job

    def _patch(self, mutator: Mutator, spec: Tree) -> None:
        """Add an entry that patches the pods of a job which most runtimes have."""
        pod: Tree = {"spec": {}}
        target = mutator.pick(("node", "node", "node", "launcher", "dataset-initializer"))
        for _ in range(mutator.few()):
            self._pod_schema.grow(pod, mutator)
        job = {"name": target, "template": {"spec": {"template": pod}}}
        entry = {"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
        patches = spec.setdefault("runtimePatches", [])
        if isinstance(patches, list):
            patches.append(entry)

    def _change(self, mutator: Mutator, job: Tree) -> None:
        """Change a stored TrainJob as users and Kueue do, and then as the schema lets anybody."""
        kind = mutator.below(4)
        if kind == 0:
            job["spec"]["suspend"] = not job["spec"].get("suspend")
        elif kind == 1:
            self._patch(mutator, job["spec"])
        elif kind == 2:
            job["metadata"]["labels"] = {"touched": "yes"}
        else:
            self._job_schema.grow(job, mutator)

    def _runtime(self, mutator: Mutator, *, valid: bool) -> Tree:
        runtime: Tree = msgspec.json.decode(mutator.pick(self._runtimes))
        own = mutator.chance(0.7)
        runtime["kind"] = names.TRAINING_RUNTIME if own else names.CLUSTER_TRAINING_RUNTIME
        runtime["metadata"]["name"] = FUZZED
        if own:
            runtime["metadata"]["namespace"] = NAMESPACE
        for _ in range(mutator.below(5)):
            self._runtime_schema.grow(runtime, mutator)
        if not valid:
            runtime = mutator.tree(runtime)
        return runtime

    # -- what is done with them

    def run(self, data: bytes) -> str:
        try:
            case = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no case"
        if not isinstance(case, dict):
            return "no case"
        self.accepted = []
        new = case.get("object")
        if isinstance(new, dict) and new.get("kind") in (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME):
            return self._review_runtime(new, case.get("old"))
        return self._review_job(new, case)

    def _review_runtime(self, new: Tree, old: Any) -> str:
        new = self._runtime_schema.admit(new)
        if not _is_named(new) or self._runtime_schema.problems(new):
            return "schema"
        if old is not None:
            old = self._runtime_schema.admit(old)
            if not _is_named(old) or self._runtime_schema.problems(old):
                old = None
        path = VALIDATE_TRAINING_RUNTIME if new["kind"] == names.TRAINING_RUNTIME else VALIDATE_CLUSTER_TRAINING_RUNTIME
        response = self.webhook.review(path, new, old, kind=new["kind"], name=FUZZED)
        return "runtime accepted" if response["allowed"] else "runtime refused"

    def _review_job(self, new: Any, case: Tree) -> str:
        self._prepare(case)
        old = self._stored(case.get("old"))
        new = self._job_schema.admit(new)
        response = self.webhook.review(MUTATE_TRAIN_JOB, new, old)
        if not response["allowed"]:
            return "no object"
        stored = self._job_schema.admit(patched(new, response))
        again = self.webhook.review(MUTATE_TRAIN_JOB, stored, old)
        if not again["allowed"] or self._job_schema.admit(patched(stored, again)) != stored:
            raise BrokenPromiseError("defaulting what was defaulted changes it again")
        if not _is_named(stored) or self._job_schema.problems(stored, old):
            return "schema"
        response = self.webhook.review(VALIDATE_TRAIN_JOB, stored, old)
        if not response["allowed"]:
            return "update refused" if old else "refused"
        return self._render(stored, old)

    def _prepare(self, case: Tree) -> None:
        """Let the cluster be as the case says."""
        self.webhook.client.objects = {JOB_SETS.plural: case.get("jobset")}
        self.webhook.forget()
        runtime = case.get("runtime")
        if isinstance(runtime, dict):
            runtime = self._runtime_schema.admit(runtime)
            if _is_named(runtime) and not self._runtime_schema.problems(runtime):
                self.webhook.put(runtime)

    def _stored(self, old: Any) -> Tree | None:
        """Return an object as it may be stored: whatever the schema lets through, older forms among them."""
        if not isinstance(old, dict):
            return None
        old = self._job_schema.admit(old)
        return old if _is_named(old) and not self._job_schema.problems(old) else None

    def _render(self, job: Tree, old: Tree | None) -> str:
        ref = document.read(job, TrainJob).view.spec.runtime_ref
        try:
            found = self.webhook.loop.run_until_complete(self.webhook.runtimes.find(ref, NAMESPACE))
        except RuntimeUnsupportedError:
            found = None
        if found is None:
            if old is None:
                raise BrokenPromiseError("accepted without a runtime")
            return "update without runtime"
        if old is not None and not self._renders(old, found.document):
            return "update of what does not render"
        rendering = self.webhook.pipeline.render(document.read(job, TrainJob), found.document)
        for rendered in rendering.objects:
            msgspec.json.encode(rendered.tree)
            trees.get(rendered.tree, "metadata", "name")
        self.accepted = [rendered.tree for rendered in rendering.objects]
        problems = self._jobset_schema.problems(rendering.jobset.tree)
        if problems:
            raise BrokenPromiseError(f"accepted, and renders what is no JobSet: {problems[0][:300]}")
        return "rendered" if old is None else "update rendered"

    def _renders(self, old: Tree, runtime: Runtime) -> bool:
        """Return whether what is stored becomes a JobSet: an update is judged for what it changes."""
        try:
            rendering = self.webhook.pipeline.render(document.read(old, TrainJob), runtime)
        except PluginFailedError:
            raise
        except (RenderError, ValueError):
            return False
        return not self._jobset_schema.problems(rendering.jobset.tree)

    def seeds(self) -> Iterable[bytes]:
        """Return one case for each TrainJob that is shown."""
        for job in self._jobs:
            yield b'{"object":' + job + b"}"


def _is_named(tree: Any) -> bool:
    """Return whether the metadata is what the API server lets through: it reads it itself, whatever a CRD says."""
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return False
    return (
        all(
            isinstance(metadata.get(field, {}), dict)
            and all(isinstance(value, str) for value in metadata.get(field, {}).values())
            for field in ("labels", "annotations")
        )
        and metadata.get("namespace", NAMESPACE) == NAMESPACE
    )


class ReviewBytes(Target):
    """Bodies that are no review, or hardly: raw bytes to every path of the webhook server."""

    name: ClassVar[str] = "review-bytes"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        self.webhook = Webhook()
        self._seeds = [self._review(job) for job in documents.train_jobs()]

    def close(self) -> None:
        self.webhook.close()

    def _review(self, job: Tree) -> bytes:
        request = {
            "uid": "1",
            "kind": {"group": names.GROUP, "version": "v1alpha1", "kind": job["kind"]},
            "operation": "CREATE",
            "name": "job",
            "namespace": NAMESPACE,
            "object": job,
        }
        return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        seed = mutator.pick(self._seeds)
        if mutator.chance(0.5):
            return encode(mutator.tree(msgspec.json.decode(seed)))
        return mutator.bytes(seed)

    def run(self, data: bytes) -> str:
        statuses = set()
        for path in (PATHS[0], PATHS[1 + len(data) % 3], PATHS[4 + len(data) % 2]):
            answer = self.webhook.ask(path, data)
            statuses.add(answer.status)
            if answer.status == 200 and path.startswith("/mutate"):
                judged(answer.response)
        return f"{min(statuses)}"

    def seeds(self) -> Iterable[bytes]:
        """Return the reviews of the shown TrainJobs."""
        return self._seeds
