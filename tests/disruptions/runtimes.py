"""The shipped runtimes whose policy is tested with pods that talk.

Their pods run the program of `trainer`, so that they need no library of the framework. Not here: runtimes whose
trainers need programs of their own to begin (MPI launchers, Flux, the data cache, torchtune).
"""

from __future__ import annotations

from typing import Final

OTHERS: Final = (
    "jax-distributed",
    "tensorflow-distributed",
    "xgboost-distributed",
    "paddle-distributed",
)
SHIPPED: Final = ("torch-distributed", "torch-elastic", *OTHERS)
