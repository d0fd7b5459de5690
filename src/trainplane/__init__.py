"""Trainplane: a Python control plane for distributed training on Kubernetes.

The names here are the SDK's, those of `trainplane.client`: `from trainplane import TrainerClient, CustomTrainer`. They
are loaded when one is used, so that the operator's processes pay nothing for them. The rooms beside stand in the order
in which a TrainJob passes through them; ARCHITECTURE.md draws it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from trainplane.client import *  # noqa: F403 exactly the public names, for type checkers and editors

    __version__: str


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    public = _public()
    if name == "__all__":
        return public.__all__
    if name.startswith("_") or name not in public.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(public, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_public().__all__, "__version__"})


def _version() -> str:
    """Return the version that is installed; of sources that nobody installed, one that sorts before every release."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 loaded when used

    try:
        return version(__name__)
    except PackageNotFoundError:
        return "0+unknown"


def _public() -> ModuleType:
    from importlib import import_module  # noqa: PLC0415 loaded when used

    return import_module("trainplane.client")
