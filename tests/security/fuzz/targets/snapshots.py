"""Snapshots of runtimes, which tenants can write: a runtime or an OperatorError, and what renders, or a reason."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from tests.security.fuzz import documents, schemas
from tests.security.fuzz.mutations import Mutator, encode
from tests.security.fuzz.target import Target
from tests.security.fuzz.targets.reviews import CaseClient
from trainplane.api import document, names
from trainplane.api.meta import ObjectMeta
from trainplane.api.trainjob import RuntimeRef, TrainJob
from trainplane.operator import yamltext
from trainplane.operator.apply import Writer
from trainplane.operator.errors import OperatorError
from trainplane.operator.runtimes import Runtimes, digest_of
from trainplane.operator.snapshot import Snapshots
from trainplane.operator.stores import Stores
from trainplane.render.errors import PluginFailedError, RenderError
from trainplane.render.pipeline import Pipeline
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

Tree = dict[str, Any]

_META: Final = ObjectMeta(name="job", namespace="team", uid="1-2-3")
_RUNTIME: Final = "torch-distributed"


class SnapshotTexts(Target):
    """YAML of snapshots."""

    name: ClassVar[str] = "snapshots"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        self._client = CaseClient()
        self._snapshots = Snapshots(self._client, Writer(self._client, lambda: True), Runtimes(self._client, Stores()))
        self._pipeline = Pipeline.default()
        self._schema = schemas.ours("clustertrainingruntimes")
        self._loop = asyncio.new_event_loop()
        self._ref = RuntimeRef(name=_RUNTIME)
        spec = {"runtimeRef": {"name": _RUNTIME}, "trainer": {"numNodes": 2}}
        job = {
            "apiVersion": names.API_VERSION,
            "kind": names.TRAIN_JOB,
            "metadata": {"name": "job", "namespace": "team", "uid": "1-2-3"},
            "spec": spec,
        }
        self._job = document.read(job, TrainJob)
        self._seeds = []
        for runtime in documents.shipped_runtimes():
            tree = {**runtime, "metadata": {**runtime["metadata"], "name": _RUNTIME}}
            self._seeds.append((msgspec.json.encode(tree), yamltext.dump(tree).encode()))

    def close(self) -> None:
        self._loop.close()

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        tree, text = mutator.pick(self._seeds)
        if mutator.chance(0.4):
            return mutator.bytes(text)
        return encode(mutator.tree(msgspec.json.decode(tree)))  # JSON is YAML

    def run(self, data: bytes) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        meta = {
            "name": names.snapshot_name("job"),
            "ownerReferences": [{"kind": names.TRAIN_JOB, "name": "job", "uid": "1-2-3", "controller": True}],
        }
        self._client.objects = {CONFIG_MAPS.plural: {"metadata": meta, "data": {names.SNAPSHOT_KEY: text}}}
        try:
            # With its own digest as the recorded one: what is looked at here is the text, not who wrote it.
            runtime = self._loop.run_until_complete(self._snapshots.recorded(_META, self._ref, digest_of(text)))
        except OperatorError:
            return "refused"
        try:
            self._pipeline.render(self._job, runtime)
        except PluginFailedError:
            # Only a text with the recorded digest is ever rendered, and that was a runtime that the schema let in.
            if not self._schema.problems(self._schema.admit(runtime.tree)):
                raise
            return "no runtime of a cluster's"
        except RenderError:
            return "does not render"
        return "renders"

    def seeds(self) -> Iterable[bytes]:
        """Return the shipped runtimes as snapshots keep them."""
        return [text for _, text in self._seeds]
