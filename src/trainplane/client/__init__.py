"""The SDK: `TrainerClient`, what it takes and gives, and where jobs run (`backends/`).

These names are public, and `trainplane` has them too. Nothing slow is imported here: it lands in notebooks.
"""

from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.client import TrainerClient
from trainplane.client.errors import (
    BrokenBackendError,
    CodeError,
    EngineError,
    ForbiddenError,
    InvalidError,
    JobDeletedError,
    JobFailedError,
    JobStuckError,
    JobTimeoutError,
    NotFoundError,
    PlainSecretError,
    RefusedError,
    TrainplaneError,
    UnreachableError,
    UnsupportedError,
)
from trainplane.client.reporting import update_trainjob_status
from trainplane.client.topology import get_tpu_num_nodes
from trainplane.client.types.backends import (
    ContainerBackendConfig,
    KubernetesBackendConfig,
    LocalProcessBackendConfig,
    TrainingRuntimeSource,
)
from trainplane.client.types.descriptions import Advice, Description, QueueAnswer
from trainplane.client.types.initializers import (
    AzureInitializer,
    DataCacheInitializer,
    FileInitializer,
    GCSInitializer,
    HTTPInitializer,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    PVCInitializer,
    S3DatasetInitializer,
    S3ModelInitializer,
)
from trainplane.client.types.jobs import (
    DATASET_PATH,
    MODEL_PATH,
    Cause,
    Event,
    LogLine,
    Milestone,
    Progress,
    Step,
    TrainJob,
)
from trainplane.client.types.observation import Observation
from trainplane.client.types.outputs import JobOutput, Output
from trainplane.client.types.overview import Concern, DeviceUse, Overview, QueueUse, QuotaUse, WorkerState
from trainplane.client.types.renderings import Comparison, Difference, FieldChange, RenderedJob
from trainplane.client.types.runtimes import Runtime, RuntimeKind, RuntimeTrainer, TrainerType
from trainplane.client.types.secrets import SecretRef
from trainplane.client.types.templates import TrainJobTemplate
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
    Workspace,
)
from trainplane.explain.explanation import Evidence, Explanation

__all__ = [
    "DATASET_PATH",
    "MODEL_PATH",
    "Advice",
    "AsyncTrainerClient",
    "AzureInitializer",
    "BrokenBackendError",
    "BuiltinTrainer",
    "Cause",
    "CodeError",
    "Comparison",
    "Concern",
    "ContainerBackendConfig",
    "CustomTrainer",
    "CustomTrainerContainer",
    "DataCacheInitializer",
    "DataFormat",
    "DataType",
    "Description",
    "DeviceUse",
    "Difference",
    "EngineError",
    "Event",
    "Evidence",
    "Explanation",
    "FieldChange",
    "FileInitializer",
    "ForbiddenError",
    "GCSInitializer",
    "HTTPInitializer",
    "HuggingFaceDatasetInitializer",
    "HuggingFaceModelInitializer",
    "Initializer",
    "InvalidError",
    "JobDeletedError",
    "JobFailedError",
    "JobOutput",
    "JobStuckError",
    "JobTimeoutError",
    "KubernetesBackendConfig",
    "LocalProcessBackendConfig",
    "LogLine",
    "LoraConfig",
    "Loss",
    "Milestone",
    "NotFoundError",
    "Observation",
    "Output",
    "Overview",
    "PVCInitializer",
    "PlainSecretError",
    "Progress",
    "QueueAnswer",
    "QueueUse",
    "QuotaUse",
    "RefusedError",
    "RenderedJob",
    "Runtime",
    "RuntimeKind",
    "RuntimeTrainer",
    "S3DatasetInitializer",
    "S3ModelInitializer",
    "ScriptTrainer",
    "SecretRef",
    "Step",
    "TorchTuneConfig",
    "TorchTuneInstructDataset",
    "TrainJob",
    "TrainJobTemplate",
    "TrainerClient",
    "TrainerType",
    "TrainingRuntimeSource",
    "TrainplaneError",
    "UnreachableError",
    "UnsupportedError",
    "WorkerState",
    "Workspace",
    "get_tpu_num_nodes",
    "update_trainjob_status",
]
