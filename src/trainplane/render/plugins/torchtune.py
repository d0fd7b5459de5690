"""torchtune: `tune run` with the recipe and config that fit the model, the nodes and the devices.

Part of the torch plugin. A TrainJob asks for it with the command `tune run` on a runtime named after its model
(`torchtune-llama3.2-1b`); the SDK's built-in trainer writes that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENTRYPOINT: Final = ["tune", "run"]

LLAMA_3_2_1B: Final = "llama3_2/1B"
LLAMA_3_2_3B: Final = "llama3_2/3B"
LLAMA_3_3_70B: Final = "llama3_3/70B"
QWEN_2_5_1_5B: Final = "qwen2_5/1.5B"
MODELS: Final = (LLAMA_3_2_1B, LLAMA_3_2_3B, LLAMA_3_3_70B, QWEN_2_5_1_5B)

MANAGED: Final = frozenset({"output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file"})
"""Settings that name places in the runtime's volumes, so the runtime alone sets them."""

_LORA: Final = "model.lora_attn_modules"
_QUANTIZED: Final = "model.quantize_base"
_DORA: Final = "model.use_dora"


@dataclass(frozen=True, slots=True)
class Tuning:
    """What decides on a recipe."""

    runtime: str
    """The runtime's name."""
    nodes: int
    processes: int | str
    """Processes per node, or the word by which torch finds out itself."""
    gpus: int
    args: Sequence[str]
    """The TrainJob's arguments: overrides of the config."""

    @property
    def model(self) -> str:
        """The model by torchtune's name, `llama3_2/1B` for torchtune-llama3.2-1b; empty for a name of another form."""
        parts = self.runtime.split("-")
        return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""

    @property
    def lora(self) -> bool:
        """Whether adapters are trained in place of all weights."""
        return any(_LORA in arg for arg in self.args)

    @property
    def qlora(self) -> bool:
        """Whether adapters are trained on a quantized model."""
        return self._true(_QUANTIZED) and not self._true(_DORA)

    @property
    def one_device(self) -> bool:
        """Whether a single process on a single device trains."""
        return self.nodes == 1 and (self.processes == 1 or self.gpus == 1)

    @property
    def meets(self) -> bool:
        """Whether processes have to find each other."""
        several = self.processes > 1 if isinstance(self.processes, int) else self.gpus > 1
        return self.nodes > 1 or several

    @property
    def recipe(self) -> str:
        """The recipe's name."""
        return self._choice[0]

    @property
    def config(self) -> str:
        """The config's name."""
        return self.model + self._choice[1]

    @property
    def _choice(self) -> tuple[str, str]:
        """The recipe and the config's ending; adapters on several nodes have no recipe, so all weights are trained."""
        adapter = "qlora" if self.qlora else "lora" if self.lora else ""
        if self.one_device:
            return f"{'lora' if adapter else 'full'}_finetune_single_device", f"_{adapter or 'full'}_single_device"
        if self.nodes > 1:
            return "full_finetune_distributed", "_full_multinode"
        if self.nodes == 1 and adapter:
            return "lora_finetune_distributed", f"_{adapter}"
        return "full_finetune_distributed", "_full"

    def _true(self, setting: str) -> bool:
        for arg in self.args:
            name, given, value = arg.partition("=")
            if given and setting in name and value.strip().lower() == "true":
                return True
        return False


def command(tuning: Tuning, runtime_command: Sequence[str], endpoint: str) -> list[str]:
    """Return what the training container runs; the runtime's command gives the managed settings."""
    meeting = [f"--rdzv_endpoint={endpoint}"] if tuning.meets else []
    managed = [word for word in runtime_command if word.partition("=")[0] in MANAGED]
    return [*ENTRYPOINT, *meeting, tuning.recipe, "--config", tuning.config, *managed]


def findings(tuning: Tuning) -> Iterator[Finding]:
    """Yield what torchtune cannot do."""
    model = tuning.model
    if model not in MODELS:
        yield Finding(
            "spec.runtimeRef.name",
            f"names no model that torchtune can train here: use a runtime torchtune-FAMILY-SIZE "
            f"for one of {', '.join(MODELS)}",
        )
    if tuning.nodes > 1 and model != LLAMA_3_3_70B:
        yield Finding("spec.trainer.numNodes", f"must be 1 for {model or 'this model'}: it has no multi-node recipe")
    if tuning.nodes == 1 and tuning.qlora:
        yield from _qlora_findings(tuning)
    if tuning.nodes > 1 and (tuning.lora or tuning.qlora):
        yield Finding("spec.trainer.numNodes", "must be 1 for LoRA and QLoRA: they have no multi-node recipe")
    for place, arg in enumerate(tuning.args):
        key = arg.partition("=")[0]
        if key in MANAGED:
            yield Finding(f"spec.trainer.args[{place}]", f"{key} is set by the runtime: leave it out")


def _qlora_findings(tuning: Tuning) -> Iterator[Finding]:
    model = tuning.model
    if model == QWEN_2_5_1_5B:
        yield Finding("spec.runtimeRef.name", f"{model} has no QLoRA recipe: leave out {_QUANTIZED}")
    if not tuning.one_device and model in (LLAMA_3_2_1B, LLAMA_3_2_3B):
        why = f"QLoRA of {model} runs on a single device"
        yield Finding("spec.trainer.numProcPerNode", f"must be 1 or left out: {why}")
        yield Finding("spec.trainer.resourcesPerNode", f"must ask for one GPU: {why}")
