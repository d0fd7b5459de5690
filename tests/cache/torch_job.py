"""What tests/cache/test_torch.py runs with the lab's torch: two ranks stop in mid-epoch, and one goes on.

`torch_job.py ADDRESS ROWS` ends well if every row of the epoch was had once, with loader workers and without.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

import torch
from torchdata.stateful_dataloader import StatefulDataLoader

from trainplane.cache.torch import CacheDataset

STEPS = 31


def had(dataset: CacheDataset, workers: int, steps: int | None, state: Any) -> tuple[list[int], Any]:
    """Return the ids of some batches, from where a state stands, and the state after them."""
    context = "fork" if workers else None
    loader = StatefulDataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)
    if state is not None:
        loader.load_state_dict(state)
    ids: list[int] = []
    batches = iter(loader)
    for batch in islice(batches, steps):
        assert torch.equal(batch["x"][:, 1], batch["id"].to(torch.float32))
        assert batch["text"][0] == f"row {batch['id'][0]}"
        batch["x"] += 1
        ids += batch["id"].tolist()
    return ids, loader.state_dict()


def main(address: str, rows: int) -> None:
    """Read an epoch in two worlds."""
    # With loader workers first: they are forked before this process has lines of its own.
    for workers in (2, 0):
        found: list[int] = []
        state: Any = None
        for rank in range(2):
            dataset = CacheDataset(100, address, rank=rank, world=2, seed=6, tail="ragged", ahead=4)
            ids, state = had(dataset, workers, STEPS, None)
            assert len(ids) == 100 * STEPS, f"{workers} workers: {len(ids)} rows"
            found += ids
        # Rank 1's state is as good as rank 0's.
        found += had(CacheDataset(100, address, rank=0, world=1, seed=6, tail="ragged"), workers, None, state)[0]
        assert sorted(found) == list(range(rows)), f"{workers} workers: {len(found)} rows, {len(set(found))} different"


main(sys.argv[1], int(sys.argv[2]))
