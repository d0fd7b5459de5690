"""`spec.trainer`: what runs on each node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainplane.client.errors import InvalidError
from trainplane.client.submission import secrets
from trainplane.client.submission.resources import write_resources
from trainplane.client.submission.tuning import TUNE, write_tuning
from trainplane.client.types.secrets import SecretRef
from trainplane.client.types.trainers import BuiltinTrainer, CustomTrainer, CustomTrainerContainer, ScriptTrainer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from trainplane.api.tree import Tree
    from trainplane.client.code.shipment import Setting, Shipment
    from trainplane.client.types.initializers import Initializer
    from trainplane.client.types.trainers import TorchTuneConfig, Trainer


@dataclass(frozen=True)
class Described:
    """What a trainer becomes."""

    trainer: Tree = field(default_factory=dict)
    """`spec.trainer`; empty where the runtime's word stands."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Of the TrainJob: what its code is."""


def write_trainer(trainer: Trainer | None, initializer: Initializer | None, allowed: Collection[str] = ()) -> Described:
    """Return what a trainer becomes; `allowed` are texts that are no secrets, whatever they look like.

    Raises:
        InvalidError: it cannot mean anything.
    """
    if trainer is None:
        return Described()
    if isinstance(trainer, BuiltinTrainer):
        words = {"command": list(TUNE), "args": write_tuning(trainer.config, initializer)}
        return Described({**words, **_size(trainer.config)})
    shipped = _ship(trainer, allowed)
    words = {"command": shipped.command, "args": shipped.args} if shipped else {}
    image = {"image": trainer.image} if trainer.image else {}
    env = {"env": write_env(trainer.env, "env")} if trainer.env else {}
    return Described({**image, **words, **env, **_size(trainer)}, shipped.annotations if shipped else {})


def write_env(env: Mapping[str, str | SecretRef], where: str) -> list[Tree]:
    """Return variables as a container has them, a SecretRef as a reference that the pod resolves."""
    return [write_variable(name, value, f"{where}[{name!r}]") for name, value in env.items()]


def write_variable(name: Any, value: Any, where: str) -> Tree:
    """Return one variable."""
    if not isinstance(name, str) or not name or "=" in name:
        raise InvalidError(f"{where}: {name!r} is no name of a variable")
    if isinstance(value, SecretRef):
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": value.name, "key": value.key}}}
    if not isinstance(value, str):
        raise InvalidError(f"{where} must be a text or a SecretRef, and is {value!r}: write {str(value)!r}")
    return {"name": name, "value": value}


def _size(said: CustomTrainer | ScriptTrainer | CustomTrainerContainer | TorchTuneConfig) -> Tree:
    size: Tree = {}
    nodes: Any = said.num_nodes
    if nodes is not None:
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
            raise InvalidError(f"num_nodes must be a number from 1 on, and is {nodes!r}")
        size["numNodes"] = nodes
    if said.resources_per_node:
        size["resourcesPerNode"] = write_resources(said.resources_per_node)
    return size


def _ship(trainer: CustomTrainer | ScriptTrainer | CustomTrainerContainer, allowed: Collection[str]) -> Shipment | None:
    """Pack the user's code, if the trainer has any."""
    if isinstance(trainer, CustomTrainerContainer):
        return None
    from trainplane.client.code import shipment  # noqa: PLC0415 a container of the user's needs none of it

    setting = _setting(trainer, shipment.Setting)
    if isinstance(trainer, ScriptTrainer):
        secrets.refuse_plain_values(list(trainer.args), "args", allowed)
        return shipment.ship_script(trainer.script, trainer.args, folder=trainer.workspace, setting=setting)
    secrets.refuse_plain_values(dict(trainer.func_args or {}), "func_args", allowed)
    return shipment.ship_function(trainer.func, trainer.func_args, folder=trainer.workspace, setting=setting)


def _setting(trainer: CustomTrainer | ScriptTrainer, kind: type[Setting]) -> Setting:
    lists: dict[str, Any] = {
        "packages_to_install": trainer.packages_to_install,
        "pip_index_urls": trainer.pip_index_urls,
    }
    for where, given in lists.items():
        if isinstance(given, str) or not all(isinstance(entry, str) and entry for entry in given or ()):
            raise InvalidError(f"{where} must be a list of texts, and is {given!r}")
    secrets.refuse_logins(trainer.packages_to_install or (), trainer.pip_index_urls)
    return kind(trainer.packages_to_install or (), trainer.pip_index_urls, tuple(trainer.env or ()))
