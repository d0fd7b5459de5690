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
    DataCacheInitializer,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
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
    "BrokenBackendError",
    "BuiltinTrainer",
    "Cause",
    "CodeError",
    "ContainerBackendConfig",
    "CustomTrainer",
    "CustomTrainerContainer",
    "DataCacheInitializer",
    "DataFormat",
    "DataType",
    "Description",
    "EngineError",
    "Event",
    "Evidence",
    "Explanation",
    "ForbiddenError",
    "HuggingFaceDatasetInitializer",
    "HuggingFaceModelInitializer",
    "Initializer",
    "InvalidError",
    "JobDeletedError",
    "JobFailedError",
    "JobStuckError",
    "JobTimeoutError",
    "KubernetesBackendConfig",
    "LocalProcessBackendConfig",
    "LogLine",
    "LoraConfig",
    "Loss",
    "Milestone",
    "NotFoundError",
    "PlainSecretError",
    "Progress",
    "QueueAnswer",
    "RefusedError",
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
    "Workspace",
    "get_tpu_num_nodes",
    "update_trainjob_status",
]
