from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import PIPELINE, container_of, job, node, origin, render, torch, values_of
from trainplane.render.plugins.torchtune import Tuning

LORA = "model.lora_attn_modules=[q_proj,v_proj]"
QLORA = "model.quantize_base=True"
DORA = "model.use_dora=True"
MANAGED = [
    "output_dir=/workspace/output",
    "tokenizer.path=/workspace/model/original/tokenizer.model",
    "checkpointer.checkpoint_dir=/workspace/model",
]
COMMAND = [
    "tune",
    "run",
    "--rdzv_endpoint=localhost:29500",
    "full_finetune_distributed",
    "--config",
    "llama3_2/1B_full",
    "dataset=torchtune.datasets.instruct_dataset",
    *MANAGED,
]
LLAMA = "torchtune-llama3.2-1b"
LARGE = "torchtune-llama3.3-70b"
QWEN = "torchtune-qwen2.5-1.5b"
MEETING = "--rdzv_endpoint=tune-node-0-0.tune:29500"


def tuned(
    *args: str, name: str = LLAMA, nodes: int | None = None, gpus: int | None = 2, number: int | None = None
) -> Any:
    """Return a TrainJob that tunes a model, and its runtime; GPUs are the runtime's."""
    trainer: dict[str, Any] = {"command": ["tune", "run"], "args": list(args)}
    if nodes is not None:
        trainer["numNodes"] = nodes
    if number is not None:
        trainer["numProcPerNode"] = number
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus is not None else {"limits": {"cpu": 1}}
    have = torch(node(command=COMMAND, resources=resources), name=name)
    return job(name="tune", runtime_name=name, trainer=trainer), have


def command(*args: str, **how: Any) -> list[str]:
    rendered: list[str] = container_of(render(*tuned(*args, **how)))["command"]
    return rendered


class TestModel:
    @pytest.mark.parametrize(
        ("runtime", "model"),
        [
            ("torchtune-llama3.2-1b", "llama3_2/1B"),
            ("torchtune-llama3.2-3b", "llama3_2/3B"),
            ("torchtune-llama3.3-70b", "llama3_3/70B"),
            ("torchtune-qwen2.5-1.5b", "qwen2_5/1.5B"),
            ("mine-llama3.2-1b", "llama3_2/1B"),
            ("torchtune-llama3.2-1b-mine", ""),
            ("torchtune", ""),
        ],
    )
    def test_by_the_runtimes_name(self, runtime: str, model: str) -> None:
        assert Tuning(runtime, 1, 1, 0, ()).model == model


ONE, MANY = "single_device", "distributed"


class TestRecipes:
    """Each row of the contract's table, in its order."""

    @pytest.mark.parametrize(
        ("nodes", "number", "gpus", "args", "chosen"),
        [
            (1, 1, 0, (LORA, QLORA), (f"lora_finetune_{ONE}", f"_qlora_{ONE}")),
            (1, "auto", 1, (LORA, QLORA), (f"lora_finetune_{ONE}", f"_qlora_{ONE}")),
            (1, 1, 4, (LORA,), (f"lora_finetune_{ONE}", f"_lora_{ONE}")),
            (1, "auto", 1, (LORA, QLORA, DORA), (f"lora_finetune_{ONE}", f"_lora_{ONE}")),
            (1, 1, 0, (), (f"full_finetune_{ONE}", f"_full_{ONE}")),
            (1, 4, 1, (), (f"full_finetune_{ONE}", f"_full_{ONE}")),
            (1, "auto", 2, (LORA, QLORA), (f"lora_finetune_{MANY}", "_qlora")),
            (1, 2, 0, (QLORA,), (f"lora_finetune_{MANY}", "_qlora")),
            (1, "auto", 2, (LORA,), (f"lora_finetune_{MANY}", "_lora")),
            (1, "auto", 2, (LORA, QLORA, DORA), (f"lora_finetune_{MANY}", "_lora")),
            (2, 1, 1, (), (f"full_finetune_{MANY}", "_full_multinode")),
            (2, "auto", 2, (LORA,), (f"full_finetune_{MANY}", "_full_multinode")),
            (1, "auto", 2, (), (f"full_finetune_{MANY}", "_full")),
            (1, "auto", 0, (), (f"full_finetune_{MANY}", "_full")),
            (0, 1, 1, (LORA,), (f"full_finetune_{MANY}", "_full")),
        ],
    )
    def test_row(self, nodes: int, number: Any, gpus: int, args: Any, chosen: tuple[str, str]) -> None:
        tuning = Tuning(LLAMA, nodes, number, gpus, args)
        assert (tuning.recipe, tuning.config) == (chosen[0], f"llama3_2/1B{chosen[1]}")

    @pytest.mark.parametrize(
        ("args", "qlora"),
        [
            (("model.quantize_base=True",), True),
            (("model.quantize_base= true ",), True),
            (("++model.quantize_base=TRUE",), True),
            (("model.quantize_base=False",), False),
            (("model.quantize_base",), False),
            (("model.quantize_base=True", "model.use_dora=true"), False),
            (("model.quantize_base=True", "model.use_dora=False"), True),
            ((), False),
        ],
    )
    def test_qlora(self, args: Any, qlora: bool) -> None:
        assert Tuning(LLAMA, 1, 1, 1, args).qlora is qlora

    @pytest.mark.parametrize(
        ("nodes", "number", "gpus", "meets"),
        [(1, 1, 0, False), (1, 2, 0, True), (1, "auto", 1, False), (1, "auto", 2, True), (2, 1, 0, True)],
    )
    def test_processes_meet_where_there_are_several(self, nodes: int, number: Any, gpus: int, meets: bool) -> None:
        assert Tuning(LLAMA, nodes, number, gpus, ()).meets is meets


class TestCommand:
    def test_several_devices(self) -> None:
        recipe = ["full_finetune_distributed", "--config", "llama3_2/1B_full"]
        assert command() == ["tune", "run", MEETING, *recipe, *MANAGED]

    def test_one_device(self) -> None:
        recipe = ["lora_finetune_single_device", "--config", "llama3_2/1B_lora_single_device"]
        assert command(LORA, gpus=1) == ["tune", "run", *recipe, *MANAGED]

    def test_several_nodes(self) -> None:
        recipe = ["full_finetune_distributed", "--config", "llama3_3/70B_full_multinode"]
        assert command(name=LARGE, nodes=2) == ["tune", "run", MEETING, *recipe, *MANAGED]

    def test_one_processor(self) -> None:
        assert command(gpus=None)[2:5] == ["full_finetune_single_device", "--config", "llama3_2/1B_full_single_device"]

    def test_arguments_stay_arguments(self) -> None:
        assert container_of(render(*tuned(LORA, "epochs=2")))["args"] == [LORA, "epochs=2"]

    def test_the_first_node_is_in_the_command_and_not_in_variables_of_torchrun(self) -> None:
        rendering = render(*tuned())
        torchruns = {name for name in values_of(container_of(rendering)) if name.startswith("PET_")}
        assert torchruns == {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK"}
        assert container_of(rendering)["ports"] == [{"containerPort": 29500}]

    def test_the_command_is_the_plugins(self) -> None:
        rendering = render(*tuned())
        path = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "containers", 0, "command")
        assert origin(rendering.jobset, *path) == "plugin Torch"

    @pytest.mark.parametrize("said", [["tune"], ["tune", "run", "x"], ["tune", "ls"]])
    def test_any_other_command_is_the_users(self, said: list[str]) -> None:
        asked, have = tuned()
        container = container_of(render(asked.put("spec", "trainer", "command", value=said), have))
        assert container["command"] == said
        assert "PET_MASTER_ADDR" in values_of(container)

    def test_rendering_twice_is_the_same(self) -> None:
        asked, have = tuned(LORA)
        assert render(asked, have).jobset.tree == render(asked, have).jobset.tree


class TestValidation:
    def paths(self, *args: str, **how: Any) -> list[str]:
        asked, have = tuned(*args, **how)
        return [finding.path for finding in PIPELINE.validate(asked, None, have).errors]

    @pytest.mark.parametrize("name", [LLAMA, "torchtune-llama3.2-3b", LARGE, QWEN])
    def test_models_that_can_be_tuned(self, name: str) -> None:
        assert self.paths(name=name) == []

    @pytest.mark.parametrize("name", ["torchtune-mistral-7b", "torchtune", "torch-distributed"])
    def test_models_that_cannot(self, name: str) -> None:
        assert self.paths(name=name) == ["spec.runtimeRef.name"]

    def test_several_nodes_are_for_the_large_model(self) -> None:
        assert self.paths(name=LARGE, nodes=2) == []
        assert self.paths(nodes=2) == ["spec.trainer.numNodes"]

    def test_also_when_the_runtime_says_so(self) -> None:
        asked, have = tuned()
        verdict = PIPELINE.validate(asked, None, have.put("spec", "mlPolicy", "numNodes", value=2))
        assert [finding.path for finding in verdict.errors] == ["spec.trainer.numNodes"]

    def test_adapters_are_for_one_node(self) -> None:
        for arg in (LORA, QLORA):
            assert self.paths(arg, name=LARGE, nodes=2) == ["spec.trainer.numNodes"]

    def test_qlora_of_small_models_is_for_one_device(self) -> None:
        assert self.paths(QLORA, gpus=1) == []
        assert self.paths(QLORA, number=1) == []
        assert self.paths(QLORA, gpus=2) == ["spec.trainer.numProcPerNode", "spec.trainer.resourcesPerNode"]
        assert self.paths(QLORA, number=2) == ["spec.trainer.numProcPerNode", "spec.trainer.resourcesPerNode"]
        assert self.paths(QLORA, gpus=2, name=LARGE) == []

    def test_qwen_has_no_qlora(self) -> None:
        assert self.paths(QLORA, name=QWEN, gpus=1) == ["spec.runtimeRef.name"]
        assert self.paths(LORA, name=QWEN) == []

    def test_the_runtimes_settings_are_its_own(self) -> None:
        args = ["epochs=1", "output_dir=/x", "tokenizer.path=y", "tokenizer.merges_file=z", "tokenizer.pathology=w"]
        assert self.paths(*args) == [f"spec.trainer.args[{place}]" for place in (1, 2, 3)]

    def test_only_tune_run_is_judged(self) -> None:
        asked, have = tuned(QLORA, name="torchtune-mistral-7b")
        assert PIPELINE.validate(asked.put("spec", "trainer", "command", value=["torchrun"]), None, have).allowed
