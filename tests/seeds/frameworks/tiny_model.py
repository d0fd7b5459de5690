"""A tiny Llama and a tiny Qwen for the torchtune runtimes: made inside the pods, where their initializers would fetch.

Of a shipped runtime only images change, and the programs of its two initializers, which would download: they write a
model, its tokenizer and a dataset to the same places of the same claim. The TrainJob says with arguments of torchtune
how small the model is, and that it trains on a CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from lab.images import reference as image
from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

STEPS: Final = 8
"""How many steps are trained."""
_LAYERS: Final = {"num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "embed_dim": 32, "intermediate_dim": 64}
_BUILDERS: Final = {
    "llama": ("torchtune.models.llama3_2.lora_llama3_2", 128_256),
    "qwen": ("torchtune.models.qwen2.lora_qwen2", 151_936),
}
"""The family → torchtune's builder, and how many tokens its tokenizer numbers, special ones last."""

_MODEL: Final = """
import base64, json, pathlib
import torch
from safetensors.torch import save_file

root = pathlib.Path("/workspace/model")
(root / "original").mkdir(parents=True)
torch.manual_seed(0)
width, inner, kept = 32, 64, 16

def drawn(*shape):
    return torch.randn(*shape) * 0.05

state = {"model.embed_tokens.weight": drawn(TOKENS, width), "model.norm.weight": torch.ones(width)}
for layer in range(2):
    shapes = {
        "self_attn.q_proj": (width, width), "self_attn.k_proj": (kept, width), "self_attn.v_proj": (kept, width),
        "self_attn.o_proj": (width, width), "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    state |= {f"model.layers.{layer}.{name}.weight": drawn(*shape) for name, shape in shapes.items()}
    for name in ("input_layernorm", "post_attention_layernorm"):
        state[f"model.layers.{layer}.{name}.weight"] = torch.ones(width)
    if FAMILY == "qwen":
        for name in ("q_proj", "k_proj", "v_proj"):
            state[f"model.layers.{layer}.self_attn.{name}.bias"] = drawn(shapes[f"self_attn.{name}"][0])
save_file(state, root / "model.safetensors", {"format": "pt"})
config = {"hidden_size": width, "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
(root / "config.json").write_text(json.dumps(config))

# Tokenizers that know bytes and no words.
if FAMILY == "llama":
    lines = (f"{base64.b64encode(bytes([byte])).decode()} {byte}\\n" for byte in range(256))
    (root / "original/tokenizer.model").write_text("".join(lines))
else:
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(byte) for byte in shown] + [chr(256 + place) for place in range(256 - len(shown))]
    (root / "vocab.json").write_text(json.dumps({letter: place for place, letter in enumerate(letters)}))
    (root / "merges.txt").write_text("#version: 0.2\\n")
"""

_DATASET: Final = """
import pathlib
import pyarrow, pyarrow.parquet

root = pathlib.Path("/workspace/dataset/data")
root.mkdir(parents=True)
rows = [{"input": f"{a} plus {b}", "output": str(a + b)} for a in range(8) for b in range(8)]
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), root / "train.parquet")
"""


def documents(runtime_name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a shipped runtime with the lab's image, and the page's TrainJob for it, as small as it gets."""
    family = "qwen" if "qwen" in runtime_name else "llama"
    builder, tokens = _BUILDERS[family]
    runtime = yaml.safe_load((REPOSITORY / "runtimes" / f"{runtime_name}.yaml").read_text())
    programs = {
        "dataset-initializer": _DATASET,
        "model-initializer": f"FAMILY, TOKENS = {family!r}, {tokens}\n{_MODEL}",
    }
    for replicated in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = replicated["template"]["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = 0
        (container,) = pod["containers"]
        container |= {"image": image("torchtune"), "imagePullPolicy": "Never"}
        if container["name"] in programs:
            container["command"] = ["python3", "-c", programs[container["name"]]]
    job = _page()
    job["metadata"]["name"] = f"tiny-{family}"
    job["spec"]["runtimeRef"]["name"] = runtime_name
    job["spec"]["trainer"]["args"] += [*_tiny(family, builder, tokens), *_ON_CPU]
    return runtime, job


def _page() -> dict[str, Any]:
    text = (REPOSITORY / "docs/frameworks/torchtune.md").read_text()
    job: dict[str, Any] = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    return job


def _tiny(family: str, builder: str, tokens: int) -> list[str]:
    sizes = _LAYERS | {"vocab_size": tokens, "max_seq_len": 256}
    if family == "qwen":
        sizes["tie_word_embeddings"] = True
    return [
        f"model={builder}",
        *(f"model.{name}={value}" for name, value in sizes.items()),
        "checkpointer.checkpoint_files=[model.safetensors]",
        f"max_steps_per_epoch={STEPS}",
        "gradient_accumulation_steps=1",
        "lr_scheduler.num_warmup_steps=1",
        "optimizer.lr=0.01",
        "seed=0",
        "metric_logger=torchtune.training.metric_logging.StdoutLogger",
    ]


_ON_CPU: Final = ["device=cpu", "dtype=fp32", "log_peak_memory_stats=False", "fsdp_reshard_after_forward=False"]


def volume(namespace: str, job: str, folder: Path) -> str:
    """Return a volume of the node, in a folder, for the claim that JobSet makes of the runtime's template."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-{job}"},
            "spec": {
                "capacity": {"storage": "20Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": namespace, "name": f"initializer-{job}"},
                "hostPath": {"path": str(folder), "type": "Directory"},
            },
        }
    )
