"""What is on the volume before training starts: a dataset, a model.

Names, fields and order are those of the `kubeflow` SDK; where it takes a token in the open, these take a SecretRef.
Types and fields beyond it are for our own image of initializers (docs/data.md); Kubeflow's images do not read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from trainplane.client.errors import InvalidError, PlainSecretError
from trainplane.client.types.secrets import SecretRef

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL_IGNORE_PATTERNS = ("*.msgpack", "*.h5", "*.bin", "*.pt", "*.pth")
"""Files of a model that are there twice: the safetensors beside them are enough."""


def _must_start(uri: str, *schemes: str) -> None:
    if not uri.startswith(schemes):
        raise InvalidError(f"storage_uri must start with {' or '.join(map(repr, schemes))}, and is {uri!r}")


def _must_refer(value: str | SecretRef | None, field_name: str) -> None:
    """Refuse a secret in the open: it would be stored in the TrainJob, for all who may read TrainJobs."""
    if value is None or isinstance(value, SecretRef):
        return
    raise PlainSecretError(
        f"{field_name} is given in the open: everybody who may list TrainJobs would read it. Put it into a Secret "
        f"(kubectl create secret generic my-secret --from-literal=token=…) and write "
        f'{field_name}=SecretRef("my-secret", "token")'
    )


@dataclass
class BaseInitializer:
    """What every initializer has."""

    storage_uri: str
    """Where the data is."""


@dataclass
class HuggingFaceInitializer(BaseInitializer):
    """What is the same for datasets and models of the Hugging Face hub."""

    ignore_patterns: Sequence[str] | None = None
    """Files to leave out."""
    access_token: SecretRef | None = None
    """For what is private or gated."""
    allow_patterns: Sequence[str] | None = None
    """The only files to bring; of a model, without it, those that training needs."""
    revision: str | None = None
    """Branch, tag or commit, if `storage_uri` names none."""
    endpoint: str | None = None
    """URL of a hub that is not Hugging Face's own."""

    def __post_init__(self) -> None:
        _must_refer(self.access_token, "access_token")


@dataclass
class HuggingFaceDatasetInitializer(HuggingFaceInitializer):
    """A dataset of the Hugging Face hub: `hf://owner/name`."""


@dataclass
class HuggingFaceModelInitializer(HuggingFaceInitializer):
    """A model of the Hugging Face hub: `hf://owner/name`."""

    ignore_patterns: Sequence[str] | None = field(default_factory=lambda: list(MODEL_IGNORE_PATTERNS))
    """Files to leave out."""


@dataclass
class S3Initializer(BaseInitializer):
    """What is the same for datasets and models in an S3 bucket."""

    ignore_patterns: Sequence[str] | None = None
    """Files to leave out."""
    endpoint: str | None = None
    """URL of the store, if it is not Amazon's."""
    access_key_id: str | SecretRef | None = None
    """The key's name; no secret by itself."""
    secret_access_key: SecretRef | None = None
    """The key."""
    region: str | None = None
    role_arn: str | None = None
    """A role to assume."""
    allow_patterns: Sequence[str] | None = None
    """The only files to bring."""
    session_token: SecretRef | None = None
    """Of keys that are lent for a while."""
    anonymous: bool = False
    """Whether no credentials are sent, not even the pod's own."""

    def __post_init__(self) -> None:
        _must_start(self.storage_uri, "s3://")
        _must_refer(self.secret_access_key, "secret_access_key")
        _must_refer(self.session_token, "session_token")


@dataclass
class S3DatasetInitializer(S3Initializer):
    """A dataset in an S3 bucket: `s3://bucket/path`."""


@dataclass
class S3ModelInitializer(S3Initializer):
    """A model in an S3 bucket: `s3://bucket/path`."""

    ignore_patterns: Sequence[str] | None = field(default_factory=lambda: list(MODEL_IGNORE_PATTERNS))
    """Files to leave out."""


@dataclass
class GCSInitializer(BaseInitializer):
    """A dataset or a model in a bucket of Google's: `gs://bucket/path`."""

    ignore_patterns: Sequence[str] | None = None
    """Files to leave out."""
    allow_patterns: Sequence[str] | None = None
    """The only files to bring."""
    service_account_key: SecretRef | None = None
    """The key of a service account, as JSON; without it, the pod's workload identity."""
    endpoint: str | None = None
    """URL of the store, if it is not Google's."""
    anonymous: bool = False
    """Whether no credentials are sent, not even the pod's own."""

    def __post_init__(self) -> None:
        _must_start(self.storage_uri, "gs://")
        _must_refer(self.service_account_key, "service_account_key")


@dataclass
class AzureInitializer(BaseInitializer):
    """A dataset or a model in a container of Azure's: `az://container/path`."""

    account_name: str
    """The storage account that the container is in."""
    ignore_patterns: Sequence[str] | None = None
    """Files to leave out."""
    allow_patterns: Sequence[str] | None = None
    """The only files to bring."""
    account_key: SecretRef | None = None
    """The account's key; without it and `sas_token`, the pod's workload identity."""
    sas_token: SecretRef | None = None
    """A shared access signature."""
    endpoint: str | None = None
    """URL of the store, if it is not Azure's."""
    anonymous: bool = False
    """Whether no credentials are sent, not even the pod's own."""

    def __post_init__(self) -> None:
        _must_start(self.storage_uri, "az://")
        _must_refer(self.account_key, "account_key")
        _must_refer(self.sas_token, "sas_token")


@dataclass
class HTTPInitializer(BaseInitializer):
    """One file of a dataset or a model: `https://host/path`, with `#sha256=…` behind it if its checksum is known."""

    access_token: SecretRef | None = None
    """Sent as a bearer's token, over https alone."""

    def __post_init__(self) -> None:
        _must_start(self.storage_uri, "https://", "http://")
        _must_refer(self.access_token, "access_token")


@dataclass
class PVCInitializer(BaseInitializer):
    """A dataset or a model on a claim of the TrainJob's namespace, which is mounted to be read: `pvc://claim/path`."""

    ignore_patterns: Sequence[str] | None = None
    """Files to leave out."""
    allow_patterns: Sequence[str] | None = None
    """The only files to bring."""

    def __post_init__(self) -> None:
        _must_start(self.storage_uri, "pvc://")


@dataclass
class FileInitializer(BaseInitializer):
    """A dataset or a model that the initializer's container has, such as on a volume of its runtime: `file:///path`."""

    ignore_patterns: Sequence[str] | None = None
    """Files to leave out."""
    allow_patterns: Sequence[str] | None = None
    """The only files to bring."""

    def __post_init__(self) -> None:
        _must_start(self.storage_uri, "file:///")


@dataclass
class DataCacheInitializer(BaseInitializer):
    """A table that a cache in the cluster serves: `cache://SCHEMA/TABLE`."""

    metadata_loc: str
    """Where the Iceberg table's metadata file is."""
    num_data_nodes: int
    """How many nodes hold the data; two at least."""
    head_cpu: str | None = None
    head_mem: str | None = None
    worker_cpu: str | None = None
    worker_mem: str | None = None
    iam_role: str | None = None
    """The role that may read `metadata_loc`."""

    def __post_init__(self) -> None:
        if self.num_data_nodes <= 1:
            raise InvalidError(f"num_data_nodes must be 2 or more, and is {self.num_data_nodes}")
        _must_start(self.storage_uri, "cache://")
        if self.storage_uri.removeprefix("cache://").count("/") != 1:
            raise InvalidError(f"storage_uri must read cache://SCHEMA/TABLE, and is {self.storage_uri!r}")


AnyInitializer: TypeAlias = GCSInitializer | AzureInitializer | HTTPInitializer | PVCInitializer | FileInitializer
"""What fetches a dataset as well as a model."""


@dataclass
class Initializer:
    """What is fetched before training starts."""

    dataset: HuggingFaceDatasetInitializer | S3DatasetInitializer | DataCacheInitializer | AnyInitializer | None = None
    """Lands in `DATASET_PATH`."""
    model: HuggingFaceModelInitializer | S3ModelInitializer | AnyInitializer | None = None
    """Lands in `MODEL_PATH`."""
