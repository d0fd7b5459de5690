"""The cache as batches for JAX.

```python
batches = CacheBatches(1024, "HOST:50051", seed=42)     # rank and world are JAX's own processes
for batch in batches:                                   # {"column": jax.Array of 1024 rows}, one epoch
    ...
```

How an array is spread over devices is the caller's: `put` makes of this process's rows what training takes, as by
`partial(jax.make_array_from_process_local_data, sharding)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from trainplane.cache.errors import InvalidError
from trainplane.cache.opening import endpoint
from trainplane.cache.reading import Reading, columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from trainplane.cache.fetching import Counts


class CacheBatches:
    """Batches of this process's rows: columns by name, as JAX's arrays; those that JAX has no type for, as lists.

    `for` runs through the rest of the present epoch; `set_epoch` begins another, and so does the end of one.
    """

    def __init__(
        self,
        batch_size: int,
        address: str = "",
        *,
        rank: int | None = None,
        world: int | None = None,
        put: Callable[[Any], Any] = jax.device_put,
        **options: Any,
    ) -> None:
        self._batch_size, self._put = batch_size, put
        self._reading = Reading.open(
            address or endpoint(),
            rank=jax.process_index() if rank is None else rank,
            world=jax.process_count() if world is None else world,
            **options,
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._reading.batches(self._batch_size):
            yield {name: self._made(name, array) for name, array in columns(batch).items()}

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self._reading.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where reading stands, after the last batch that was given."""
        return self._reading.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another stood, also in another world."""
        self._reading.load_state_dict(state)

    @property
    def counts(self) -> Counts:
        """What reading has cost so far, its wait for data above all."""
        return self._reading.counts

    def close(self) -> None:
        """Let go of every connection."""
        self._reading.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made(self, name: str, array: Any) -> Any:
        if array.dtype.kind not in "biufc":
            return array.tolist()
        kept = jax.dtypes.canonicalize_dtype(array.dtype)
        if array.dtype.kind in "iu" and kept != array.dtype and array.size:
            # Without x64 JAX takes the low half of wider integers, and says nothing.
            bounds = np.iinfo(kept)
            if array.min() < bounds.min or array.max() > bounds.max:
                raise InvalidError(
                    f"column {name!r} has numbers that JAX would cut to {kept}",
                    'switch them on: jax.config.update("jax_enable_x64", True)',
                )
        return self._put(array)
