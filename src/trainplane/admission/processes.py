"""What `spec.trainer.numProcPerNode` means when it is a text, as v2.0 and v2.1 took it.

| text   | meant                                | becomes                                                            |
|--------|--------------------------------------|--------------------------------------------------------------------|
| `"4"`  | four                                 | 4                                                                  |
| `auto` | one for each GPU; without GPUs, one  | left out: that is what v2.3 does where nothing is said. Where the  |
|        | for each CPU                         | runtime says otherwise, the number that it comes to                |
| `cpu`  | one for each CPU, at least one       | that number                                                        |
| `gpu`  | one for each GPU                     | that number; if no GPU is asked for, it stays and validation       |
|        |                                      | refuses it                                                         |

GPUs and CPUs are those that the training container will have: of `resourcesPerNode`, and where it is silent the
runtime's. A word that was turned once is not counted again: what is stored stays, whatever the runtime says by now.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.jobset import Container, JobSetTemplate
from trainplane.api.runtime import PROCESS_WORDS
from trainplane.render import resources

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Runtime

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,9})")
_INT32: Final = range(-(2**31), 2**31)
_PATH: Final = ("spec", "trainer", "numProcPerNode")


class _LeftOut(enum.Enum):
    """That no number is the answer; None is that there is no answer."""

    LEFT_OUT = enum.auto()


LEFT_OUT: Final = _LeftOut.LEFT_OUT


def convert_processes(job: Tree, stored: Tree | None, runtime: Runtime | None) -> tuple[Tree, str | None]:
    """Return the TrainJob with a text in `numProcPerNode` turned, and the warning that says so.

    A text that is no number and no word, and a word that cannot be counted, stay as they are.
    """
    text = trees.get(job, *_PATH)
    if not isinstance(text, str):
        return job, None
    number = _word(text, job, stored, runtime) if text in PROCESS_WORDS else _number(text)
    if number is None:
        return job, None
    if number is LEFT_OUT:
        said = f"{'.'.join(_PATH)}: {text} was left out, which means the same; leave it out"
        return trees.drop(job, *_PATH), said
    said = f"{'.'.join(_PATH)}: {text!r} was stored as the number {number}; write: numProcPerNode: {number}"
    return trees.put(job, *_PATH, value=number), said


def _word(word: str, job: Tree, stored: Tree | None, runtime: Runtime | None) -> int | _LeftOut | None:
    known = _stored(stored)
    return _counted(word, job, runtime) if known is None else known


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) and int(text) in _INT32 else None


def _stored(stored: Tree | None) -> int | _LeftOut | None:
    """Return what an earlier turn made of a word: a number, or LEFT_OUT; None if it was not turned yet."""
    trainer = trees.get(stored, "spec", "trainer")
    if not isinstance(trainer, dict):
        return None
    value = trainer.get(_PATH[-1])
    if value is None:
        return LEFT_OUT
    return value if isinstance(value, int) else None


def _counted(word: str, job: Tree, runtime: Runtime | None) -> int | _LeftOut | None:
    if word == "auto" and _runtime_says(runtime) in {None, "auto"}:
        return LEFT_OUT
    own = trees.get(job, "spec", "trainer", "resourcesPerNode")
    if runtime is None and own is None:
        return None
    container = _container(own, _runtime_resources(runtime) if runtime else None)
    try:
        gpus = 0 if word == "cpu" else resources.gpus(container)
        if word == "gpu":
            return gpus or None
        return gpus or max(1, resources.cpus(container))
    except QuantityError:
        return None  # no quantity: the schema refuses it


def _runtime_says(runtime: Runtime | None) -> int | str | None:
    policy = runtime.view.spec.ml_policy if runtime else None
    return policy.torch.num_proc_per_node if policy and policy.torch else None


def _runtime_resources(runtime: Runtime) -> Any:
    """Return the resources of the training container: of the first job named node or with the trainer's label."""
    template = JobSetTemplate(trees.get(runtime.tree, "spec", "template") or {})
    for job in template.jobs:
        if job.name == names.JOB_NODE or job.ancestor == names.ANCESTOR_TRAINER:
            container = job.container(names.CONTAINER_NODE)
            return container.get("resources") if container else None
    return None


def _container(*layers: Any) -> Container:
    """Return a container with the resources of the TrainJob laid over the runtime's, name by name."""
    merged: Tree = {"requests": {}, "limits": {}}
    for layer in reversed(layers):
        for part, amounts in merged.items():
            given = trees.get(layer, part)
            amounts.update(given if isinstance(given, dict) else {})
    return Container({"resources": merged})
