"""torchtune's settings as it takes them on its command line; the operator puts recipe and config in front."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.client.errors import InvalidError
from trainplane.client.types.initializers import HuggingFaceDatasetInitializer
from trainplane.client.types.trainers import (
    DataFormat,
    DataType,
    LoraConfig,
    Loss,
    TorchTuneConfig,
    TorchTuneInstructDataset,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.client.types.initializers import Initializer

TUNE: Final = ("tune", "run")
_INSTRUCT: Final = "torchtune.datasets.instruct_dataset"
_LORA: Final = (
    "apply_lora_to_mlp",
    "apply_lora_to_output",
    "lora_rank",
    "lora_alpha",
    "lora_dropout",
    "quantize_base",
    "use_dora",
)


def write_tuning(config: TorchTuneConfig, initializer: Initializer | None) -> list[str]:
    """Return the arguments behind `tune run`.

    Raises:
        InvalidError: a setting is of the wrong kind.
    """
    _must_be(config, TorchTuneConfig, "config")
    args = [
        *_setting("dtype", config.dtype, DataType),
        *_setting("batch_size", config.batch_size, int),
        *_setting("epochs", config.epochs, int),
        *_setting("loss", config.loss, Loss),
    ]
    dataset = initializer.dataset if initializer else None
    if isinstance(dataset, HuggingFaceDatasetInitializer):
        args.append(_place(dataset))
    if config.peft_config is not None:
        args += _lora(config.peft_config)
    if config.dataset_preprocess_config is not None:
        args += _instruct(config.dataset_preprocess_config)
    return args


def _place(dataset: HuggingFaceDatasetInitializer) -> str:
    """Return where the files of the dataset lie: behind `owner/name`, a path in it."""
    inside = dataset.storage_uri.removeprefix("hf://").strip("/").split("/")[2:]
    path = "/".join(inside) or "."
    kind = "data_files" if path != "." and "." in path else "data_dir"
    return f"dataset.{kind}={names.PATH_DATASET}/{path}"


def _lora(config: LoraConfig) -> Iterator[str]:
    _must_be(config, LoraConfig, "peft_config")
    for name in _LORA:
        value = getattr(config, name)
        if value is not None:
            yield f"model.{name}={value}"
    if config.lora_attn_modules:
        yield f"model.lora_attn_modules=[{','.join(config.lora_attn_modules)}]"


def _instruct(config: TorchTuneInstructDataset) -> Iterator[str]:
    _must_be(config, TorchTuneInstructDataset, "dataset_preprocess_config")
    yield f"dataset={_INSTRUCT}"
    yield from _setting("dataset.source", config.source, DataFormat)
    yield from _setting("dataset.split", config.split, str)
    if config.train_on_input is not None:
        yield f"dataset.train_on_input={config.train_on_input}"
    yield from _setting("dataset.new_system_prompt", config.new_system_prompt, str)
    if config.column_map:
        yield f"dataset.column_map={dict(config.column_map)}"


def _setting(name: str, value: Any, kind: type) -> Iterator[str]:
    if value is None or value == "":
        return
    _must_be(value, kind, name)
    yield f"{name}={value.value if isinstance(value, Enum) else value}"


def _must_be(value: Any, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        choices = f": one of {', '.join(str(entry) for entry in kind)}" if issubclass(kind, Enum) else ""
        raise InvalidError(f"{name} must be a {kind.__name__}{choices}, and is {value!r}")
