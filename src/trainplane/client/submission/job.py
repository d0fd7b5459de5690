"""A TrainJob document from a runtime, an initializer, a trainer and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.errors import InvalidError, UnsupportedError
from trainplane.client.options.secrets import NotSecret
from trainplane.client.submission import secrets, sources, training
from trainplane.client.submission.naming import draw_name
from trainplane.client.types.outputs import Output
from trainplane.client.types.runtimes import Runtime, RuntimeKind, TrainerType
from trainplane.client.types.trainers import BuiltinTrainer, CustomTrainer, CustomTrainerContainer, ScriptTrainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trainplane.api.tree import Tree
    from trainplane.client.backends.backend import BackendKind
    from trainplane.client.types.initializers import Initializer
    from trainplane.client.types.trainers import Trainer


def compose(
    runtime: str | Runtime,
    initializer: Initializer | None,
    trainer: Trainer | None,
    options: Iterable[Callable[..., None]] = (),
    *,
    output: Output | None = None,
    backend: BackendKind,
    name: Callable[[], str],
) -> Tree:
    """Return the document to submit.

    A runtime that is given by its name alone has no kind yet: the backend finds it. Options come last and in order,
    each called with the document so far, the trainer and the backend's kind. `name` makes one where no option gives
    it.

    Raises:
        InvalidError: something given cannot mean anything. CodeError, PlainSecretError and UnsupportedError say more.
    """
    _check_kind(runtime, trainer)
    options = tuple(options)
    job: Tree = {
        "apiVersion": names.API_VERSION,
        "kind": names.TRAIN_JOB,
        "metadata": {},
        "spec": {"runtimeRef": _refer(runtime)},
    }
    spec = job["spec"]
    if initializer and (fetched := sources.write_initializer(initializer)):
        spec["initializer"] = fetched
    allowed = [option.value for option in options if isinstance(option, NotSecret)]
    described = training.write_trainer(trainer, initializer, allowed)
    if described.trainer:
        spec["trainer"] = described.trainer
    if described.annotations:
        job["metadata"]["annotations"] = described.annotations
    if output is not None:
        _write_output(job, output, backend)
    for option in options:
        _apply(option, job, trainer, backend)
    if not job["metadata"].get("name"):
        job["metadata"]["name"] = name()
    secrets.refuse_plain(job, allowed)
    return job


def complete(document: Mapping[str, Any], options: Iterable[Callable[..., None]] = (), *, backend: BackendKind) -> Tree:
    """Return the document to submit of a TrainJob that a user wrote whole.

    Raises:
        InvalidError: it is no TrainJob of a version that is known, or names no runtime.
    """
    check_document(document)
    job: Tree = trees.copy(dict(document))
    metadata = job["metadata"] = {**trees.fields(job, "metadata")}
    for option in options:
        _apply(option, job, None, backend)
    if not metadata.get("name"):
        drawn = draw_name(job["spec"]["runtimeRef"]["name"], None)
        prefix = metadata.pop("generateName", None)
        metadata["name"] = f"{prefix}{drawn.rpartition('-')[2]}" if prefix else drawn
    job.pop("status", None)
    return job


def check_document(document: Mapping[str, Any]) -> None:
    """Refuse what is no TrainJob, or names no runtime; all else is admission's to judge.

    Raises:
        InvalidError: it is none.
    """
    told = f"{document.get('apiVersion')} {document.get('kind')}"
    if told != f"{names.API_VERSION} {names.TRAIN_JOB}":
        raise InvalidError(f"a TrainJob has apiVersion {names.API_VERSION} and kind {names.TRAIN_JOB}, not {told}")
    if not trees.text(document, "spec", "runtimeRef", "name"):
        raise InvalidError("spec.runtimeRef.name must say on which runtime the TrainJob runs")


def _write_output(job: Tree, output: Output, backend: BackendKind) -> None:
    if not isinstance(output, Output):
        raise InvalidError(f"output must be an Output, such as Output('s3://bucket/models'), and is {output!r}")
    if backend != "kubernetes":
        raise UnsupportedError(
            f"an Output needs a kubernetes backend, and this one is {backend}: what a local job writes is on this "
            "machine already"
        )
    annotations = job["metadata"].setdefault("annotations", {})
    annotations[names.ANNOTATION_OUTPUT] = output.uri
    if output.secret is not None:
        annotations[names.ANNOTATION_OUTPUT_SECRET] = output.secret


def _apply(option: Any, job: Tree, trainer: Trainer | None, backend: BackendKind) -> None:
    if not callable(option) or isinstance(option, type):
        raise InvalidError(f"options must be made of trainplane.options, such as Name('my-job'), and one is {option!r}")
    option(job, trainer, backend)


def _refer(runtime: Any) -> Tree:
    kind = runtime.kind if isinstance(runtime, Runtime) else RuntimeKind.UNKNOWN
    name = runtime.name if isinstance(runtime, Runtime) else runtime
    if not isinstance(name, str) or not name:
        raise InvalidError(f"runtime must be a Runtime or its name, and is {runtime!r}")
    return {"name": name} | ({} if kind is RuntimeKind.UNKNOWN else {"kind": kind.value})


def _check_kind(runtime: str | Runtime, trainer: Any) -> None:
    """Refuse code of the user's on a runtime that brings its own, and the other way round."""
    known = CustomTrainer, ScriptTrainer, CustomTrainerContainer, BuiltinTrainer
    if trainer is not None and not isinstance(trainer, known):
        expected = ", ".join(kind.__name__ for kind in known)
        raise InvalidError(f"trainer must be one of {expected}, and is a {type(trainer).__name__}")
    if trainer is None or not isinstance(runtime, Runtime) or runtime.kind is RuntimeKind.UNKNOWN:
        return
    builtin = runtime.trainer.trainer_type is TrainerType.BUILTIN_TRAINER
    if builtin and not isinstance(trainer, BuiltinTrainer):
        raise InvalidError(
            f"runtime {runtime.name} fine-tunes with {runtime.trainer.framework} and takes a BuiltinTrainer, "
            f"not a {type(trainer).__name__}: choose another runtime for code of your own"
        )
    if not builtin and isinstance(trainer, BuiltinTrainer):
        raise InvalidError(
            f"runtime {runtime.name} runs code of yours and has no trainer built in: choose one of torchtune's for a "
            f"BuiltinTrainer"
        )
