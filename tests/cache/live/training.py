"""What the pods of tests/cache/live train: an epoch from the cache at 100 MB/s per rank, every row of which is counted.

Says `result` and JSON on the first rank: rows, how many different ones, and the wait of each step.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import torch.distributed as dist

from trainplane.cache.torch import CacheDataset

RATE = 100e6
"""Bytes per second that a rank uses."""


def main() -> None:
    """Read one epoch, and tell what all ranks had."""
    dist.init_process_group("gloo")
    dataset = CacheDataset(512, seed=4, tail="ragged")
    ids: list[int] = []
    steps, before = 0, 0.0
    for batch in dataset:
        if steps == 0:
            before = dataset.counts.wait_s  # the first is there when it is there
        ids += batch["id"].tolist()
        time.sleep(sum(column.nbytes for column in batch.values() if hasattr(column, "nbytes")) / RATE)
        steps += 1
    mine = {"ids": ids, "wait_ms": (dataset.counts.wait_s - before) / max(steps - 1, 1) * 1000, "steps": steps}
    everyones: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyones, mine)
    if dist.get_rank() == 0:
        had = [row for one in everyones for row in one["ids"]]
        told = {
            "rows": len(had),
            "different": len(set(had)),
            "ranks": [len(one["ids"]) for one in everyones],
            "wait_ms_per_step": max(one["wait_ms"] for one in everyones),
        }
        sys.stdout.write(f"result {json.dumps(told)}\n")
        sys.stdout.flush()
    dist.barrier()
    # Gloo's group joins its threads under the GIL, for which one of them may wait to let a tensor go (torch 2.6).
    os._exit(0)


main()
