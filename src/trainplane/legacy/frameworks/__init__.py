"""What the kinds of v1 differ in: what their pods are told of each other, and when a job has done its work."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trainplane.api.legacy import names
from trainplane.legacy.frameworks.jax import Jax
from trainplane.legacy.frameworks.paddle import Paddle
from trainplane.legacy.frameworks.pytorch import PyTorch
from trainplane.legacy.frameworks.tensorflow import TensorFlow
from trainplane.legacy.frameworks.xgboost import XGBoost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.legacy.frameworks.framework import Framework

FRAMEWORKS: Final[Mapping[str, Framework]] = MappingProxyType(
    {
        names.PYTORCH_JOB: PyTorch(),
        names.TF_JOB: TensorFlow(),
        names.XGBOOST_JOB: XGBoost(),
        names.PADDLE_JOB: Paddle(),
        names.JAX_JOB: Jax(),
    }
)
"""By the name of the kind."""
