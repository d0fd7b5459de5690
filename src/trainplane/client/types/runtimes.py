"""The blueprints that an admin offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from trainplane.client.types.shown import Shown

UNKNOWN = "Unknown"
"""What stands where a device or a status cannot be told."""


class RuntimeKind(Enum):
    """Whose a runtime is: the cluster's, or the namespace's; of one made from a name, the cluster knows."""

    CLUSTER_TRAINING_RUNTIME = "ClusterTrainingRuntime"
    TRAINING_RUNTIME = "TrainingRuntime"
    UNKNOWN = UNKNOWN


class TrainerType(Enum):
    """What a runtime expects: code of yours, or settings for its own."""

    CUSTOM_TRAINER = "CustomTrainer"
    BUILTIN_TRAINER = "BuiltinTrainer"


@dataclass
class RuntimeTrainer:
    """The nodes of a runtime."""

    trainer_type: TrainerType
    framework: str
    """Such as torch, deepspeed, jax; Unknown where the runtime is gone."""
    image: str
    num_nodes: int = 1
    """How many, where the TrainJob does not say."""
    device: str = UNKNOWN
    """What computes: gpu, tpu, cpu, mig-1g.5gb, ..."""
    device_count: str = UNKNOWN
    """How many of them a node has."""
    command: tuple[str, ...] = ()
    """What the nodes run if the TrainJob does not say."""

    def set_command(self, command: tuple[str, ...]) -> None:
        """Set `command`, as the `kubeflow` SDK spells it."""
        self.command = command


@dataclass
class Runtime(Shown):
    """A TrainingRuntime or ClusterTrainingRuntime. Its name alone is enough to train on it."""

    name: str
    trainer: RuntimeTrainer = field(
        default_factory=lambda: RuntimeTrainer(TrainerType.CUSTOM_TRAINER, framework=UNKNOWN, image=UNKNOWN)
    )
    """As `get_runtime` finds it; all of it is Unknown in one that you made from a name."""
    kind: RuntimeKind = RuntimeKind.UNKNOWN
    """Unknown in one that you made from a name: the namespace's own of that name is meant, or else the cluster's."""
    pretrained_model: str | None = None
    """The model that it fine-tunes, where it has one."""
    deprecated: bool = False
    """Its admin asks to choose another."""
