"""What users may rely on: a name that goes, or an argument that moves, fails here."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys

import pytest

import trainplane
from trainplane import client

KUBEFLOW = {
    "BuiltinTrainer", "ContainerBackendConfig", "CustomTrainer", "CustomTrainerContainer", "DATASET_PATH",
    "DataCacheInitializer", "DataFormat", "DataType", "Event", "HuggingFaceDatasetInitializer",
    "HuggingFaceModelInitializer", "Initializer", "KubernetesBackendConfig", "LocalProcessBackendConfig", "LoraConfig",
    "Loss", "MODEL_PATH", "Runtime", "RuntimeKind", "RuntimeTrainer", "S3DatasetInitializer", "S3ModelInitializer",
    "TorchTuneConfig", "TorchTuneInstructDataset", "TrainJobTemplate", "TrainerClient", "TrainerType",
    "TrainingRuntimeSource", "get_tpu_num_nodes", "update_trainjob_status",
}  # fmt: skip
"""What `kubeflow.trainer` 0.5.0 exports."""
OURS = {
    "Advice", "AsyncTrainerClient", "BrokenBackendError", "Cause", "CodeError", "Comparison", "Concern", "Description",
    "DeviceUse", "Difference", "EngineError", "Evidence", "Explanation", "FieldChange", "ForbiddenError",
    "InvalidError", "JobDeletedError", "JobFailedError", "JobOutput", "JobStuckError", "JobTimeoutError", "LogLine",
    "Milestone", "NotFoundError", "Observation", "Output", "Overview", "PlainSecretError", "Progress", "QueueAnswer",
    "QueueUse", "QuotaUse", "RefusedError", "RenderedJob", "ScriptTrainer", "SecretRef", "Step", "TrainJob",
    "TrainplaneError", "UnreachableError", "UnsupportedError", "WorkerState", "Workspace",
    "AzureInitializer", "FileInitializer", "GCSInitializer", "HTTPInitializer", "PVCInitializer",
}  # fmt: skip

METHODS = {
    "list_runtimes": [],
    "get_runtime": ["name"],
    "get_runtime_packages": ["runtime"],
    "train": ["runtime", "initializer", "trainer", "options", "output"],
    "list_jobs": ["runtime"],
    "get_job": ["name"],
    "get_job_logs": ["name", "step", "follow"],
    "get_job_events": ["name"],
    "wait_for_job_status": ["name", "status", "timeout", "polling_interval", "callbacks", "give_up_after"],
    "delete_job": ["name"],
    "stream_job_logs": ["name", "steps", "follow", "tail", "since", "previous"],
    "watch_job": ["name"],
    "observe_job": ["name"],
    "get_overview": ["whole"],
    "get_job_document": ["name"],
    "explain_queue": ["name"],
    "describe_job": ["name"],
    "explain_job": ["name"],
    "suspend_job": ["name"],
    "resume_job": ["name"],
    "scale_job": ["name", "num_nodes"],
    "download_output": ["name", "folder", "env", "path"],
    "submit_job": ["document", "options"],
    "follow_job": ["name"],
    "retry_job": ["name", "new_name", "replace"],
    "render_job": ["job", "runtime"],
    "compare_job": ["document"],
    "close": [],
}
"""The first ten are `kubeflow`'s, with its arguments in its order."""

FIELDS = {
    "CustomTrainer": "func func_args image packages_to_install pip_index_urls num_nodes resources_per_node env",
    "CustomTrainerContainer": "image num_nodes resources_per_node env",
    "BuiltinTrainer": "config",
    "TorchTuneConfig": "dtype batch_size epochs loss num_nodes peft_config dataset_preprocess_config "
    "resources_per_node",
    "LoraConfig": "apply_lora_to_mlp apply_lora_to_output lora_attn_modules lora_rank lora_alpha lora_dropout "
    "quantize_base use_dora",
    "TorchTuneInstructDataset": "source split train_on_input new_system_prompt column_map",
    "Initializer": "dataset model",
    "HuggingFaceDatasetInitializer": "storage_uri ignore_patterns access_token",
    "HuggingFaceModelInitializer": "storage_uri ignore_patterns access_token",
    "S3DatasetInitializer": "storage_uri ignore_patterns endpoint access_key_id secret_access_key region role_arn",
    "S3ModelInitializer": "storage_uri ignore_patterns endpoint access_key_id secret_access_key region role_arn",
    "DataCacheInitializer": "storage_uri metadata_loc num_data_nodes head_cpu head_mem worker_cpu worker_mem iam_role",
    "Runtime": "name trainer kind pretrained_model",
    "RuntimeTrainer": "trainer_type framework image num_nodes device device_count",
    "TrainJob": "name runtime steps num_nodes creation_timestamp status",
    "Step": "name status pod_name device device_count",
    "Event": "involved_object_kind involved_object_name message reason event_time",
    "TrainJobTemplate": "trainer runtime initializer",
    "KubernetesBackendConfig": "namespace config_file context client_configuration",
    "LocalProcessBackendConfig": "cleanup_venv",
    "ContainerBackendConfig": "pull_policy auto_remove container_host container_runtime runtime_source "
    "dataset_initializer_image model_initializer_image initializer_timeout",
}
"""Fields of `kubeflow`'s types, in its order; ours may come behind."""


def test_the_public_names_are_these() -> None:
    assert set(client.__all__) == KUBEFLOW | OURS
    assert set(client.__all__) <= set(dir(trainplane))
    for name in client.__all__:
        assert getattr(trainplane, name) is getattr(client, name)
    everything: dict[str, object] = {}
    exec("from trainplane import *", everything)  # noqa: S102 what a notebook may do
    assert set(client.__all__) <= set(everything)
    with pytest.raises(AttributeError, match="no attribute 'TrainingClient'"):
        _ = trainplane.TrainingClient


def test_the_methods_have_these_arguments() -> None:
    found = inspect.getmembers(client.TrainerClient, inspect.isfunction)
    public = {name: list(inspect.signature(one).parameters)[1:] for name, one in found if not name.startswith("_")}
    assert public == METHODS


@pytest.mark.parametrize("name", FIELDS)
def test_types_begin_with_the_fields_that_moved_code_relies_on(name: str) -> None:
    expected = FIELDS[name].split()
    assert [field.name for field in dataclasses.fields(getattr(client, name))][: len(expected)] == expected


def test_every_public_name_is_documented() -> None:
    bare = [name for name in client.__all__ if name.isidentifier() and not name.isupper() and not _documented(name)]
    assert bare == []


def _documented(name: str) -> bool:
    text = getattr(client, name).__doc__
    return bool(text) and not text.startswith(f"{name}(")


def test_nothing_slow_is_imported_with_the_names() -> None:
    program = (
        "import sys; from trainplane import TrainerClient, CustomTrainer, options; "
        "slow = {'aiohttp', 'yaml', 'asyncio', 'msgspec', 'tarfile', 'ssl', 'kubernetes'}; "
        "print(*sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [], "these make the import slow: load them where they are used"
