"""Every look that the operator takes at a TrainJob and its runtime, each from bytes to bytes, with what it costs.

The operator's own handlers and pipeline, fed with what an API server would send. The API server itself, and the
network, are left out: a look is CPU and memory from one await to the next.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import yaml

from tests.unit.operator.world import World
from trainplane.api import document
from trainplane.api.errors import DecodeError
from trainplane.api.trainjob import TrainJob
from trainplane.kube.admission import AdmissionRequest, AdmissionReview, Verdict, encode_answer
from trainplane.operator import yamltext
from trainplane.operator.apply import would_change
from trainplane.operator.errors import OperatorError
from trainplane.operator.runtimes import decode as decode_runtime
from trainplane.operator.runtimes import read as read_runtime
from trainplane.operator.webhooks import (
    MUTATE_CLUSTER_TRAINING_RUNTIME,
    MUTATE_TRAIN_JOB,
    VALIDATE_CLUSTER_TRAINING_RUNTIME,
    VALIDATE_TRAIN_JOB,
    Webhooks,
)
from trainplane.render.errors import RenderError
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.security.grown import Tree

PIPELINE = Pipeline(plugin() for plugin in (*FRAMEWORKS, *COMMON))

Looks: TypeAlias = "dict[str, Callable[[], Any]]"


@dataclass(frozen=True)
class Scene:
    """A TrainJob, what it was before, its runtime and what that was, as the API server has them."""

    new: Tree
    old: Tree
    runtime: Tree
    old_runtime: Tree


class Stage:
    """The operator's webhooks and pipeline around one scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._world = World(pipeline=PIPELINE)
        self._world.put(CLUSTER_TRAINING_RUNTIMES, scene.runtime)
        self._world.sync()
        world = self._world
        self._routes = Webhooks(world.client, world.runtimes, world.snapshots, PIPELINE, world.clock).routes()
        jobset = self._rendered(scene.old)
        if jobset is not None:
            self._world.put(JOB_SETS, {**jobset, "metadata": {**jobset["metadata"], "uid": "uid-jobset"}})

    def looks(self) -> Looks:
        """Return every look by its name."""
        scene = self._scene
        job, runtime = msgspec.json.encode(scene.new), msgspec.json.encode(scene.runtime)
        before, former = msgspec.json.encode(scene.old), msgspec.json.encode(scene.old_runtime)
        text = yamltext.dump(scene.runtime)
        return {
            "default a new TrainJob": lambda: self._ask(MUTATE_TRAIN_JOB, job),
            "judge a new TrainJob": lambda: self._ask(VALIDATE_TRAIN_JOB, job),
            "default a changed TrainJob": lambda: self._ask(MUTATE_TRAIN_JOB, job, before),
            "judge a changed TrainJob": lambda: self._ask(VALIDATE_TRAIN_JOB, job, before),
            "default a runtime": lambda: self._ask(MUTATE_CLUSTER_TRAINING_RUNTIME, runtime),
            "judge a new runtime": lambda: self._ask(VALIDATE_CLUSTER_TRAINING_RUNTIME, runtime),
            "judge a changed runtime": lambda: self._ask(VALIDATE_CLUSTER_TRAINING_RUNTIME, runtime, former),
            "keep a runtime": lambda: self._keep(runtime),
            "restore a runtime": lambda: self._restore(text),
            "render a TrainJob": lambda: self._render(job, runtime),
        }

    def _ask(self, path: str, new: bytes, old: bytes | None = None) -> Verdict:
        body = _review(new, old)
        request: AdmissionRequest = msgspec.json.decode(body, type=AdmissionReview).request
        verdict = asyncio.run(self._judge(path, request))
        encode_answer(request.uid, verdict)
        return verdict

    async def _judge(self, path: str, request: AdmissionRequest) -> Verdict:
        answer = self._routes[path](request)
        return answer if isinstance(answer, Verdict) else await answer

    def _keep(self, data: bytes) -> None:
        try:
            msgspec.json.encode(yamltext.dump(decode_runtime(data, "ClusterTrainingRuntime").tree))
        except OperatorError:
            return

    def _restore(self, text: str) -> None:
        try:
            read_runtime(yamltext.load(text), "ClusterTrainingRuntime")
        except (yaml.YAMLError, OperatorError):
            return

    def _render(self, job: bytes, runtime: bytes) -> None:
        try:
            rendering = PIPELINE.render(
                document.decode(job, TrainJob), decode_runtime(runtime, "ClusterTrainingRuntime"), begins=True
            )
        except (DecodeError, RenderError, OperatorError):
            return
        for rendered in rendering.objects:
            msgspec.json.encode(rendered.tree)
        would_change(_applied(rendering.jobset.tree), rendering.jobset.tree, "trainer")

    def _rendered(self, job: Tree) -> Tree | None:
        try:
            made = PIPELINE.render(
                document.decode(msgspec.json.encode(job), TrainJob),
                decode_runtime(msgspec.json.encode(self._scene.runtime), "ClusterTrainingRuntime"),
            )
        except (DecodeError, RenderError, OperatorError):
            return None
        return made.jobset.tree


def costs(scene: Scene) -> Iterator[tuple[str, float]]:
    """Yield each look with the seconds of CPU that it took."""
    for name, look in Stage(scene).looks().items():
        start = time.process_time()
        look()
        yield name, time.process_time() - start


def _review(new: bytes, old: bytes | None) -> bytes:
    meta = msgspec.json.decode(new)["metadata"]
    request = {
        "uid": "1",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"kind": msgspec.json.decode(new)["kind"]},
        "name": meta["name"],
        "namespace": meta.get("namespace", ""),
        "object": msgspec.Raw(new),
        "oldObject": msgspec.Raw(old or b"null"),
    }
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def _applied(body: Tree) -> Tree:
    """Return an object as the API server has it once it was applied: with all of its fields marked as ours."""
    entry = {"manager": "trainer", "operation": "Apply", "fieldsV1": _fields(body)}
    return {**body, "metadata": {**body["metadata"], "managedFields": [entry]}}


def _fields(tree: Any) -> Tree:
    if isinstance(tree, dict):
        return {f"f:{key}": _fields(value) for key, value in tree.items()}
    if isinstance(tree, list) and all(isinstance(entry, dict) and "name" in entry for entry in tree):
        return {"k:" + msgspec.json.encode({"name": entry["name"]}).decode(): _fields(entry) for entry in tree}
    return {}
