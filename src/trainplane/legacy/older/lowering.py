"""What objects of the older shape become: objects of today's API that they own, and are deleted with.

    TrainJob with a runtimeRef       a TrainJob of its name, on that runtime
    TrainJob without one             the same, and a TrainingRuntime made for it (`generated`)
    either kind of runtime           a runtime of the same kind

**Names.** A TrainJob keeps its name: pods, logs and addresses are called by it. Runtimes get names that begin with what
they are made for and a dot, so two of these never meet, and hardly one that somebody chose. An object of such a name
that belongs to somebody else is never taken over (`operator.legacy.older`).

**Which runtime.** `apiGroup: kubeflow.org` means a runtime of the older shape; where there is none of its kind and
name, today's, since documents write that group for both.

**Held back.** What a queue's TrainJob waits for is Kueue's to say, so `suspend` is handed on only without a queue.
Nothing is said of one that is not held back: server-side apply then takes back what was said before.
"""

from __future__ import annotations

import hashlib
import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.document import to_tree
from trainplane.api.legacy.v2alpha1 import ANNOTATION_CLAIM_STORAGE, API_VERSION
from trainplane.api.meta import owner
from trainplane.api.output import OutputUriError, read_output
from trainplane.api.trainjob import RuntimeRef
from trainplane.legacy.older.generated import judge_storage, runtime_spec
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.api.document import Document
    from trainplane.api.legacy import v2alpha1
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree

ANNOTATION_DIGEST: Final = "trainplane.dev/lowered"
"""On what an object became: the digest of what it was made from. While that is so, nothing is written again, and what
Kueue, admission or people change meanwhile is left to them."""
_GENERATED: Final = "v2alpha1-trainjob."
_RUNTIME: Final = "v2alpha1-runtime."
_KUBECTL: Final = "kubectl.kubernetes.io/"
_NOT_CARRIED: Final = frozenset({ANNOTATION_CLAIM_STORAGE, ANNOTATION_DIGEST})
_KINDS: Final = (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME)
_GROUPS: Final = (names.LEGACY_GROUP, names.GROUP)
_HANDED_ON: Final = ("podSpecOverrides", "labels", "annotations")

OlderRuntime: TypeAlias = "Document[v2alpha1.TrainingRuntime] | Document[v2alpha1.ClusterTrainingRuntime]"
Older: TypeAlias = "Document[v2alpha1.TrainJob] | OlderRuntime"


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a TrainJob becomes."""

    train_job: Tree
    runtime: Tree | None = None
    """The runtime that is made for it, if it names none."""


def generated_name(train_job: str) -> str:
    """Name the runtime of a TrainJob that names none."""
    return f"{_GENERATED}{train_job}"


def runtime_name(runtime: str) -> str:
    """Name what a runtime of the older shape becomes."""
    return f"{_RUNTIME}{runtime}"


def meant_by(runtime: str) -> tuple[str, ...]:
    """Return the names by which TrainJobs may mean one of today's runtimes: its own, and that of what it is made of."""
    return (runtime, runtime.removeprefix(_RUNTIME)) if runtime.startswith(_RUNTIME) else (runtime,)


def judge(job: Document[v2alpha1.TrainJob]) -> tuple[Finding, ...]:
    """Return why a TrainJob cannot be lowered; nothing if it can.

    The CRD's rules say most of it at the API server. A file, or an object stored under other rules, has not met them.
    """
    return tuple(_judge(job.view.spec, job.view.metadata.annotations))


def _judge(spec: v2alpha1.TrainJobSpec, annotations: Mapping[str, str]) -> Iterator[Finding]:
    trainer, model, ref = spec.trainer, spec.model_config, spec.runtime_ref
    if ref is not None and (ref.kind not in _KINDS or ref.api_group not in _GROUPS):
        kind = reprlib.repr(names.runtime_key(ref.api_group, ref.kind))
        yield Finding("spec.runtimeRef", f"{kind} is no kind of runtime: write kind {' or '.join(_KINDS)}")
    if ref is None:
        if not spec.nodes:
            yield Finding("spec.numNodes", "must say how many nodes train, unless there is a runtimeRef", "Required")
        for path, said in (
            ("image", trainer is not None and trainer.image),
            ("resourcesPerNode", trainer is not None and trainer.resources_per_node),
        ):
            if not said:
                yield Finding(f"spec.trainer.{path}", "must be said, unless there is a runtimeRef", "Required")
        wrong = judge_storage(annotations)
        if wrong is not None:
            yield wrong
    if trainer is not None and trainer.num_nodes not in {None, spec.nodes}:
        yield Finding("spec.trainer.numNodes", f"is {trainer.num_nodes} and spec.numNodes {spec.nodes}: keep one")
    if model is not None and model.output is not None:
        try:
            read_output(model.output.storage_uri)
        except OutputUriError as error:
            yield Finding("spec.modelConfig.output.storageUri", str(error))


def settled(ref: v2alpha1.RuntimeRef, *, is_older: bool) -> RuntimeRef:
    """Return today's runtime that a runtimeRef means; `is_older` says that there is one of the older shape."""
    older = is_older and ref.api_group == names.LEGACY_GROUP
    return RuntimeRef(name=runtime_name(ref.name) if older else ref.name, kind=ref.kind)


def lower_train_job(job: Document[v2alpha1.TrainJob], ref: RuntimeRef | None, *, initializers: str) -> Lowered:
    """Return what a TrainJob becomes.

    Args:
        job: a TrainJob that `judge` has nothing against.
        ref: the runtime that it is on; None if it names none, and one is made.
        initializers: the image that fetches data, for that runtime.
    """
    view, spec = job.view, job.view.spec
    runtime = None
    if ref is None:
        ref = RuntimeRef(name=generated_name(view.metadata.name), kind=names.TRAINING_RUNTIME)
        made = runtime_spec(spec, view.metadata.annotations, initializers=initializers)
        place = {"name": ref.name, "namespace": view.metadata.namespace, "labels": {names.LABEL_FRAMEWORK: "torch"}}
        runtime = _owned(job, {"kind": ref.kind, "metadata": place, "spec": made})
    lowered: Tree = {"runtimeRef": {"apiGroup": names.GROUP, "kind": ref.kind, "name": ref.name}}
    lowered |= {name: part for name, part in (("initializer", _initializer(job)), ("trainer", _trainer(job))) if part}
    given = trees.fields(job.tree, "spec")
    lowered |= {name: given[name] for name in _HANDED_ON if given.get(name)}
    if spec.suspend and names.LABEL_QUEUE not in view.metadata.labels:
        lowered["suspend"] = True
    if spec.managed_by == names.MANAGED_BY_MULTIKUEUE:
        lowered["managedBy"] = spec.managed_by
    carried = _carried(view.metadata)
    carried["annotations"] |= _output(spec)
    meta = {"name": view.metadata.name, "namespace": view.metadata.namespace, **carried}
    return Lowered(_owned(job, {"kind": names.TRAIN_JOB, "metadata": meta, "spec": lowered}), runtime)


def lower_runtime(runtime: OlderRuntime) -> Tree:
    """Return what a runtime of either kind becomes: its spec under today's apiVersion."""
    view = runtime.view
    meta = {"name": runtime_name(view.metadata.name), **_carried(view.metadata)}
    if view.metadata.namespace:
        meta["namespace"] = view.metadata.namespace
    return _owned(runtime, {"kind": view.kind, "metadata": meta, "spec": trees.fields(runtime.tree, "spec")})


def digest_of(tree: Tree) -> str | None:
    """Return the digest that was left on what an object became; None if there is none."""
    return trees.text(tree, "metadata", "annotations", ANNOTATION_DIGEST)


def _owned(by: Older, body: Tree) -> Tree:
    """Return an object that another owns, under today's apiVersion, with the digest of what it was made from."""
    given = {**_carried(by.view.metadata), "spec": by.tree.get("spec")}
    digest = hashlib.sha256(msgspec.json.encode(given, order="deterministic")).hexdigest()
    meta = {
        **body["metadata"],
        "annotations": {**body["metadata"].get("annotations", {}), ANNOTATION_DIGEST: digest},
        "ownerReferences": [to_tree(owner(API_VERSION, by.view.kind, by.view.metadata))],
    }
    return {"apiVersion": names.API_VERSION, **body, "metadata": meta}


def _carried(meta: ObjectMeta) -> Tree:
    """Return the labels and annotations that go with an object: all but what is kubectl's, or ours."""
    annotations = {
        name: value
        for name, value in meta.annotations.items()
        if name not in _NOT_CARRIED and not name.startswith(_KUBECTL)
    }
    return {"labels": dict(meta.labels), "annotations": annotations}


def _trainer(job: Document[v2alpha1.TrainJob]) -> Tree:
    nodes = job.view.spec.nodes
    return trees.fields(job.tree, "spec", "trainer") | ({} if nodes is None else {"numNodes": nodes})


def _initializer(job: Document[v2alpha1.TrainJob]) -> Tree:
    """Return what is fetched; a model is named by `config` or `storageUri`."""
    parts: Tree = {}
    spec = job.view.spec
    if spec.dataset_config is not None:
        parts["dataset"] = trees.fields(job.tree, "spec", "datasetConfig")
    if spec.model_config is not None and spec.model_config.input is not None:
        model = dict(trees.fields(job.tree, "spec", "modelConfig", "input"))
        model.pop("config", None)
        if spec.model_config.input.uri is not None:
            model["storageUri"] = spec.model_config.input.uri
        parts["model"] = model
    return parts


def _output(spec: v2alpha1.TrainJobSpec) -> dict[str, str]:
    """Return the annotations by which today's TrainJob says where what it trained is sent."""
    output = None if spec.model_config is None else spec.model_config.output
    if output is None:
        return {}
    secret = trees.text(output.secret_ref, "name")
    return {names.ANNOTATION_OUTPUT: output.storage_uri} | ({names.ANNOTATION_OUTPUT_SECRET: secret} if secret else {})
