"""Runtimes: what an admin offers, or, of a TrainJob whose runtime nobody has read, what its pods tell of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.errors import InvalidError
from trainplane.client.reading.devices import read_devices
from trainplane.client.types.runtimes import UNKNOWN, Runtime, RuntimeKind, RuntimeTrainer, TrainerType
from trainplane.explain.pods import container_of, index_of, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.tree import Tree

TORCHTUNE: Final = "torchtune"
_POLICIES: Final = ("torch", "mpi", "jax", "xgboost", "flux")
_POD: Final = ("template", "spec", "template", "spec")
_MARKS: Final = (
    (names.TORCH_NNODES, "torch"),
    (names.JAX_NUM_PROCESSES, "jax"),
    (names.XGBOOST_TRACKER_URI, "xgboost"),
    (names.TENSORFLOW_CONFIG, names.FRAMEWORK_TENSORFLOW),
    (names.PADDLE_MASTER, names.FRAMEWORK_PADDLE),
    (names.FLUX_VIEW_IMAGE, "flux"),
)


def read_runtime(doc: Tree) -> Runtime:
    """Return a TrainingRuntime or ClusterTrainingRuntime.

    Raises:
        InvalidError: it has no name or kind, or no container `node` with an image, so no TrainJob can run on it.
    """
    name = trees.get(doc, "metadata", "name")
    kind = doc.get("kind")
    if kind not in (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME) or not isinstance(name, str):
        raise InvalidError(f"kind: {kind!r} named {name!r} is no runtime: it must be a named {_kinds()}")
    container = _training_container(doc)
    image = (container or {}).get("image")
    if container is None or not isinstance(image, str):
        raise InvalidError(
            f"{kind} {name}: no TrainJob can run on it: spec.template.spec.replicatedJobs must have a job with a "
            f"container named {names.CONTAINER_NODE} and an image"
        )
    framework = _framework(doc)
    device, count = read_devices(container)
    trainer = RuntimeTrainer(
        trainer_type=_trainer_type(framework),
        framework=framework,
        image=image,
        num_nodes=_nodes(doc),
        device=device,
        device_count=count,
        command=_texts(container.get("command")),
    )
    return Runtime(
        name=name,
        trainer=trainer,
        kind=RuntimeKind(kind),
        pretrained_model=_model(doc),
        deprecated=trees.get(doc, "metadata", "labels", names.LABEL_SUPPORT) == names.SUPPORT_DEPRECATED,
    )


def infer_runtime(job: Tree, pods: Sequence[Tree]) -> Runtime:
    """Return what a TrainJob and its pods tell of its runtime; `Unknown` where they tell nothing."""
    ref = trees.fields(job, "spec", "runtimeRef")
    trainer = trees.fields(job, "spec", "trainer")
    training = [
        pod for pod in pods if (place := index_of(pod)) and place.replicated_job in {names.JOB_NODE, names.JOB_LAUNCHER}
    ]
    container = container_of(training[-1]) if training else None
    framework = _framework_of(trainer, training)
    device, count = read_devices(container or {"resources": trainer.get("resourcesPerNode")})
    kind = ref.get("kind")
    return Runtime(
        name=str(ref.get("name") or UNKNOWN),
        trainer=RuntimeTrainer(
            trainer_type=_trainer_type(framework),
            framework=framework,
            image=str(trainer.get("image") or (container or {}).get("image") or UNKNOWN),
            device=device,
            device_count=count,
        ),
        kind=RuntimeKind.TRAINING_RUNTIME if kind == names.TRAINING_RUNTIME else RuntimeKind.CLUSTER_TRAINING_RUNTIME,
    )


def _kinds() -> str:
    return f"{names.TRAINING_RUNTIME} or {names.CLUSTER_TRAINING_RUNTIME}"


def _trainer_type(framework: str) -> TrainerType:
    return TrainerType.BUILTIN_TRAINER if framework == TORCHTUNE else TrainerType.CUSTOM_TRAINER


def _jobs(doc: Tree) -> list[Tree]:
    return trees.entries(doc, "spec", "template", "spec", "replicatedJobs")


def _training_container(doc: Tree) -> Tree | None:
    """Return the container that trains: of the job marked as the trainer, else of the jobs that may be it by name."""

    def rank(job: Tree) -> tuple[bool, bool]:
        ancestor = trees.get(job, "template", "metadata", "labels", names.LABEL_ANCESTOR)
        return ancestor != names.ANCESTOR_TRAINER, job.get("name") not in (names.JOB_NODE, names.JOB_LAUNCHER)

    for job in sorted(_jobs(doc), key=rank):
        container = trees.get(job, *_POD, "containers", ("name", names.CONTAINER_NODE))
        if isinstance(container, dict):
            return container
    return None


def _framework(doc: Tree) -> str:
    label = trees.get(doc, "metadata", "labels", names.LABEL_FRAMEWORK)
    if isinstance(label, str) and label:
        return label
    policy = trees.fields(doc, "spec", "mlPolicy")
    return next((name for name in _POLICIES if policy.get(name) is not None), UNKNOWN)


def _nodes(doc: Tree) -> int:
    """Return how many nodes train where the TrainJob does not say; with MPI the runtime's number is of launchers."""
    policy = trees.fields(doc, "spec", "mlPolicy")
    elastic = trees.get(policy, "torch", "elasticPolicy")
    if isinstance(elastic, dict):
        return max(1, *(trees.number(elastic, bound) or 0 for bound in ("minNodes", "maxNodes")))
    mpi = policy.get("mpi")
    roles = {str(job.get("name")): job for job in _jobs(doc)}
    if isinstance(mpi, dict) and {names.JOB_LAUNCHER, names.JOB_NODE} <= set(roles):
        workers = max(1, trees.number(roles[names.JOB_NODE], "template", "spec", "parallelism") or 0)
        return workers + bool(mpi.get("runLauncherAsNode"))
    return max(1, trees.number(policy, "numNodes") or 0)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _model(doc: Tree) -> str | None:
    for job in _jobs(doc):
        path = (*_POD, "containers", ("name", names.JOB_MODEL), "env", ("name", names.ENV_STORAGE_URI), "value")
        uri = trees.get(job, *path)
        if isinstance(uri, str) and uri:
            return uri
    return None


def _framework_of(trainer: Tree, training: Sequence[Tree]) -> str:
    if trainer.get("command") == ["tune", "run"]:
        return TORCHTUNE
    for pod in training:
        if trees.get(pod, "spec", "volumes", ("name", names.MPI_SSH_VOLUME)):
            return "mpi"
        for name, framework in _MARKS:
            if variable(pod, name) is not None or trees.get(container_of(pod), "env", ("name", name)):
                return framework
    return UNKNOWN
