"""Ways to read the same rows with the lab's torch: `-m tests.cache.torch_readers`, as `turns` has it."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import from_numpy
from torch.utils.data import DataLoader, TensorDataset

from tests.cache.turns import BATCH, answer
from trainplane.cache.torch import CacheDataset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cache.turns import Pass

PACE = 100e6
"""Bytes that each rank of a paced pass uses in a second."""
STEPS = 150


def ours(place: str) -> Pass:
    """Our dataset in torch's loader: tensors that may be written to."""
    batches = DataLoader(CacheDataset(BATCH, place, patience=60), batch_size=None)
    return lambda: _rows(batch["id"] for batch in batches)


def loader(place: str) -> Pass:
    """Torch's own loader over tensors that are mapped into memory."""
    columns = (from_numpy(np.load(Path(place, f"{name}.npy"), mmap_mode="c")) for name in ("id", "x"))
    batches = DataLoader(TensorDataset(*columns), batch_size=BATCH)
    return lambda: _rows(ids for ids, _ in batches)


def mosaic(place: str) -> Pass:
    """Mosaic streaming in torch's loader, over shards that are written before the first pass."""
    # What it starts of itself must find the image's own libraries.
    multiprocessing.set_executable(os.environ["READER_PYTHON"])
    _without("torchvision", ".datasets", ".transforms", ".transforms.functional")
    _without("transformers", ".feature_extraction_utils", ".tokenization_utils_base")
    _without("transformers.models", ".auto", ".auto.tokenization_auto")
    streaming: Any = importlib.import_module("streaming")
    ids, rows = (np.load(Path(place, f"{name}.npy")) for name in ("id", "x"))
    shards = str(Path(place, "mds"))
    with streaming.MDSWriter(out=shards, columns={"id": "int", "x": f"ndarray:float32:{rows.shape[1]}"}) as writer:
        for number, row in zip(ids.tolist(), rows, strict=True):
            writer.write({"id": number, "x": row})
    dataset = streaming.StreamingDataset(local=shards, batch_size=BATCH, shuffle=False)
    batches = DataLoader(dataset, batch_size=BATCH)
    return lambda: _rows(batch["id"] for batch in batches)


def paced(place: str, rank: int) -> Pass:
    """The training loop of one of two ranks that uses `PACE`, in the order of a seed, and how long it waits."""

    def read() -> dict[str, float]:
        dataset = CacheDataset(BATCH, place, rank=rank, world=2, seed=1, patience=60)
        batches = _endless(dataset)
        step = sum(column.nbytes for column in next(batches).values()) / PACE
        before, inside = dataset.counts.wait_s, 0.0
        for _ in range(STEPS):
            began = time.perf_counter()
            next(batches)
            took = time.perf_counter() - began
            inside += took
            time.sleep(max(step - took, 0))
        wait = dataset.counts.wait_s - before
        return {"rows": STEPS * BATCH, "wait_ms": wait / STEPS * 1000, "next_ms": inside / STEPS * 1000}

    return read


def _endless(dataset: Any) -> Any:
    """Yield the batches of epoch after epoch."""
    while True:
        yield from dataset


def _rows(columns: Iterable[Any]) -> dict[str, float]:
    return {"rows": sum(map(len, columns))}


def _without(package: str, *modules: str) -> None:
    """Let names be imported that are not installed: Mosaic imports them for datasets that nobody reads here."""

    def named(name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})

    for name in (package, *(package + module for module in modules)):
        module = ModuleType(name)
        module.__path__ = []
        module.__dict__["__getattr__"] = named
        sys.modules[name] = module


if __name__ == "__main__":
    answer(ours, loader, mosaic, paced)
