"""What trains: a function, a script, an image, or torchtune with its settings.

`CustomTrainer`, `CustomTrainerContainer`, `BuiltinTrainer` and what they hold have the names, fields and order of the
`kubeflow` SDK. Fields of ours come last and have defaults.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainplane.client.types.secrets import SecretRef

    Env: TypeAlias = "Mapping[str, str | SecretRef]"
    Resources: TypeAlias = "Mapping[str, str | int | float]"


def _index_urls() -> list[str]:
    """Return the package indexes that the environment names; none leaves it to pip's own configuration."""
    return [url for url in os.environ.get("DEFAULT_PIP_INDEX_URLS", "").split(",") if url]


@dataclass
class Workspace:
    """A folder that is shipped with the job: no image is built, and nothing but the cluster is needed.

    The files are packed into the TrainJob itself, so they go wherever the job goes, also to another cluster. What
    `.gitignore` and `.trainplaneignore` of the folder name stays behind, and so do `ignore`, hidden folders and caches.
    """

    path: str | os.PathLike[str] = "."
    """The folder; it becomes the working directory of every process of the job."""
    ignore: Sequence[str] = ()
    """Patterns as in `.gitignore`."""


@dataclass
class CustomTrainer:
    """Train with a function of yours. The function is shipped with the modules of yours that it uses."""

    func: Callable[..., Any]
    """A function at the top level of a module, script or notebook. It is called in every process."""
    func_args: Mapping[str, Any] | None = None
    """Keyword arguments for the function: numbers, texts, lists, dicts, None."""
    image: str | None = None
    """The container image; the runtime's if you do not say."""
    packages_to_install: Sequence[str] | None = None
    """Packages that pip installs before the function starts."""
    pip_index_urls: Sequence[str] = field(default_factory=_index_urls)
    """Where pip looks: the first is the index, the others are extra. Empty: as pip is configured in the image."""
    num_nodes: int | None = None
    """How many nodes; the runtime's number if you do not say."""
    resources_per_node: Resources | None = None
    """Such as `{"gpu": 4, "cpu": 8, "memory": "32Gi"}`; `gpu` stands for nvidia.com/gpu."""
    env: Env | None = None
    """Variables of each node; a SecretRef is read from its Secret in the pod."""
    workspace: str | os.PathLike[str] | Workspace | None = None
    """A folder to ship as well: configuration, data files, modules that the function loads by name."""


@dataclass
class ScriptTrainer:
    """Train with a script of yours: `python train.py --epochs 3`, on every node, by the framework's launcher."""

    script: str
    """The file, relative to the workspace."""
    args: Sequence[str] = ()
    """What stands behind it on the command line."""
    workspace: str | os.PathLike[str] | Workspace = "."
    """The folder that is shipped; it becomes the working directory."""
    image: str | None = None
    """The container image; the runtime's if you do not say."""
    packages_to_install: Sequence[str] | None = None
    """Packages that pip installs before the script starts."""
    pip_index_urls: Sequence[str] = field(default_factory=_index_urls)
    """Where pip looks: the first is the index, the others are extra. Empty: as pip is configured in the image."""
    num_nodes: int | None = None
    """How many nodes; the runtime's number if you do not say."""
    resources_per_node: Resources | None = None
    """As for CustomTrainer."""
    env: Env | None = None
    """Variables of each node; a SecretRef is read from its Secret in the pod."""


@dataclass
class CustomTrainerContainer:
    """Train with what an image of yours contains."""

    image: str
    """The container image; its own entry point runs, or the option TrainerCommand."""
    num_nodes: int | None = None
    """How many nodes; the runtime's number if you do not say."""
    resources_per_node: Resources | None = None
    """As for CustomTrainer."""
    env: Env | None = None
    """Variables of each node; a SecretRef is read from its Secret in the pod."""


class Loss(Enum):
    """Loss functions of torchtune."""

    CEWithChunkedOutputLoss = "torchtune.modules.loss.CEWithChunkedOutputLoss"


class DataType(Enum):
    """Types of a model's weights."""

    BF16 = "bf16"
    FP32 = "fp32"


class DataFormat(Enum):
    """Formats of a dataset's files."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    TEXT = "text"
    XML = "xml"


@dataclass
class TorchTuneInstructDataset:
    """A dataset of prompts and answers."""

    source: DataFormat | None = None
    """What its files are."""
    split: str | None = None
    """Which part of it, such as `train[:10%]`."""
    train_on_input: bool | None = None
    """Whether the prompt counts in the loss."""
    new_system_prompt: str | None = None
    """A system message to put in front."""
    column_map: Mapping[str, str] | None = None
    """The columns that are `input` and `output`."""


@dataclass
class LoraConfig:
    """Low-rank adapters: LoRA, QLoRA with `quantize_base`, DoRA with `use_dora`."""

    apply_lora_to_mlp: bool | None = None
    """Adapt the feed-forward layers too."""
    apply_lora_to_output: bool | None = None
    """Adapt the last projection too."""
    lora_attn_modules: Sequence[str] = field(default_factory=lambda: ["q_proj", "v_proj", "output_proj"])
    """Which projections of the attention are adapted."""
    lora_rank: int | None = None
    """Rank of the adapters."""
    lora_alpha: int | None = None
    """By how much they count."""
    lora_dropout: float | None = None
    """Share of their inputs that is dropped."""
    quantize_base: bool | None = None
    """Keep the model itself in four bits."""
    use_dora: bool | None = None
    """Learn magnitude and direction apart."""


@dataclass
class TorchTuneConfig:
    """Settings of torchtune; what is None is the recipe's own."""

    dtype: DataType | None = None
    batch_size: int | None = None
    """Samples per step and device."""
    epochs: int | None = None
    """Passes over the dataset."""
    loss: Loss | None = None
    num_nodes: int | None = None
    """How many nodes; the runtime's number if you do not say."""
    peft_config: LoraConfig | None = None
    """Adapters; None trains all weights."""
    dataset_preprocess_config: TorchTuneInstructDataset | None = None
    resources_per_node: Resources | None = None
    """As for CustomTrainer."""


@dataclass
class BuiltinTrainer:
    """Fine-tune with torchtune: the runtime chooses the model, the settings are yours."""

    config: TorchTuneConfig


Trainer: TypeAlias = CustomTrainer | ScriptTrainer | CustomTrainerContainer | BuiltinTrainer
