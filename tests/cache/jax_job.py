"""What tests/cache/test_jax.py runs with a JAX of its own: two ranks stop in mid-epoch, and one goes on.

`jax_job.py ADDRESS ROWS` ends well if every row of the epoch was had once, as sharded arrays too.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import islice
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from trainplane.cache.errors import InvalidError
from trainplane.cache.jax import CacheBatches


def checked(batch: dict[str, Any]) -> list[int]:
    """Return the ids of a batch whose other columns are of the same rows."""
    assert isinstance(batch["x"], jax.Array)
    assert batch["x"].shape == (len(batch["id"]), 4)
    assert bool((batch["x"][:, 1] == batch["id"]).all())
    assert batch["text"][0] == f"row {batch['id'][0]}"
    ids: list[int] = batch["id"].tolist()
    return ids


def main(address: str, rows: int) -> None:
    """Read an epoch in two worlds."""
    found: list[int] = []
    state: dict[str, Any] = {}
    for rank in range(2):
        with CacheBatches(100, address, rank=rank, world=2, seed=6, tail="ragged") as batches:
            for batch in islice(batches, 31):
                found += checked(batch)
            state = batches.state_dict()
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    put = partial(jax.make_array_from_process_local_data, sharding)
    with CacheBatches(100, address, seed=6, tail="ragged", put=put) as batches:
        batches.load_state_dict(state)
        for batch in batches:
            assert batch["x"].sharding == sharding
            found += checked(batch)
        assert batches.counts.rows
        with pytest.raises(InvalidError, match="'big' has numbers that JAX would cut"):
            batches._made("big", np.array([1 << 40]))
    assert sorted(found) == list(range(rows)), f"{len(found)} rows, {len(set(found))} different"


main(sys.argv[1], int(sys.argv[2]))
