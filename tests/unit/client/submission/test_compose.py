from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api import document, names, tree
from trainplane.api.trainjob import TrainJob
from trainplane.client.errors import CodeError, InvalidError
from trainplane.client.options import Annotations, Name
from trainplane.client.submission import compose
from trainplane.client.types.initializers import (
    DataCacheInitializer,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    S3DatasetInitializer,
    S3ModelInitializer,
)
from trainplane.client.types.runtimes import Runtime, RuntimeKind, RuntimeTrainer, TrainerType
from trainplane.client.types.secrets import SecretRef
from trainplane.client.types.trainers import (
    BuiltinTrainer,
    CustomTrainer,
    CustomTrainerContainer,
    DataFormat,
    DataType,
    LoraConfig,
    Loss,
    ScriptTrainer,
    TorchTuneConfig,
    TorchTuneInstructDataset,
)

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.api.tree import Tree


def job(trainer: Any = None, *options: Any, runtime: Any = "torch-distributed", initializer: Any = None) -> Tree:
    composed = compose(runtime, initializer, trainer, options, backend="kubernetes", name=lambda: "drawn")
    document.read(composed, TrainJob)
    return composed


def runtime(kind: TrainerType = TrainerType.CUSTOM_TRAINER) -> Runtime:
    return Runtime("mine", RuntimeTrainer(kind, "torch", "image"), RuntimeKind.TRAINING_RUNTIME)


def say(word: str, times: int = 1) -> None:
    """Print a word."""
    print(word * times)  # noqa: T201 a node does


def test_nothing_said_is_the_runtime_alone() -> None:
    assert job() == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "drawn"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}},
    }


def test_a_runtime_says_its_own_kind() -> None:
    assert job(runtime=runtime())["spec"]["runtimeRef"] == {"name": "mine", "kind": "TrainingRuntime"}


def test_a_runtime_of_a_name_alone_is_any_of_that_name() -> None:
    assert job(runtime=Runtime(name="mine"))["spec"]["runtimeRef"] == {"name": "mine"}
    tuned = BuiltinTrainer(TorchTuneConfig())
    assert job(tuned, runtime=Runtime(name="mine"))["spec"]["trainer"], "whether it fits, the cluster knows"
    with pytest.raises(InvalidError, match="runtime must be a Runtime or its name"):
        job(runtime=Runtime(name=""))


def test_a_function_is_a_command_that_calls_it(tmp_path: Path) -> None:
    composed = job(
        CustomTrainer(
            say,
            {"word": "$HOME ", "times": 2},
            image="image",
            num_nodes=3,
            resources_per_node={"gpu": 2, "cpu": 0.5, "memory": "8Gi"},
            env={"A": "1", "B": SecretRef("secret", "key")},
        ),
        Annotations({"mine": "too"}),
    )
    trainer = composed["spec"]["trainer"]
    amounts = {"nvidia.com/gpu": "2", "cpu": "0.5", "memory": "8Gi"}
    assert trainer["image"] == "image"
    assert trainer["numNodes"] == 3
    assert trainer["resourcesPerNode"] == {"requests": amounts, "limits": amounts}
    assert trainer["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "key"}}},
    ]
    annotations = composed["metadata"]["annotations"]
    assert annotations["trainplane.dev/function"] == f"{__name__}:say"
    assert annotations["trainplane.dev/code"].startswith("sha256:")
    assert annotations["mine"] == "too"


def test_what_is_composed_runs(tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "train.py").write_text("import sys\nprint('script', sys.argv[1:])\n")
    trainer = job(ScriptTrainer("train.py", ["$HOME", "b c"], tmp_path / "proj"))["spec"]["trainer"]
    words = [sys.executable, *trainer["command"][1:], *trainer["args"]]
    done = subprocess.run(words, env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout == "script ['$HOME', 'b c']\n"


def test_code_errors_come_through() -> None:
    with pytest.raises(CodeError, match="func is a lambda"):
        job(CustomTrainer(lambda: None))


def test_a_container_brings_its_own_command() -> None:
    assert job(CustomTrainerContainer("image", num_nodes=2))["spec"]["trainer"] == {"image": "image", "numNodes": 2}


@pytest.mark.parametrize(
    ("given", "amounts"),
    [
        ({"GPU": 4.0, "CPU": "2"}, {"nvidia.com/gpu": "4", "cpu": "2"}),
        ({"tpu": 4}, {"google.com/tpu": "4"}),
        ({"mig-1g.5gb": 1}, {"nvidia.com/mig-1g.5gb": "1"}),
        ({"MIG-1g.5gb": 1}, {"nvidia.com/mig-1g.5gb": "1"}),
        ({"storage": "1Gi"}, {"ephemeral-storage": "1Gi"}),
        ({"huawei.com/Ascend910": 1, "amd.com/gpu": 2}, {"huawei.com/Ascend910": "1", "amd.com/gpu": "2"}),
        ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}),
    ],
)
def test_resources_have_short_names(given: dict[str, Any], amounts: dict[str, str]) -> None:
    said = job(CustomTrainerContainer("image", resources_per_node=given))["spec"]["trainer"]["resourcesPerNode"]
    assert said == {"requests": amounts, "limits": amounts}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ram": "1Gi"}, r"resources_per_node\['ram'\] is no resource: use one of cpu, ephemeral-storage, gpu, memory"),
        ({"cpu": "many"}, r"resources_per_node\['cpu'\]: "),
        ({"cpu": True}, r"resources_per_node\['cpu'\] must be a number or a text such as '8Gi', and is True"),
        ({"gpu": 1, "nvidia.com/gpu": 2}, "names nvidia.com/gpu twice"),
        ({"gpu": 1, "mig-1g.5gb": 2}, "asks for whole GPUs and for nvidia.com/mig-1g.5gb: choose one"),
        ({"mig-1g.5gb": 1, "mig-2g.10gb": 1}, "MIG slices of one size only"),
    ],
)
def test_resources_that_mean_nothing_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        job(CustomTrainerContainer("image", resources_per_node=given))


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        (
            3,
            "trainer must be one of CustomTrainer, ScriptTrainer, CustomTrainerContainer, BuiltinTrainer, and is a int",
        ),
        (CustomTrainerContainer("i", num_nodes=0), "num_nodes must be a number from 1 on, and is 0"),
        (CustomTrainerContainer("i", num_nodes=True), "num_nodes must be a number from 1 on, and is True"),
        (CustomTrainerContainer("i", env={"A": 1}), r"env\['A'\] must be a text or a SecretRef, and is 1: write '1'"),  # type: ignore[dict-item]
        (CustomTrainerContainer("i", env={"A=": "1"}), "'A=' is no name of a variable"),
        (
            CustomTrainer(say, packages_to_install="torch"),
            "packages_to_install must be a list of texts, and is 'torch'",
        ),
        (CustomTrainer(say, pip_index_urls=[""]), "pip_index_urls must be a list of texts"),
        (BuiltinTrainer(3), "config must be a TorchTuneConfig, and is 3"),  # type: ignore[arg-type]
        (BuiltinTrainer(TorchTuneConfig(dtype="bf16")), "dtype must be a DataType: one of DataType.BF16"),  # type: ignore[arg-type]
    ],
)
def test_trainers_that_mean_nothing(trainer: Any, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        job(trainer)


def test_a_trainer_must_fit_its_runtime() -> None:
    with pytest.raises(
        InvalidError, match="runtime mine fine-tunes with torch and takes a BuiltinTrainer, not a Custom"
    ):
        job(CustomTrainer(say), runtime=runtime(TrainerType.BUILTIN_TRAINER))
    with pytest.raises(InvalidError, match="runtime mine runs code of yours and has no trainer built in"):
        job(BuiltinTrainer(TorchTuneConfig()), runtime=runtime())
    with pytest.raises(InvalidError, match="runtime must be a Runtime or its name, and is 3"):
        job(runtime=3)


@pytest.mark.parametrize("option", [3, Name, "name"])
def test_options_must_be_options(option: Any) -> None:
    with pytest.raises(InvalidError, match=r"options must be made of trainplane.options, such as Name\('my-job'\)"):
        job(None, option)


def test_torchtune_gets_its_settings_as_the_official_sdk_writes_them() -> None:
    config = TorchTuneConfig(
        dtype=DataType.BF16,
        batch_size=2,
        epochs=1,
        loss=Loss.CEWithChunkedOutputLoss,
        num_nodes=1,
        peft_config=LoraConfig(apply_lora_to_mlp=True, lora_rank=8, lora_alpha=16, lora_dropout=0.1, use_dora=False),
        dataset_preprocess_config=TorchTuneInstructDataset(
            source=DataFormat.PARQUET,
            split="train[:10%]",
            train_on_input=False,
            new_system_prompt="be kind",
            column_map={"input": "q", "output": "a"},
        ),
        resources_per_node={"gpu": 1},
    )
    fetched = Initializer(dataset=HuggingFaceDatasetInitializer("hf://tatsu-lab/alpaca/data"))
    trainer = job(BuiltinTrainer(config), initializer=fetched)["spec"]["trainer"]
    assert trainer == {
        "command": ["tune", "run"],
        "args": [
            "dtype=bf16",
            "batch_size=2",
            "epochs=1",
            "loss=torchtune.modules.loss.CEWithChunkedOutputLoss",
            "dataset.data_dir=/workspace/dataset/data",
            "model.apply_lora_to_mlp=True",
            "model.lora_rank=8",
            "model.lora_alpha=16",
            "model.lora_dropout=0.1",
            "model.use_dora=False",
            "model.lora_attn_modules=[q_proj,v_proj,output_proj]",
            "dataset=torchtune.datasets.instruct_dataset",
            "dataset.source=parquet",
            "dataset.split=train[:10%]",
            "dataset.train_on_input=False",
            "dataset.new_system_prompt=be kind",
            "dataset.column_map={'input': 'q', 'output': 'a'}",
        ],
        "numNodes": 1,
        "resourcesPerNode": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}},
    }


@pytest.mark.parametrize(
    ("uri", "arg"),
    [
        ("hf://owner/name", "dataset.data_dir=/workspace/dataset/."),
        ("owner/name/deep/er", "dataset.data_dir=/workspace/dataset/deep/er"),
        ("hf://owner/name/train.json", "dataset.data_files=/workspace/dataset/train.json"),
    ],
)
def test_torchtune_finds_the_dataset(uri: str, arg: str) -> None:
    fetched = Initializer(dataset=HuggingFaceDatasetInitializer(uri))
    assert job(BuiltinTrainer(TorchTuneConfig()), initializer=fetched)["spec"]["trainer"]["args"] == [arg]


def test_initializers_become_variables() -> None:
    token = {"name": "ACCESS_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    both = Initializer(
        dataset=HuggingFaceDatasetInitializer("owner/name", ignore_patterns=["*.a", "*.b"]),
        model=HuggingFaceModelInitializer("hf://owner/model", access_token=SecretRef("hf", "token")),
    )
    assert job(initializer=both)["spec"]["initializer"] == {
        "dataset": {"storageUri": "hf://owner/name", "env": [{"name": "IGNORE_PATTERNS", "value": "*.a,*.b"}]},
        "model": {
            "storageUri": "hf://owner/model",
            "env": [{"name": "IGNORE_PATTERNS", "value": "*.msgpack,*.h5,*.bin,*.pt,*.pth"}, token],
        },
    }


def test_s3_and_caches_become_variables() -> None:
    secret = SecretRef("s3", "key")
    s3 = S3DatasetInitializer("s3://b/p", None, "https://store", "id", secret, "eu", "arn")
    said = job(initializer=Initializer(s3, S3ModelInitializer("s3://b/m", None)))["spec"]["initializer"]
    assert said["model"] == {"storageUri": "s3://b/m"}
    assert [entry["name"] for entry in said["dataset"]["env"]] == [
        "ENDPOINT",
        "ACCESS_KEY_ID",
        "SECRET_ACCESS_KEY",
        "REGION",
        "ROLE_ARN",
    ]
    cache = DataCacheInitializer("cache://s/t", "s3://meta", 3, worker_mem="1Gi")
    assert job(initializer=Initializer(cache))["spec"]["initializer"]["dataset"] == {
        "storageUri": "cache://s/t",
        "env": [
            {"name": "CLUSTER_SIZE", "value": "4"},
            {"name": "METADATA_LOC", "value": "s3://meta"},
            {"name": "WORKER_MEM", "value": "1Gi"},
        ],
    }


def test_an_initializer_of_the_wrong_kind_is_named() -> None:
    with pytest.raises(InvalidError, match=r"initializer.dataset must be one of Hugging.*, and is a HuggingFaceModel"):
        job(initializer=Initializer(dataset=HuggingFaceModelInitializer("hf://a/b")))  # type: ignore[arg-type] # the point


def test_a_job_for_mpi_hands_its_variables_on() -> None:
    import base64  # noqa: PLC0415 for this test alone
    import zlib  # noqa: PLC0415 the same

    args = job(CustomTrainer(say, {"word": ""}, env={"B": "1", "A": "2"}))["spec"]["trainer"]["args"]
    packed = zlib.decompress(base64.b64decode("".join(args[2:])))
    assert b'"env": [\n  "A",\n  "B"\n ]' in packed


def test_nothing_is_changed_that_was_given() -> None:
    arguments = {"word": "x"}
    trainer = CustomTrainer(say, arguments, env={"A": "1"})
    before = tree.copy(vars(trainer))
    job(trainer)
    assert vars(trainer) == before
    assert names.API_VERSION == "trainer.kubeflow.org/v1alpha1"
