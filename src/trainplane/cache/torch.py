"""The cache as a dataset for torch's loaders.

It gives batches, not rows: `DataLoader(CacheDataset(...), batch_size=None)`, also with `num_workers`, and torchdata's
`StatefulDataLoader` saves and restores it in mid-epoch. Each loader worker opens lines of its own, after it was made.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from trainplane.cache.opening import Access, HeadLine, endpoint
from trainplane.cache.reading import Reading, Share, columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.cache.fetching import Counts
    from trainplane.cache.order import Tail


class CacheDataset(IterableDataset):  # type: ignore[misc] # torch is not among what our checks install
    """Batches of this rank's rows: columns by name, as tensors; those that torch has no type for, as lists.

    Rank and world are torchrun's unless said. `for` runs through the rest of the present epoch; `set_epoch` begins
    another, and so does the end of one.
    """

    def __init__(
        self,
        batch_size: int,
        address: str = "",
        *,
        rank: int | None = None,
        world: int | None = None,
        seed: int | None = None,
        tail: Tail = "repeat",
        access: Access | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._batch_size, self._address, self._access = batch_size, address or endpoint(), access
        self._rank = int(os.environ.get("RANK", "0")) if rank is None else rank
        self._world = int(os.environ.get("WORLD_SIZE", "1")) if world is None else world
        self._options = {"seed": seed, "tail": tail, **options}
        self._reading: Reading | None = None
        self._epoch: int | None = None
        self._state: Mapping[str, Any] | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        reading = self._opened()
        for batch in reading.batches(self._batch_size):
            yield {name: _tensor(array) for name, array in columns(batch).items()}

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch. With loader workers call it before the loader is iterated."""
        self._epoch = epoch
        if self._reading is not None:
            self._reading.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where reading stands, after the last batch that was given."""
        return self._opened().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another stood, also in another world."""
        self._state = state
        if self._reading is not None:
            self._reading.load_state_dict(state)

    @property
    def counts(self) -> Counts:
        """What reading has cost this process so far, its wait for data above all."""
        return self._opened().counts

    def __getstate__(self) -> dict[str, Any]:
        """Go to another process without connections."""
        return {**self.__dict__, "_reading": None}

    def _opened(self) -> Reading:
        if self._reading is None:
            info = get_worker_info()
            part, parts = (info.id, info.num_workers) if info is not None else (0, 1)
            line = HeadLine(self._address, self._access)
            self._reading = Reading(line, Share(self._rank, self._world, part, parts), **self._options)
            if self._epoch is not None:
                self._reading.set_epoch(self._epoch)
            if self._state is not None:
                self._reading.load_state_dict(self._state)
        return self._reading


def _tensor(array: Any) -> Any:
    """Return an array as a tensor; Arrow's memory is read-only, and a training loop may write into its batch."""
    if array.dtype == object or array.dtype.kind in "MmUSO":
        return array.tolist()
    return torch.from_numpy(array if array.flags.writeable else array.copy())
