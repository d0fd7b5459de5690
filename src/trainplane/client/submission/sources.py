"""`spec.initializer`: what is fetched before training starts."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, get_args

from trainplane.client.errors import InvalidError
from trainplane.client.submission.training import write_variable
from trainplane.client.types.initializers import (
    AnyInitializer,
    DataCacheInitializer,
    HuggingFaceDatasetInitializer,
    HuggingFaceInitializer,
    HuggingFaceModelInitializer,
    S3DatasetInitializer,
    S3ModelInitializer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.client.types.initializers import BaseInitializer, Initializer

_ANY: Final = get_args(AnyInitializer)
_DATASETS: Final = (HuggingFaceDatasetInitializer, S3DatasetInitializer, DataCacheInitializer, *_ANY)
_MODELS: Final = (HuggingFaceModelInitializer, S3ModelInitializer, *_ANY)
_VARIABLES: Final = {
    "service_account_key": "GOOGLE_SERVICE_ACCOUNT_KEY",
    "account_name": "AZURE_STORAGE_ACCOUNT_NAME",
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
}
"""Fields whose variable has another name than they have."""
HUB = "hf://"


def write_initializer(initializer: Initializer) -> Tree:
    """Return both parts, as far as they are given."""
    parts: tuple[tuple[str, Any, tuple[type[BaseInitializer], ...]], ...] = (
        ("dataset", initializer.dataset, _DATASETS),
        ("model", initializer.model, _MODELS),
    )
    written = {}
    for part, source, known in parts:
        if source is None:
            continue
        if not isinstance(source, known):
            expected = ", ".join(kind.__name__ for kind in known)
            raise InvalidError(f"initializer.{part} must be one of {expected}, and is a {type(source).__name__}")
        written[part] = _write(source, f"initializer.{part}")
    return written


def uri(source: BaseInitializer) -> str:
    """Return where it fetches from; names of the Hugging Face hub may come without their scheme."""
    of_hub = isinstance(source, HuggingFaceInitializer)
    return HUB + source.storage_uri.removeprefix(HUB) if of_hub else source.storage_uri


def _write(source: BaseInitializer, where: str) -> Tree:
    env = [write_variable(name, value, f"{where}.{name.lower()}") for name, value in _variables(source)]
    return {"storageUri": uri(source), **({"env": env} if env else {})}


def _variables(source: BaseInitializer) -> Iterator[tuple[str, Any]]:
    """Yield what the initializer's image reads: most fields in capitals, and the size of a data cache with its head."""
    given = {field.name: getattr(source, field.name) for field in fields(source) if field.name != "storage_uri"}
    if isinstance(source, DataCacheInitializer):
        yield "CLUSTER_SIZE", str(given.pop("num_data_nodes") + 1)
    if given.pop("anonymous", False):
        yield "ANONYMOUS", "true"
    for name, value in given.items():
        if value is not None:
            yield _VARIABLES.get(name, name.upper()), ",".join(value) if isinstance(value, list | tuple) else value
